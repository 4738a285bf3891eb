# SPDX-License-Identifier: Apache-2.0
"""What can be run: one row per language, from a request to what the supervisor is told, and back to a status."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any

from msgspec import Struct

from newskills.base.errors import ExecutionRefusedError, suggest
from newskills.base.protocols import Execution

Message = dict[str, Any]
STYLES = {style.lower(): style for style in ("Plain", "Context", "Verbose", "Minimal")}


class Language(Struct, frozen=True, kw_only=True):
    """`failure`: the status of a program that ends with an exit code other than zero.

    stateful  variables live from call to call, so a session id makes sense
    """

    name: str
    request: Callable[[Execution], Message]
    failure: str = "completed"
    stateful: bool = False

    def status(self, outcome: Mapping[str, Any]) -> str:
        """One of the statuses of `ExecutionResult`."""
        if outcome["status"] != "exited":
            return str(outcome["status"])
        return self.failure if outcome["exit"] else "completed"


def _cell(execution: Execution) -> Message:
    style = STYLES.get(execution.traceback_verbosity.lower())
    if style is None:
        raise ExecutionRefusedError(
            f"Unknown traceback verbosity '{execution.traceback_verbosity}'"
            f"{suggest(execution.traceback_verbosity, STYLES.values())}"
        )
    return {"do": "cell", "code": execution.code, "style": style}


def _script(execution: Execution) -> Message:
    return {"do": "script", "code": execution.code}


def _program(
    files: Mapping[str, str], *steps: tuple[str, ...], environment: Mapping[str, str] | None = None
) -> Message:
    return {
        "do": "program",
        "files": dict(files),
        "steps": [list(step) for step in steps],
        "environment": dict(environment or {}),
        "unlimited_addresses": False,
    }


def _found(program: str, language: str, install: str) -> str:
    """Where the program is. Raises ExecutionRefusedError that says how to get it."""
    place = shutil.which(program)
    if place is None:
        raise ExecutionRefusedError(f"{language} is not installed on this machine; {install}")
    return place


def _shell(execution: Execution) -> Message:
    return _program({"script.sh": execution.code}, (shutil.which("bash") or "/bin/sh", "script.sh"))


def _cpp(execution: Execution) -> Message:
    compiler = _found("g++", "A C++ compiler", "install it with `apt-get install g++`.")
    compiling = (compiler, "-O2", "-std=c++17", "-pipe", "-o", "program", "program.cpp")
    return _program({"program.cpp": execution.code}, compiling, ("./program",))


def _pypy(execution: Execution) -> Message:
    return _program(
        {"main.py": execution.code}, (_found("pypy3", "PyPy", "install it as pypy3."), "-I", "main.py")
    )


_TABLE = (
    Language(name="ipython", request=_cell, stateful=True),
    Language(name="python", request=_script),
    Language(name="python3", request=_script),
    Language(name="pypy3", request=_pypy),
    Language(name="shell", request=_shell, failure="error"),
    Language(name="cpp", request=_cpp, failure="error"),
)
LANGUAGES: dict[str, Language] = {language.name: language for language in _TABLE}


def language(name: str) -> Language:
    """Raises ExecutionRefusedError."""
    found = LANGUAGES.get(name)
    if found is None:
        raise ExecutionRefusedError(f"Unknown language '{name}'{suggest(name, LANGUAGES)}")
    return found


def toolchain_folders() -> list[str]:
    """Folders outside the system's own that languages need to see."""
    places = (shutil.which("pypy3"),)
    return [str(PurePosixPath(place).parent.parent) for place in places if place and not place.startswith("/usr/")]
