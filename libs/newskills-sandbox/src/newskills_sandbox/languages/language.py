# SPDX-License-Identifier: Apache-2.0
"""What a language is, and what the files of this folder share. A new language is one file with a `Language`, and its
name in the table of `newskills_sandbox.languages`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from newskills_sandbox.errors import ExecutionRefusedError, SandboxError
from newskills_sandbox.execution import Execution
from newskills_sandbox.settings import SandboxSettings

Message = dict[str, Any]
"""What a session's supervisor is told to do: `cell`, `script` or `program`."""

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64")


def _no_folders(settings: SandboxSettings) -> Sequence[str]:
    return ()


@dataclass(frozen=True, kw_only=True)
class Language:
    """One row of the table of languages.

    request   an execution as the supervisor's message; raises ExecutionRefusedError for one that makes no sense
    folders   what it needs beside the system's own folders, shown read-only to all sessions; raises SettingsError
    failure   status of a program that ends with an exit code other than zero
    broken    exit code by which a runner of ours says that it could not begin, which is no fault of the code
    stateful  variables live from call to call, so a session id makes sense
    """

    name: str
    request: Callable[[Execution, SandboxSettings], Message]
    folders: Callable[[SandboxSettings], Sequence[str]] = _no_folders
    failure: str = "completed"
    broken: int | None = None
    stateful: bool = False

    def status(self, outcome: Mapping[str, Any]) -> str:
        """Return one of the statuses of `ExecutionResult`. Raises SandboxError."""
        if outcome["status"] != "exited":
            return str(outcome["status"])
        if self.broken is not None and outcome["exit"] == self.broken:
            raise SandboxError(f"{self.name} could not start: {outcome['err'].strip()}")
        if outcome["exit"]:
            return self.failure
        return "completed"


def script(code: str) -> Message:
    """Describe Python code in a process of its own, everything preloaded."""
    return {"do": "script", "code": code}


def program(
    files: Mapping[str, str],
    *steps: Sequence[str],
    environment: Mapping[str, str] | None = None,
    unlimited_addresses: bool = False,
) -> Message:
    """Return a request that writes `files` into the session's folder and runs the steps there, one after the other,
    until one fails.

    `unlimited_addresses`: for programs that map far more than they use; their memory is watched all the same.
    """
    return {
        "do": "program",
        "files": dict(files),
        "steps": [list(step) for step in steps],
        "environment": dict(environment or {}),
        "unlimited_addresses": unlimited_addresses,
    }


def find_program(name: str, what: str, how: str) -> str:
    """Find where program `name` is. Raises ExecutionRefusedError that says `what` is missing and `how` to get it."""
    place = shutil.which(name)
    if place is None:
        raise ExecutionRefusedError(f"{what} is not installed on this machine; {how}")
    return place


def installation_paths(place: str | None) -> list[str]:
    """Return the paths that must be shown for the program at `place` to start; empty where the system's own folders
    hold it all."""
    if place is None:
        return []
    real = Path(place).resolve()
    own_folder = [] if place.startswith(_SYSTEM) else [place]
    if any(real.is_relative_to(folder) for folder in _SYSTEM):
        return own_folder
    prefix = real.parent.parent if real.parent.name == "bin" else real.parent
    home = Path(os.path.expanduser("~"))
    if home.is_relative_to(prefix) or prefix == home / ".local":  # never more of a home than the program
        return [*own_folder, str(real)]
    return [*own_folder, str(prefix)]
