# SPDX-License-Identifier: Apache-2.0
"""`ns start_server` as a job: submitted, its log on the screen, Ctrl-C or a closed terminal ends it."""

from __future__ import annotations

import contextlib
import os
import sys
import threading

from msgspec.structs import replace

from newskills.base.errors import ConfigError, RemoteError, ServerStartError
from newskills.base.terminal import print_now
from newskills.config.command_line import Parsed
from newskills.launch.clusters.config import ClusterConfig
from newskills.launch.declarative import Command
from newskills.launch.experiments import Experiment
from newskills.launch.machines.ssh import RemoteMachine, shell_of
from newskills.launch.scripts.script import ServerScript
from newskills.pipelines.model_server.chat import chat_options, chat_with
from newskills.pipelines.model_server.options import StartServerOptions
from newskills.pipelines.models import serve_spec
from newskills.pipelines.submission.following import (
    StoppedByUser,
    ended_like_ctrl_c,
    follow_experiment,
    stopped_by_ctrl_c,
)
from newskills.pipelines.submission.groups import (
    SANDBOX,
    SERVER,
    container_of,
    groups_of,
    sandbox_script,
    server_script,
)
from newskills.pipelines.submission.job_command import planned_options
from newskills.pipelines.submission.plan import Plan
from newskills.pipelines.submission.prepared import PreparedSubmission, prepare_submission
from newskills.pipelines.submission.submit import say_submitted, submit_prepared

LOOK_EVERY = 1.0
"""Seconds."""
_ADDRESS = """\
getent hosts "$1" >/dev/null && exec printf %s "$1"
shown=$(scontrol show node -o "$1" 2>/dev/null) && [[ $shown =~ NodeAddr=([^ ]+) ]] && printf %s "${BASH_REMATCH[1]}"
"""
"""Prints how a login node reaches the node $1, whose name only Slurm may know."""


def submit_and_follow(parsed: Parsed[StartServerOptions], cluster: ClusterConfig) -> tuple[Experiment | None, int]:
    """Submit, follow until the server has ended, and return (the experiment, None for a dry run; the exit code).

    Raises ConfigError (a tunnel without ssh), RemoteError.
    """
    options = parsed.options
    if options.launch_chat_interface:
        chat_options(options.extra_chat_args)
        if cluster.ssh_tunnel is not None:
            options = replace(options, create_tunnel=True)
    if options.create_tunnel and cluster.ssh_tunnel is None:
        raise ConfigError(
            f"--create_tunnel: cluster '{cluster.name}' is not reached by ssh (it has no ssh_tunnel)."
        )
    with ended_like_ctrl_c():
        experiment = submit_prepared(prepare(parsed, cluster))
        if experiment is None:
            return None, 0
        try:
            with stopped_by_ctrl_c(experiment):
                say_submitted(experiment)
                return experiment, _follow_server(experiment, options, cluster)
        except StoppedByUser:
            sys.stdout.write("Stopped.\n")
            return experiment, 0


def _follow_server(experiment: Experiment, options: StartServerOptions, cluster: ClusterConfig) -> int:
    """Follow the server until it has ended."""
    over = threading.Event()
    server = server_script(serve_spec(options, elsewhere=not cluster.properties.this_machine), options)
    watcher = threading.Thread(target=_announce_addresses, args=(experiment, options, server, over), daemon=True)
    watcher.start()
    try:
        return follow_experiment(experiment, show=(SERVER, SANDBOX))
    finally:
        over.set()
        watcher.join()


def prepare(parsed: Parsed[StartServerOptions], cluster: ClusterConfig) -> PreparedSubmission:
    """Prepare one job, which lasts as long as the server. Raises ConfigError."""
    options = planned_options(parsed)
    spec = serve_spec(options, elsewhere=not cluster.properties.this_machine)
    server = server_script(spec, options)
    if options.port:
        server.port = options.port
    sandbox = sandbox_script(options)
    client = Command(server, container=container_of(server, options), name=SERVER, role="client")
    groups = groups_of(client, options, server=None, sandbox=sandbox, gpus=spec.num_gpus, nodes=spec.num_nodes)
    plan = Plan()
    name = options.expname or "server"
    plan.add(name, groups, copies=options.dependent_jobs)
    return prepare_submission(name, plan, cluster, options, {"model": spec.model})


def _announce_addresses(
    experiment: Experiment, options: StartServerOptions, server: ServerScript, over: threading.Event
) -> None:
    """Print where the server and the sandbox listen, once they have ports, and open the tunnels to them."""
    shell = shell_of(experiment.cluster, os.environ)
    ports = {SERVER: options.server_tunnel_port, SANDBOX: options.sandbox_tunnel_port}
    [job] = experiment.jobs
    waiting = [name for name in job.commands if name in ports]
    with contextlib.ExitStack() as tunnels:
        while not over.wait(LOOK_EVERY):
            if not waiting:
                continue
            texts = shell.read([f"{job.folder}/ports/{name}" for name in waiting])
            for name, text in zip(list(waiting), texts, strict=True):
                host, _, port = (text or "").partition("\n")[0].partition(" ")
                if not port.isdigit():
                    continue
                waiting.remove(name)
                address = f"http://{host}:{port}"
                where = f"{name} listens at {address}"
                if options.create_tunnel and isinstance(shell, RemoteMachine):
                    where += _open_tunnel(tunnels, shell, ports[name], (host, int(port)))
                    address = f"http://127.0.0.1:{ports[name]}"
                print_now(f"{where} (it answers after loading); Ctrl-C stops it")
                if name == SERVER and options.launch_chat_interface:
                    _open_chat_page(tunnels, address, server, options)


def _open_chat_page(
    stack: contextlib.ExitStack, address: str, server: ServerScript, options: StartServerOptions
) -> None:
    try:
        chat = chat_options(options.extra_chat_args)
        stack.enter_context(chat_with(address, server.name, server.key_variable, chat, print_now))
    except ServerStartError as error:
        print_now(f"No chat page is started: {error}")


def _open_tunnel(tunnels: contextlib.ExitStack, shell: RemoteMachine, local: int, there: tuple[str, int]) -> str:
    host, port = there
    try:
        address = shell.run(["bash", "-c", _ADDRESS, "bash", host]).out.strip()
        tunnels.enter_context(shell.forward_port(local, address or host, port))
    except RemoteError as error:
        return f", without a tunnel: {error}"
    return f", and here at http://127.0.0.1:{local}"
