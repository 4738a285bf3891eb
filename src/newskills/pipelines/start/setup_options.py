# SPDX-License-Identifier: Apache-2.0
"""The options of `ns setup`."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct

from newskills.pipelines.options import NAME, doc

FILE = {"group": "the file"}
SLURM = {"group": "slurm"}
JOBS = {"group": "what jobs get"}


class SetupOptions(Struct, frozen=True, kw_only=True):
    non_interactive: Annotated[bool, doc("ask nothing: use options and defaults")] = False
    test: Annotated[bool, doc("test the cluster after writing: ssh, sbatch or container engine, folders")] = True
    dry_run: Annotated[bool, doc("ask, check and show the file; write and test nothing")] = False
    pull_images: Annotated[bool, doc("pull the images now (executor local)")] = False
    executor: Annotated[
        Literal["none", "local", "slurm", "ray"] | None,
        doc("none: processes of this machine; local: containers of this machine; slurm; ray", FILE),
    ] = None
    name: Annotated[
        str | None, doc("name of the cluster, for --cluster (default: the executor)", {**FILE, **NAME})
    ] = None
    config_dir: Annotated[
        str | None, doc("folder for the file (default: NEMO_SKILLS_CONFIG_DIR, or ./cluster_configs)", FILE)
    ] = None
    overwrite: Annotated[bool, doc("replace an existing file of that name", FILE)] = False
    ssh_host: Annotated[
        str | None, doc("machine to submit from, or a Host of ~/.ssh/config (default: this machine)", SLURM)
    ] = None
    ssh_user: Annotated[str | None, doc("user name there (default: as in ~/.ssh/config)", SLURM)] = None
    ssh_identity: Annotated[str | None, doc("key file (default: as in ~/.ssh/config)", SLURM)] = None
    ssh_port: Annotated[int | None, doc("port there (default: as in ~/.ssh/config)", SLURM)] = None
    ray_address: Annotated[str | None, doc("address of Ray's dashboard, http://HOST:8265", {"group": "ray"})] = (
        None
    )
    account: Annotated[str | None, doc("account to charge", SLURM)] = None
    partition: Annotated[str | None, doc("partition (default: the cluster's default)", SLURM)] = None
    cpu_partition: Annotated[str | None, doc("partition for jobs without GPUs", SLURM)] = None
    qos: Annotated[str | None, doc("quality of service", SLURM)] = None
    time_limit: Annotated[str | None, doc("time limit in that partition, HH:MM:SS or D-HH:MM:SS", SLURM)] = None
    job_dir: Annotated[str | None, doc("folder for jobs, on a shared filesystem", JOBS)] = None
    engine: Annotated[
        Literal["podman", "docker"] | None, doc("container engine (default: the one installed)", JOBS)
    ] = None
    containers: Annotated[list[str], doc("NAME=IMAGE: nemo-skills, vllm, sglang, sandbox, …", JOBS)] = []
    mounts: Annotated[list[str], doc("src:dst[:ro|rw]", JOBS)] = []
    hf_home: Annotated[str | None, doc("folder of the Hugging Face cache, as jobs see it", JOBS)] = None
    env_vars: Annotated[list[str], doc("NAME (copied from your shell) or NAME=value", JOBS)] = []
