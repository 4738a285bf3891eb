# SPDX-License-Identifier: Apache-2.0
"""What `ns start_server` does: a model, served in the foreground until Ctrl-C."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import msgspec

from newskills.base.errors import ConfigError, NewskillsError
from newskills.base.terminal import printable
from newskills.config.command_line import Parsed
from newskills.launch.clusters.config import ClusterConfig
from newskills.launch.experiments import Experiment
from newskills.models.serving import serve_argv
from newskills.pipelines.model_server import jobs
from newskills.pipelines.model_server.chat import chat_beside, chat_options
from newskills.pipelines.model_server.options import StartServerOptions
from newskills.pipelines.models import serve_spec
from newskills.pipelines.placement.cluster import cluster_of, target_cluster
from newskills.run.hosting.servers import EndedServer, serve_foreground


def run(parsed: Parsed[StartServerOptions]) -> int:
    """Serve until it is stopped; return the exit code. Raises ConfigError, ServerStartError."""
    cluster = _server_cluster(parsed)
    if cluster is not None:
        _, code = jobs.submit_and_follow(parsed, cluster)
        return code
    served = _serve_here(parsed.options)
    if served is None:
        return 0
    return served.exit_code


def serve_model(parsed: Parsed[StartServerOptions]) -> EndedServer | Experiment | None:
    """Serve for Python until it is stopped; return the server that has ended, on a cluster its experiment.

    Raises NewskillsError where the server ended with another code than 0.
    """
    cluster = _server_cluster(parsed)
    served: EndedServer | Experiment | None
    if cluster is not None:
        served, code = jobs.submit_and_follow(parsed, cluster)
    else:
        served = _serve_here(parsed.options)
        code = 0 if served is None else served.exit_code
    if code:
        raise NewskillsError(f"The server ended with exit code {code}.")
    return served


def _server_cluster(parsed: Parsed[StartServerOptions]) -> ClusterConfig | None:
    """Return the cluster whose job the server is; None: a process of this machine. Raises ConfigError."""
    options = parsed.options
    if options.server_address:
        raise ConfigError("--server_address is for a running server; leave it out to start one.")
    cluster = target_cluster(options, parsed.given)
    if cluster is None and options.with_sandbox:
        return cluster_of(options)
    return cluster


def _serve_here(options: StartServerOptions) -> EndedServer | None:
    """Serve on this machine; None for a dry run. Raises ConfigError, ServerStartError."""
    spec = msgspec.structs.replace(serve_spec(options), port=options.port, host=options.host)
    command = serve_argv(msgspec.structs.replace(spec, port=options.port or 5000))
    beside = None
    if options.launch_chat_interface:
        beside = chat_beside(command.key_variable, chat_options(options.extra_chat_args), _print_server_line)
    if options.dry_run:
        sys.stdout.write("\n".join(command.argv) + "\n")
        return None
    if options.log_dir:
        folder = Path(options.log_dir)
    else:
        folder = Path(tempfile.mkdtemp(prefix="newskills-server-"))
    return serve_foreground(
        spec, folder / "server.log", options.server_timeout, say=_print_server_line, beside=beside
    )


def _print_server_line(text: str) -> None:
    sys.stdout.write(printable(text.rstrip("\n")) + "\n")
    sys.stdout.flush()
