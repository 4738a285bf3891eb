# SPDX-License-Identifier: Apache-2.0
"""Environments that agents act in: containers by any engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from newskills.base.errors import ConfigError

SESSIONS = "sandbox"
"""The engine that is no container: sessions of the sandbox."""

if TYPE_CHECKING:
    from newskills.base.environment import AgentEnvironments, EnvironmentSpec
    from newskills.environments.config import EnvironmentConfig


def make_environments(config: EnvironmentConfig, environ: Mapping[str, str]) -> AgentEnvironments:
    """Return the pool of containers for `config`; nothing is started. Raises ConfigError where no engine is
    installed."""
    from newskills.environments.containers import ContainerPool

    return ContainerPool(config, environ)


def check_engine(config: EnvironmentConfig, environ: Mapping[str, str], *, needs_container: bool) -> None:
    """Raise ConfigError where no engine is installed, or where it makes no containers and these are needed. The sandbox
    says itself, when it starts, what it lacks."""
    from newskills.environments.engines import find_engine

    if config.engine != SESSIONS:
        find_engine(config, environ)
    elif needs_container:
        raise ConfigError(
            "This agent is a program that needs a container, and sessions of the sandbox are none.",
            hint="Use containers: ++environment.engine=podman",
        )


def check_image(config: EnvironmentConfig, spec: EnvironmentSpec, environ: Mapping[str, str]) -> None:
    """Raise ConfigError for an image that cannot be named, or that the engine cannot use. Nothing is started."""
    from newskills.environments.containers import with_image
    from newskills.environments.engines import find_engine
    from newskills.environments.services import group_program

    if config.engine != SESSIONS:
        engine = find_engine(config, environ)
        engine.start("", with_image(config, spec))
        if spec.group is not None:
            group_program(engine, spec)
