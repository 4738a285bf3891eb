# SPDX-License-Identifier: Apache-2.0
"""The pipeline of an invocation: a job for each task, and one that exports the results of all."""

from __future__ import annotations

import datetime
from collections.abc import Mapping

from msgspec import Struct

from newskills.base.errors import ConfigError
from newskills.base.plan import Command, CommandGroup, HardwareConfig, Job, Pipeline
from newskills.launch.clusters.config import ClusterConfig, python_of
from newskills_evaluator.artifacts import FACTS
from newskills_evaluator.config import CompiledConfig, EnvMap, EnvValue, EvaluationTask
from newskills_evaluator.deployments.balancer import proxy_script
from newskills_evaluator.deployments.clients import client_command, facts_of
from newskills_evaluator.deployments.environment import DeploymentVariables
from newskills_evaluator.deployments.exports import export_job
from newskills_evaluator.deployments.place import cluster_of, copies_of, hardware_of, output_dir
from newskills_evaluator.deployments.servers import PROXY, SERVER, server_command

TRUST = "NEMO_EVALUATOR_TRUST_PRE_CMD"
"""Set to 1 by who has read the shell commands that tasks of a configuration bring along."""


class DeploymentPlan(Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """What to submit. environ: of the submitting process, with the values of all secrets; it is never written down.

    folder  `<output_dir>/<time>-<invocation>`; the run directory of a task is `<folder>/<job's name>`
    """

    invocation: str
    pipeline: Pipeline
    cluster: ClusterConfig
    folder: str
    environ: Mapping[str, str]

    def __repr__(self) -> str:
        return f"Planned(invocation={self.invocation!r}, folder={self.folder!r})"


def plan_invocation(
    compiled: CompiledConfig, invocation: str, environ: Mapping[str, str], when: datetime.datetime | None = None
) -> DeploymentPlan:
    """Plan the jobs of an invocation. Raises ConfigError. `when`: the local time in the folder's name; None means
    now."""
    foreign = [task.name for task in compiled.tasks if task.benchmark is None]
    if foreign:
        raise ConfigError(
            f"newskills has no benchmark for {', '.join(foreign)}.",
            hint="Such tasks run where nemo-evaluator-launcher is installed: pip install nemo-evaluator-launcher",
        )
    when = when or datetime.datetime.now()
    folder = f"{output_dir(compiled)}/{when:%Y%m%d_%H%M%S}-{invocation}"
    variables = DeploymentVariables(environ)
    if compiled.profile:
        variables.environ.update(compiled.profile.env_vars)
    cluster = cluster_of(compiled)
    untrusted = [task.name for task in compiled.tasks if task.pre_cmd or task.post_cmd]
    if untrusted and environ.get(TRUST) != "1":
        raise ConfigError(
            f"These tasks have shell commands of their own (pre_cmd, post_cmd): {', '.join(untrusted)}.",
            hint=f"Read them, then confirm that you trust them: export {TRUST}=1",
        )
    deployment, execution = compiled.deployment, compiled.execution
    at_once = len(compiled.tasks) > 1 and not execution.is_slurm and execution.mode == "parallel"
    if at_once and deployment.is_served and deployment.command:
        raise ConfigError(
            f"execution.mode parallel would start {len(compiled.tasks)} servers on port {deployment.port} of this "
            "machine.",
            hint="Write execution.mode=sequential.",
        )
    jobs: list[Job] = []
    for task in compiled.tasks:
        after = (jobs[-1].name,) if jobs and _one_by_one(compiled) else ()
        jobs.append(_task_job(compiled, task, cluster, f"{folder}/{task.folder}", variables, after))
    if compiled.execution.auto_export:
        jobs.append(export_job(compiled, invocation, cluster, folder, jobs, variables))
    return DeploymentPlan(
        invocation=invocation,
        pipeline=Pipeline(name=f"evaluate-{invocation}", jobs=tuple(jobs)),
        cluster=cluster,
        folder=folder,
        environ=variables.environ,
    )


def _one_by_one(compiled: CompiledConfig) -> bool:
    return not compiled.execution.is_slurm and compiled.execution.mode == "sequential"


def _task_job(
    compiled: CompiledConfig,
    task: EvaluationTask,
    cluster: ClusterConfig,
    folder: str,
    variables: DeploymentVariables,
    after: tuple[str, ...],
) -> Job:
    hardware = hardware_of(compiled)
    groups = _server_commands(compiled, cluster, hardware, variables)
    names = [command.name for commands in groups for command in commands]
    env = variables.of({**_judge_key(task, variables), **task.env}, f"Task {task.name}")
    server_name = names[0] if names else None
    if len(names) > 1:
        groups[0].append(_proxy_command(compiled, cluster, names))
        server_name = PROXY
    client = client_command(compiled, task, cluster, folder, server=server_name, env=env)
    groups = groups or [[]]
    groups[0].append(client)
    return Job(
        name=task.folder,
        groups=tuple(
            CommandGroup(name=f"group-{number}", commands=tuple(commands), hardware=hardware)
            for number, commands in enumerate(groups)
        ),
        depends_on=after,
        files={FACTS: facts_of(compiled, task)},
        copies=copies_of(compiled.execution) if cluster.properties.has_time_limits else 0,
    )


def _judge_key(task: EvaluationTask, variables: DeploymentVariables) -> EnvMap:
    """Return the variable that `params.extra.judge` names for its key, as if it stood in the task's env_vars, too;
    empty where it names none that is set."""
    judge = task.params.extra.get("judge")
    if not isinstance(judge, dict):
        return {}
    name = judge.get("api_key")
    if isinstance(name, str) and name in variables.environ:
        return {name: EnvValue("host", name)}
    return {}


def _server_commands(
    compiled: CompiledConfig, cluster: ClusterConfig, hardware: HardwareConfig, variables: DeploymentVariables
) -> list[list[Command]]:
    """Make the commands of each group of nodes: one instance in each."""
    if not compiled.deployment.is_served:
        return []
    env = variables.of(compiled.deployment.env, "deployment")
    count = 1 if cluster.properties.this_machine else compiled.execution.num_instances
    if count == 1:
        names = [SERVER]
    else:
        names = [f"{SERVER}-{number}" for number in range(count)]
    return [[server_command(compiled, cluster, name, nodes=hardware.num_nodes, env=env)] for name in names]


def _proxy_command(compiled: CompiledConfig, cluster: ClusterConfig, names: list[str]) -> Command:
    image = compiled.execution.proxy_image
    python = python_of(cluster, None)
    script = proxy_script(PROXY, names, compiled.deployment.health, python=python, image=image)
    return Command(
        name=PROXY,
        script=script,
        container=image,
        role="server",
        mounts=() if image else None,
        workdir="/" if image else None,
    )
