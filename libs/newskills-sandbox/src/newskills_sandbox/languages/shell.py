# SPDX-License-Identifier: Apache-2.0
"""Shell scripts, by bash where there is one."""

from __future__ import annotations

import shutil

from newskills_sandbox.execution import Execution
from newskills_sandbox.inside.programs import HERE
from newskills_sandbox.languages.language import Language, Message, installation_paths, program
from newskills_sandbox.settings import SandboxSettings


def _shell_request(execution: Execution, settings: SandboxSettings) -> Message:
    return program({"script.sh": execution.code}, (shutil.which("bash") or "/bin/sh", f"{HERE}script.sh"))


SHELL = Language(
    name="shell",
    request=_shell_request,
    folders=lambda settings: installation_paths(shutil.which("bash")),
    failure="error",
)
