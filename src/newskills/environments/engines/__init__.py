# SPDX-License-Identifier: Apache-2.0
"""Programs that run containers, each by its command line."""

from __future__ import annotations

import shutil
from collections.abc import Mapping

from newskills.base.errors import ConfigError
from newskills.environments.config import EnvironmentConfig
from newskills.environments.engines.apptainer import Apptainer
from newskills.environments.engines.docker import Docker, Podman
from newskills.environments.engines.engine import EngineProgram
from newskills.environments.engines.enroot import Enroot

ENGINES: dict[str, type[EngineProgram]] = {
    "podman": Podman,
    "docker": Docker,
    "apptainer": Apptainer,
    "singularity": Apptainer,
    "enroot": Enroot,
}


def find_engine(config: EnvironmentConfig, environ: Mapping[str, str]) -> EngineProgram:
    """Return the engine that the configuration names, or the first that is installed. Raises ConfigError without
    one."""
    names = list(ENGINES) if config.engine == "auto" else [config.engine]
    for name in names:
        if shutil.which(name, path=environ.get("PATH")):
            return ENGINES[name](name, config)
    wanted = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
    raise ConfigError(
        f"Agents work in containers, but {wanted} is not installed here.",
        hint="Install one (apt install podman runc; https://apptainer.org/docs), or name another: "
        "++environment.engine=sandbox needs no containers.",
    )
