# SPDX-License-Identifier: Apache-2.0
"""Libraries of `libs/`: distributions of their own that newskills imports, and that go wherever it goes."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

LIBRARIES = ("newskills_math", "newskills_sandbox")
"""Packages; each stands in `libs/`, in a folder that is called like its distribution (decisions/0034)."""


def library_folders() -> dict[str, Path]:
    """Return the folder that each library is imported from."""
    return {name: Path(str(import_module(name).__file__)).parent for name in LIBRARIES}


def library_source(package: str) -> str:
    """Return where a repository of newskills has the library of this package."""
    return f"libs/{package.replace('_', '-')}/src/{package}"
