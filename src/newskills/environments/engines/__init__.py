# SPDX-License-Identifier: Apache-2.0
"""Programs that run containers, each by its command line; jobs on this machine use those that are like docker.

Add an engine: a file with a subclass of `engine.EngineProgram`, and a row in `ENGINES` (or the entry point
`newskills.engines` of another distribution, with an attribute `properties`).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from newskills.base.errors import ConfigError
from newskills.base.registry import DescribedRegistry

if TYPE_CHECKING:
    from newskills.environments.config import EnvironmentConfig
    from newskills.environments.engines.engine import EngineProgram


class EngineProperties(Struct, frozen=True, kw_only=True):
    """What is particular about an engine.

    program      what is looked for in PATH; empty: the engine's name
    like_docker  its commands and options are those of `docker.Docker`, so that jobs may run in its containers as well
    daemonless   containers are processes of the caller; their root is the caller outside
    """

    program: str = ""
    like_docker: bool = False
    daemonless: bool = False


ENGINES = DescribedRegistry(
    "container engine",
    {
        "podman": (
            "newskills.environments.engines.docker:Podman",
            EngineProperties(like_docker=True, daemonless=True),
        ),
        "docker": ("newskills.environments.engines.docker:Docker", EngineProperties(like_docker=True)),
        "apptainer": ("newskills.environments.engines.apptainer:Apptainer", EngineProperties(daemonless=True)),
        "singularity": ("newskills.environments.engines.apptainer:Apptainer", EngineProperties(daemonless=True)),
        "enroot": ("newskills.environments.engines.enroot:Enroot", EngineProperties(daemonless=True)),
    },
    usual=EngineProperties(),
    group="newskills.engines",
)
JOB_ENGINES = tuple(name for name, properties in ENGINES.built_in().items() if properties.like_docker)
"""Engines of our own whose containers hold commands of jobs, in the order in which they are looked for."""


def program_of(name: str) -> str:
    """Return the program of an engine, as it stands in PATH. Raises UnknownNameError, ConfigError."""
    return ENGINES.properties(name).program or name


def installed_engines(names: Iterable[str], environ: Mapping[str, str]) -> list[str]:
    """Return the engines of these whose programs are installed. Raises UnknownNameError, ConfigError."""
    return [name for name in names if shutil.which(program_of(name), path=environ.get("PATH"))]


def find_engine(config: EnvironmentConfig, environ: Mapping[str, str]) -> EngineProgram:
    """Return the engine that the configuration names, or the first that is installed. Raises ConfigError without one,
    UnknownNameError."""
    names = list(ENGINES.built_in()) if config.engine == "auto" else [ENGINES.resolve(config.engine)]
    if here := installed_engines(names, environ):
        engine: EngineProgram = ENGINES.get(here[0])(program_of(here[0]), config)
        return engine
    programs = [program_of(name) for name in names]
    wanted = programs[0] if len(programs) == 1 else f"{', '.join(programs[:-1])} or {programs[-1]}"
    raise ConfigError(
        f"Agents work in containers, but {wanted} is not installed here.",
        hint="Install one (apt install podman runc; https://apptainer.org/docs), or name another: "
        "++environment.engine=sandbox needs no containers.",
    )
