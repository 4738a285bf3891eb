# SPDX-License-Identifier: Apache-2.0
"""A cluster config: where jobs run, in which containers, with which mounts and variables (`cluster_configs/*.yaml`)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

ALWAYS_PASSED = (
    "WANDB_API_KEY",
    "NVIDIA_API_KEY",
    "AZURE_OPENAI_API_KEY",
    "OPENAI_API_KEY",
    "GEMINI_API_KEY",
    "ANTHROPIC_API_KEY",
    "HF_TOKEN",
    "NGC_API_KEY",
)
"""Variables that go to every job where they are set: by name, their values never stand in a file or a command."""


class SshTunnel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to reach the machine that submits. Everything else is read from the user's own ssh configuration.

    pre_command  shell text that runs before each remote command (to load modules)
    """

    host: str
    user: str | None = None
    job_dir: str = ""
    identity: str | None = None
    port: int | None = None
    shell: str | None = None
    pre_command: str = ""


class ClusterConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One cluster, as its YAML file says; `name` is the file's.

    containers         name → image (`dockerfile:PATH`, a reference, or an absolute .sqsh path)
    mounts             `src:dst[:ro|rw]`, with ${VAR} and {VAR}
    env_vars           `NAME` (copied from the launching shell) or `NAME=value`
    required_env_vars  the same, and an error where the name is not set
    timeouts           partition → HH:MM:SS or D-HH:MM:SS
    job_dir            folder of experiments on a file system that all nodes see
    """

    executor: str = "none"
    name: str = "none"
    containers: dict[str, str] = {}
    mounts: list[str] = []
    env_vars: list[str] = []
    required_env_vars: list[str] = []
    skip_hf_home_check: bool = False
    account: str | None = None
    partition: str | None = None
    cpu_partition: str | None = None
    qos: str | None = None
    timeouts: dict[str, str] = {}
    default_timeout: str = "100-00:00:00"
    job_dir: str = ""
    job_name_prefix: str = ""
    dependency_type: Annotated[str, Meta(pattern="^after(any|ok|notok|corr)?$")] = "afterany"
    mail_type: str | None = None
    mail_user: str | None = None
    disable_gpus_per_node: bool = False
    ray_template: str | None = None
    ray: dict[str, Any] = {}
    jobs: dict[str, Any] = {}
    ssh_tunnel: SshTunnel | None = None
    engine: Annotated[
        Literal["docker", "podman"] | None,
        Meta(description="container engine of executor local; None: what is there"),
    ] = None
