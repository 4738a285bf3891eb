# SPDX-License-Identifier: Apache-2.0
"""Where agents act, and what each environment may use (`++environment.*`)."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class EnvironmentConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Environments of agents: an engine, and limits for each environment."""

    engine: Annotated[
        str,
        Meta(
            description="program that runs the containers; auto: the first of podman, docker, apptainer, singularity "
            "and enroot that is installed; sandbox: no image, an isolated session with the programs of this machine"
        ),
    ] = "auto"
    image: Annotated[str, Meta(description="image for all tasks, instead of the one that each row names")] = ""
    container_formatter: Annotated[
        str,
        Meta(
            description="where the images of the tasks are, with fields of the row in braces: "
            "/images/{instance_id}.sif; default: what the row says"
        ),
    ] = ""
    network: Annotated[bool, Meta(description="let commands use the network")] = False
    memory_mb: Annotated[int, Meta(ge=64, description="memory limit of one environment in MB")] = 4096
    processes: Annotated[int, Meta(ge=16, description="largest number of processes and threads in it")] = 1024
    disk_mb: Annotated[
        int, Meta(ge=0, description="disk that commands may fill in one environment in MB; 0 = no limit")
    ] = 10240
    cpus: Annotated[float, Meta(ge=0, description="processor cores for one environment; 0 = all")] = 0.0
    at_once: Annotated[int, Meta(ge=1, description="largest number of environments at the same time")] = 64
    warm: Annotated[
        int,
        Meta(
            ge=0,
            description="environments of the next tasks that are started ahead, as far as at_once and free memory "
            "allow; 0 = none",
        ),
    ] = 2
    start_timeout: Annotated[
        float, Meta(gt=0, description="seconds that starting one may take, with the download of its image")
    ] = 1200.0
