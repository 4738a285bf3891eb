# SPDX-License-Identifier: Apache-2.0
"""What can be run, by name."""

from __future__ import annotations

from newskills_sandbox.errors import ExecutionRefusedError, suggest
from newskills_sandbox.languages.cpp import CPP
from newskills_sandbox.languages.language import Language
from newskills_sandbox.languages.lean import LEAN
from newskills_sandbox.languages.python import CELLS, PYPY, SCRIPTS
from newskills_sandbox.languages.shell import SHELL
from newskills_sandbox.languages.sql import SQL
from newskills_sandbox.settings import SandboxSettings

__all__ = ["LANGUAGES", "Language", "language", "toolchain_folders"]

LANGUAGES: dict[str, Language] = {each.name: each for each in (CELLS, *SCRIPTS, PYPY, SHELL, CPP, LEAN, SQL)}


def language(name: str) -> Language:
    """Return the language called `name`. Raises ExecutionRefusedError for an unknown one."""
    entry = LANGUAGES.get(name)
    if entry is None:
        raise ExecutionRefusedError(f"Unknown language '{name}'{suggest(name, LANGUAGES)}")
    return entry


def toolchain_folders(settings: SandboxSettings) -> list[str]:
    """Return the folders that languages need to see beside the system's own. Raises SettingsError."""
    return [folder for each in LANGUAGES.values() for folder in each.folders(settings)]
