# SPDX-License-Identifier: Apache-2.0
"""The server of a deployment, by its type; the commands of NVIDIA's launcher keep their meaning.

A `command` is shell text of the configuration's author. It finds the checkpoint at /checkpoint, which is mounted into
its container, and in PROC_ID and MASTER_IP which of the deployment's processes it is. Its port is the fixed
`deployment.port`; where a type starts its own command, the port is a free one.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence

from newskills.base.errors import ConfigError
from newskills.base.plan import Command, Ready, Ref, Script, Word
from newskills.launch.clusters.config import ClusterConfig, image_of
from newskills.launch.scripts.script import Context, ServerScript, ray_words
from newskills_evaluator.config import CompiledConfig, Deployment
from newskills_evaluator.deployments.environment import CommandEnvironment
from newskills_evaluator.deployments.kinds import DEPLOYMENTS, DeploymentProperties
from newskills_evaluator.deployments.place import mounts_of

CHECKPOINT = "/checkpoint"
SERVER, PROXY = "server", "proxy"
"""Names of commands; several instances are server-0, server-1, …"""
LOCAL_PATIENCE, SLURM_PATIENCE = 600.0, 3600.0
"""Seconds that a server may take until it answers, where the configuration does not say."""
_CHECKPOINT = re.compile(r"(?<![\w./-])/checkpoint(?![\w-])")

Maker = Callable[[CompiledConfig, ClusterConfig, str, int], Script]


def server_command(
    compiled: CompiledConfig, cluster: ClusterConfig, name: str, *, nodes: int, env: CommandEnvironment
) -> Command:
    """Return the command of the server called `name` on `nodes` nodes of its own. Raises ConfigError."""
    deployment = compiled.deployment
    if deployment.command:
        script = _command_script(compiled, cluster, name, nodes)
    else:
        make: Maker = DEPLOYMENTS.get(deployment.type)
        script = make(compiled, cluster, name, nodes)
    from msgspec.structs import replace

    before = [*compiled.place.startup_commands, env.exports(), deployment.pre_cmd]
    script = replace(
        script,
        argv=with_setup_commands(script.argv, before),
        env={**script.env, **env.plain},
        secrets=tuple(dict.fromkeys([*script.secrets, *env.secrets])),
    )
    return Command(
        name=name,
        script=script,
        container=deployment.image,
        role="server",
        mounts=tuple(_server_mounts(compiled)) if deployment.image else None,
        workdir="/" if deployment.image else None,
    )


def engine_script(compiled: CompiledConfig, cluster: ClusterConfig, name: str, nodes: int) -> Script:
    """Make the script of vLLM, SGLang or TensorRT-LLM, as `ns start_server` starts them. Raises ConfigError."""
    deployment = compiled.deployment
    if not (deployment.hf_model_handle or deployment.checkpoint_path):
        raise ConfigError(
            f"deployment: a {deployment.type} server needs a model.",
            hint="Add deployment.checkpoint_path: /path, or deployment.hf_model_handle: org/name.",
        )
    kind = DEPLOYMENTS.properties(deployment.type)
    server = ServerScript(
        kind.engine,
        deployment.hf_model_handle or _checkpoint_path(deployment),
        num_gpus=_gpus_per_node(deployment, nodes),
        num_nodes=nodes,
        server_args=[*_parallel_options(deployment, kind), *shlex.split(deployment.extra_args)],
        served_name=deployment.served_model_name,
        patience=_readiness_timeout(compiled),
    )
    return server.build(
        Context(
            cluster=cluster,
            own=name,
            image=image_of(cluster, deployment.image),
            components={server.serial: (name, True)},
        )
    )


def nim_script(compiled: CompiledConfig, cluster: ClusterConfig, name: str, nodes: int) -> Script:
    """Return the start command of a NIM container, which is its own; everything else about it is set in its
    variables."""
    deployment = compiled.deployment
    model = deployment.served_model_name or ""
    names = {"SERVED_MODEL_NAME": model, "NIM_MODEL_NAME": model, "NIM_SERVED_MODEL_NAME": model}
    port: Word = Ref(name, "port")
    return Script(
        argv=("/opt/nvidia/nvidia_entrypoint.sh", "/opt/nim/start_server.sh"),
        env={**{key: value for key, value in names.items() if value}, "NIM_SERVER_PORT": port, "MODEL_PORT": port},
        port=deployment.port,
        ready=_readiness_check(compiled),
    )


def generic_script(compiled: CompiledConfig, cluster: ClusterConfig, name: str, nodes: int) -> Script:
    """Raise ConfigError: without a command, a server of type generic cannot be started."""
    raise ConfigError(
        "deployment: type generic does not know how to start its server.",
        hint="Add deployment.command: COMMAND that listens on port deployment.port.",
    )


def with_setup_commands(argv: Sequence[Word], before: Sequence[str]) -> tuple[Word, ...]:
    """Put `argv` behind shell texts of the configuration's author; the first failure ends it. Its words are in
    no text."""
    texts = [text for text in before if text.strip()]
    if texts:
        return ("bash", "-c", "\n".join(["set -e", *texts, 'exec "$@"']), "bash", *argv)
    return tuple(argv)


def _command_script(compiled: CompiledConfig, cluster: ClusterConfig, name: str, nodes: int) -> Script:
    deployment = compiled.deployment
    text = deployment.command or ""
    if not deployment.image and deployment.checkpoint_path:
        there = shlex.quote(deployment.checkpoint_path)
        text = _CHECKPOINT.sub(lambda _: there, text)
    argv: tuple[Word, ...] = ("bash", "-c", text)
    joins_by_ray = DEPLOYMENTS.properties(deployment.type).joins_by_ray
    if joins_by_ray and nodes > 1:
        context = Context(cluster=cluster, own=name, image=image_of(cluster, deployment.image))
        argv = (*ray_words(nodes, context), *argv)
    instances = max(1, compiled.execution.num_instances)
    tasks = max(1, deployment.n_tasks // instances // nodes)
    several = nodes > 1 and (deployment.n_tasks // instances >= nodes or joins_by_ray)
    return Script(
        argv=argv,
        env={"PROC_ID": Ref(name, "rank"), "MASTER_IP": Ref(name, "node")},
        port=deployment.port,
        ready=_readiness_check(compiled),
        all_nodes=several,
        tasks_per_node=tasks,
    )


def _parallel_options(deployment: Deployment, kind: DeploymentProperties) -> list[str]:
    """Return options of the engine for what the section says about parallelism and memory."""
    sizes = (
        deployment.tensor_parallel_size,
        deployment.pipeline_parallel_size,
        deployment.data_parallel_size,
    )
    words = [word for flag, size in zip(kind.sizes, sizes, strict=True) if flag for word in (flag, str(size))]
    if deployment.gpu_memory_utilization is not None and kind.memory:
        words += [kind.memory, str(deployment.gpu_memory_utilization)]
    return words


def _gpus_per_node(deployment: Deployment, nodes: int) -> int:
    """Return the GPUs that one node of the deployment uses."""
    return max(1, deployment.num_gpus // nodes)


def _checkpoint_path(deployment: Deployment) -> str:
    if deployment.image:
        return CHECKPOINT
    return deployment.checkpoint_path or ""


def _readiness_check(compiled: CompiledConfig) -> Ready:
    path, own = compiled.deployment.health, DEPLOYMENTS.properties(compiled.deployment.type).health
    if own and path == Deployment().health:
        path = own
    return Ready(path=path, patience=_readiness_timeout(compiled))


def _readiness_timeout(compiled: CompiledConfig) -> float:
    default = SLURM_PATIENCE if compiled.execution.is_slurm else LOCAL_PATIENCE
    return compiled.execution.endpoint_readiness_timeout or default


def _server_mounts(compiled: CompiledConfig) -> list[str]:
    deployment = compiled.deployment
    mounts = mounts_of(compiled.execution.deployment_mounts, compiled)
    if deployment.checkpoint_path:
        mounts.append(f"{deployment.checkpoint_path}:{CHECKPOINT}:ro")
    return mounts
