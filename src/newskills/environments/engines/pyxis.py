# SPDX-License-Identifier: Apache-2.0
"""Pyxis (https://github.com/NVIDIA/pyxis): options of `srun` that run a job's command in a container of enroot."""

from __future__ import annotations

from collections.abc import Iterable

from newskills.base.errors import ConfigError
from newskills.environments.engines.engine import Argv, option_if_set


def srun_options(image: str, *, mounts: Iterable[str], workdir: str, variables: Iterable[str]) -> Argv:
    """Return the options of `srun`. `variables` are names: lists of processes show no values."""
    return [
        f"--container-image={image}",
        f"--container-mounts={','.join(mounts)}",
        "--no-container-mount-home",
        *option_if_set("--container-workdir", workdir),
        f"--container-env={','.join(sorted(variables))}",
    ]


def format_mount(source: str, target: str) -> str:
    """Return what mounts the folder `source` as `target`. Raises ConfigError for a path that Pyxis cannot tell from
    two."""
    if any(mark in source + target for mark in ",:"):
        raise ConfigError(f"Containers cannot mount the folder '{source}': its path has a comma or colon in it.")
    return f"{source}:{target}"
