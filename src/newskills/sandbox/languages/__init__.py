# SPDX-License-Identifier: Apache-2.0
"""What can be run, by name."""

from __future__ import annotations

from newskills.base.errors import ExecutionRefusedError, suggest
from newskills.sandbox.config import SandboxConfig
from newskills.sandbox.languages.cpp import CPP
from newskills.sandbox.languages.language import Language
from newskills.sandbox.languages.lean import LEAN
from newskills.sandbox.languages.python import CELLS, PYPY, SCRIPTS
from newskills.sandbox.languages.shell import SHELL
from newskills.sandbox.languages.sql import SQL

__all__ = ["LANGUAGES", "Language", "language", "toolchain_folders"]

LANGUAGES: dict[str, Language] = {each.name: each for each in (CELLS, *SCRIPTS, PYPY, SHELL, CPP, LEAN, SQL)}


def language(name: str) -> Language:
    """Return the language called `name`. Raises ExecutionRefusedError for an unknown one."""
    entry = LANGUAGES.get(name)
    if entry is None:
        raise ExecutionRefusedError(f"Unknown language '{name}'{suggest(name, LANGUAGES)}")
    return entry


def toolchain_folders(config: SandboxConfig) -> list[str]:
    """Return the folders that languages need to see beside the system's own. Raises ConfigError."""
    return [folder for each in LANGUAGES.values() for folder in each.folders(config)]
