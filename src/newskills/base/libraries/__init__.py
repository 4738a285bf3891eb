# SPDX-License-Identifier: Apache-2.0
"""Libraries of `libs/`, which newskills imports, and applications of `apps/`, which import it: distributions of their
own, and where they are installed they go wherever it goes."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

LIBRARIES = ("newskills_math", "newskills_sandbox")
"""Packages; each stands in `libs/`, in a folder that is called like its distribution (decisions/0034)."""

APPLICATIONS = ("newskills_aimo", "newskills_evaluator", "newskills_tinker")
"""Packages; each stands in `apps/` in the same way (decisions/0038)."""


def library_folders() -> dict[str, Path]:
    """Return the folder that each library, and each application that is installed, is imported from."""
    names = [*LIBRARIES, *(name for name in APPLICATIONS if find_spec(name) is not None)]
    return {name: Path(str(import_module(name).__file__)).parent for name in names}


def library_source(package: str) -> str:
    """Return where a repository of newskills has this library or application."""
    place = "apps" if package in APPLICATIONS else "libs"
    return f"{place}/{package.replace('_', '-')}/src/{package}"


def application_module(name: str, what: str = "This command belongs") -> ModuleType:
    """Import a module of an application. `what` begins the message of the ConfigError that it raises where the
    application is not installed."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        package = name.partition(".")[0]
        if error.name != package or package not in APPLICATIONS:
            raise
        from newskills.base.errors import ConfigError

        distribution = package.replace("_", "-")
        raise ConfigError(
            f"{what} to {distribution}, which is not installed.", hint=f"Run: pip install {distribution}"
        ) from error
