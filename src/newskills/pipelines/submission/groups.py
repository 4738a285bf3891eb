# SPDX-License-Identifier: Apache-2.0
"""The commands of a job and what they need: client, server and sandbox, on the same nodes or apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from newskills.base.plan import Ref, Word
from newskills.launch.declarative import Command, CommandGroup
from newskills.launch.scripts.script import (
    Context,
    JobScript,
    SandboxScript,
    ServerScript,
)
from newskills.models.serving import OWN_CONTAINER as OWN_CONTAINER
from newskills.models.serving import ServeSpec, server_properties
from newskills.pipelines.models import ROLE, one_of
from newskills.pipelines.options import ModelOptions, PlacementOptions
from newskills.pipelines.placement.cluster import hardware_of
from newskills.run.planning.config import REPLICA
from newskills_sandbox.variables import HOST_VARIABLE, PORT_VARIABLE

MAIN, SERVER, SANDBOX = "main", "server", "sandbox"
"""Names of the commands of a job: those of its logs."""


def groups_of(
    client: JobScript | Command,
    options: ModelOptions,
    *,
    server: ServerScript | None,
    sandbox: SandboxScript | None,
    **needs: Any,
) -> list[CommandGroup]:
    """Put server, sandbox and client on the same nodes, or (`--heterogeneous`) the server on nodes of its own.

    needs  further settings of the client's hardware
    """
    if isinstance(client, JobScript):
        client = Command(client, container=main_container(options), name=MAIN)
    beside = [client]
    if sandbox is not None:
        mounts = sandbox_mounts(options.sandbox_mounts)
        container = options.sandbox_container or "sandbox"
        beside.insert(0, Command(sandbox, container=container, name=SANDBOX, mounts=mounts))
    if server is None:
        return [CommandGroup(beside, hardware=hardware_of(options, **needs), name=MAIN)]
    served = Command(server, container=container_of(server, options), name=SERVER)
    needed = hardware_of(options, gpus=server.num_gpus, nodes=server.num_nodes)
    if options.heterogeneous:
        return [
            CommandGroup([served], hardware=needed, name=SERVER),
            CommandGroup(beside, hardware=hardware_of(options, **needs), name=MAIN),
        ]
    if needs:
        gpus, nodes = max(server.num_gpus, needs.pop("gpus", 0)), max(server.num_nodes, needs.pop("nodes", 1))
        needed = hardware_of(options, gpus=gpus, nodes=nodes, **needs)
    return [CommandGroup([served, *beside], hardware=needed, name=MAIN)]


def sandbox_mounts(texts: Sequence[str]) -> list[str] | None:
    """Return the mounts of `--sandbox_mounts`, read-only where they do not say `:rw`; None: there are none."""
    mounts = [mount.strip() for text in texts for mount in text.split(",")]
    return [mount if mount.endswith((":ro", ":rw")) else f"{mount}:ro" for mount in mounts] or None


def server_groups(servers: Mapping[str, ServerScript], options: ModelOptions) -> list[CommandGroup]:
    """Return the servers of further models, by role, each on nodes of its own."""
    groups = []
    for role, server in servers.items():
        number = 0 if role.startswith(REPLICA) else int(role.removeprefix(ROLE))
        container = container_of(server, one_of(options, number))
        name = f"{SERVER}-{role}"
        needed = hardware_of(options, gpus=server.num_gpus, nodes=server.num_nodes)
        groups.append(CommandGroup([Command(server, container=container, name=name)], hardware=needed, name=name))
    return groups


def job_group(script: JobScript, options: PlacementOptions, **needs: Any) -> CommandGroup:
    """Return a group of one client; `needs`: settings of its hardware."""
    client = Command(script, container=main_container(options), name=MAIN)
    return CommandGroup([client], hardware=hardware_of(options, **needs), name=MAIN)


def container_of(server: ServerScript, options: ModelOptions) -> str:
    """Return the container of a server."""
    usual = server_properties(server.server_type).container or server.server_type
    return (options.server_container or [usual])[0]


def main_container(options: PlacementOptions) -> str:
    return options.main_container or OWN_CONTAINER


def server_script(spec: ServeSpec, options: ModelOptions) -> ServerScript:
    return ServerScript(
        server_type=spec.server_type,
        model_path=spec.model,
        num_gpus=spec.num_gpus,
        num_nodes=spec.num_nodes,
        server_args=spec.extra_args,
        server_entrypoint=spec.entrypoint,
        served_name=spec.served_name,
        port=spec.port or None,
        patience=options.server_timeout,
    )


def sandbox_script(options: ModelOptions) -> SandboxScript | None:
    """Return the script of `--with_sandbox`, None without; clients find the sandbox by reference, so an address in the
    overrides is left out."""
    if not options.with_sandbox:
        return None
    overrides = [
        word
        for word in options.sandbox_env_overrides
        if word.partition("=")[0] not in (HOST_VARIABLE, PORT_VARIABLE)
    ]
    return SandboxScript(keep_mounts=options.keep_mounts_for_sandbox, env_overrides=overrides)


def sandbox_env(sandbox: SandboxScript | None, context: Context) -> dict[str, Word]:
    """Return the variables that tell clients where the sandbox is."""
    if sandbox is None:
        return {}
    return {HOST_VARIABLE: context.ref(sandbox, "host"), PORT_VARIABLE: context.ref(sandbox, "port")}


def meeting_env(nodes: int, context: Context) -> dict[str, Word]:
    """Return the variables by which a command that runs on several nodes is told which one it is on and where they
    meet: the names that torch reads."""
    return {
        "NNODES": str(nodes),
        "NODE_RANK": Ref(context.own, "rank"),
        "MASTER_ADDR": Ref(context.own, "node"),
        "MASTER_PORT": Ref(context.own, "meeting_port"),
    }
