# SPDX-License-Identifier: Apache-2.0
"""Python: cells of a session, scripts, and PyPy where it is installed."""

from __future__ import annotations

import shutil

from newskills_sandbox.errors import ExecutionRefusedError, suggest
from newskills_sandbox.execution import Execution
from newskills_sandbox.inside.programs import HERE
from newskills_sandbox.languages.headers import COMPILER, precompile_header
from newskills_sandbox.languages.language import (
    Language,
    Message,
    find_program,
    installation_paths,
    program,
    script,
)
from newskills_sandbox.settings import SandboxSettings

STYLES = {style.lower(): style for style in ("Plain", "Context", "Verbose", "Minimal")}


def _cell_request(execution: Execution, settings: SandboxSettings) -> Message:
    style = STYLES.get(execution.traceback_verbosity.lower())
    if style is None:
        verbosity = execution.traceback_verbosity
        raise ExecutionRefusedError(
            f"Unknown traceback verbosity '{verbosity}'{suggest(verbosity, STYLES.values())}"
        )
    return {"do": "cell", "code": execution.code, "style": style}


def _script_request(execution: Execution, settings: SandboxSettings) -> Message:
    if COMPILER in execution.std_input or COMPILER in execution.code:  # a grader's, or one that compiles itself
        precompile_header()
    return script(execution.code)


def _pypy_request(execution: Execution, settings: SandboxSettings) -> Message:
    place = find_program(
        "pypy3", "PyPy", "install it so that `pypy3` is found, e.g. with `apt-get install pypy3`."
    )
    return program({"main.py": execution.code}, (place, "-I", f"{HERE}main.py"))


CELLS = Language(name="ipython", request=_cell_request, stateful=True)
SCRIPTS = (Language(name="python", request=_script_request), Language(name="python3", request=_script_request))
PYPY = Language(
    name="pypy3", request=_pypy_request, folders=lambda settings: installation_paths(shutil.which("pypy3"))
)
