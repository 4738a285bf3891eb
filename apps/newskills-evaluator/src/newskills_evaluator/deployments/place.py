# SPDX-License-Identifier: Apache-2.0
"""Where the jobs of a configuration run: the cluster that execution section and profile describe, and its hardware."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from newskills.base.errors import ConfigError
from newskills.base.plan import HardwareConfig
from newskills.launch.clusters.config import ClusterConfig, SshTunnel
from newskills.launch.clusters.times import seconds_of
from newskills_evaluator.config import CompiledConfig, EvaluationTask, ExecutionSection
from newskills_evaluator.deployments.kinds import DEPLOYMENTS

MAX_COPIES = 4
"""Jobs that wait to go on where the time limit stops a task; `ns resume` submits further ones."""
_GRES = re.compile(r"gpu(?::[^:,()]+)?:(\d+)\Z", re.ASCII)


def cluster_of(compiled: CompiledConfig) -> ClusterConfig:
    """Return the cluster config. Raises ConfigError for an executor that newskills does not have."""
    execution, profile = compiled.execution, compiled.place
    names = list(profile.env_vars)
    if compiled.runs_here:
        images = compiled.deployment.image or any(client_image(compiled, task) for task in compiled.tasks)
        return ClusterConfig(
            executor="local" if images else "none",
            name=profile.name or "local",
            env_vars=names,
            skip_hf_home_check=True,
        )
    if not execution.is_slurm:
        raise ConfigError(
            f"execution.type '{execution.type}' is not supported by newskills.",
            hint="Use local or slurm.",
        )
    return ClusterConfig(
        executor="slurm",
        name=profile.name or execution.hostname or "slurm",
        account=execution.account or profile.account,
        partition=execution.partition or profile.partition,
        env_vars=names,
        default_timeout=execution.walltime or profile.time,
        job_dir=profile.remote_job_dir or execution.output_dir,
        skip_hf_home_check=True,
        ssh_tunnel=_ssh_tunnel(compiled),
    )


def client_image(compiled: CompiledConfig, task: EvaluationTask | None = None) -> str | None:
    """Return the image in which `task`, or the export of results, runs; it must have newskills. None means no
    container."""
    if task is not None and task.container:
        return task.container
    if compiled.place.is_local:
        return None
    return compiled.place.container_image


def hardware_of(compiled: CompiledConfig) -> HardwareConfig:
    """Return the hardware of one instance of the deployment; without one, of the client: no GPUs, in the
    partition for such jobs."""
    execution, deployment = compiled.execution, compiled.deployment
    kwargs: dict[str, Any] = dict(execution.sbatch)
    if comment := (compiled.config.get("execution") or {}).get("sbatch_comment"):
        kwargs.setdefault("comment", comment)
    if compiled.runs_here:
        gpus = 0
        if deployment.image and DEPLOYMENTS.properties(deployment.type).takes_gpus:
            gpus = deployment.num_gpus
        return HardwareConfig(num_gpus=gpus)
    nodes, gres, partition = 1, "", execution.cpu_partition or execution.partition
    if deployment.is_served:
        nodes, gres, partition = _nodes_per_instance(execution), execution.gres or "", execution.partition
    gpus = _count_gpus(gres)
    if gres and not gpus:
        kwargs.setdefault("gres", gres)
    elif gres and gres.count(":") > 1:
        kwargs |= {"gpus-per-node": False, "gres": gres}
    return HardwareConfig(
        num_nodes=nodes,
        num_gpus=gpus,
        num_tasks=execution.ntasks_per_node,
        partition=partition or None,
        account=execution.account,
        time_limit=execution.walltime,
        sbatch_kwargs={key.replace("_", "-"): value for key, value in kwargs.items()},
    )


def copies_of(execution: ExecutionSection) -> int:
    """Return the number of further jobs in the chain of a task, for what `max_walltime` allows beyond
    `walltime`. Raises ConfigError."""
    if not execution.is_slurm or not execution.walltime or not execution.max_walltime:
        return 0
    return min(MAX_COPIES, max(0, -(-seconds_of(execution.max_walltime) // seconds_of(execution.walltime)) - 1))


def output_dir(compiled: CompiledConfig) -> str:
    """Return the absolute folder of results, as the machine sees it on which the tasks run. Raises ConfigError."""
    folder = compiled.execution.output_dir
    if compiled.is_local or not _ssh_tunnel(compiled):
        return str(Path(folder).expanduser().absolute())
    if not folder.startswith("/"):
        raise ConfigError(f"execution.output_dir must be an absolute path of the cluster, not '{folder}'.")
    return folder.rstrip("/")


def mounts_of(mounts: Mapping[str, str], compiled: CompiledConfig) -> list[str]:
    """Return `source:target[:ro]` of a section's mounts, and of the profile's."""
    own = [f"{source}:{target}" for source, target in mounts.items()]
    return [*own, *compiled.place.mounts]


def _ssh_tunnel(compiled: CompiledConfig) -> SshTunnel | None:
    """Return how to reach the machine that submits jobs; None means this machine."""
    execution, profile = compiled.execution, compiled.place
    if compiled.profile is not None and profile.tunnel != "ssh":
        return None
    host = profile.host or execution.hostname
    if not host or host in ("localhost", "127.0.0.1"):
        return None
    identity = None
    if profile.identity:
        identity = str(Path(profile.identity).expanduser())
    return SshTunnel(
        host=host,
        user=profile.user or execution.username or None,
        identity=identity,
        pre_command=str(profile.settings.get("pre_command") or ""),
    )


def _nodes_per_instance(execution: ExecutionSection) -> int:
    """Return the nodes of one instance. Raises ConfigError."""
    if execution.num_instances < 1 or execution.num_nodes % execution.num_instances:
        raise ConfigError(
            f"execution.num_nodes {execution.num_nodes} cannot be split evenly over {execution.num_instances} "
            "instances.",
            hint="Choose a num_nodes that is a multiple of num_instances.",
        )
    return execution.num_nodes // execution.num_instances


def _count_gpus(gres: str) -> int:
    match = _GRES.match(gres)
    if match:
        return int(match[1])
    return 0
