# SPDX-License-Identifier: Apache-2.0
"""C++ programs: compiled and run under one deadline. What the compiler says is in stderr."""

from __future__ import annotations

import shutil

from newskills_sandbox.execution import Execution
from newskills_sandbox.inside.programs import HERE
from newskills_sandbox.languages.headers import COMPILER, precompile_header
from newskills_sandbox.languages.language import Language, Message, find_program, installation_paths, program
from newskills_sandbox.settings import SandboxSettings

_FLAGS = ("-O2", "-std=c++17", "-pipe")


def _cpp_request(execution: Execution, settings: SandboxSettings) -> Message:
    compiler = find_program(COMPILER, "A C++ compiler", "install it with `apt-get install g++`.")
    precompile_header()
    compiling = (compiler, *_FLAGS, "-o", f"{HERE}program", f"{HERE}program.cpp")
    return program({"program.cpp": execution.code}, compiling, (f"{HERE}program",))


CPP = Language(
    name="cpp",
    request=_cpp_request,
    folders=lambda settings: installation_paths(shutil.which(COMPILER)),
    failure="error",
)
