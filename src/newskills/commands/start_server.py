# SPDX-License-Identifier: Apache-2.0
"""`ns start_server`: a model, served in the foreground until Ctrl-C."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec

from newskills.base.errors import ConfigError, NewskillsError
from newskills.base.terminal import printable
from newskills.commands._cluster import cluster_of, placed
from newskills.commands._command import Command
from newskills.commands._model import serve_spec
from newskills.commands._options import OLD_NAMES, ModelOptions, doc
from newskills.config.command_line import Parsed
from newskills.models.serving import serve_argv
from newskills.run.servers import serve_foreground

if TYPE_CHECKING:
    pass


class Options(ModelOptions, frozen=True, kw_only=True):
    port: Annotated[int, doc("port to serve on; 0 = a free one")] = 0
    get_random_port: Annotated[bool, doc("a free port, which is the default")] = False
    host: Annotated[str | None, doc("interface to bind (llamacpp: this machine only; engines for GPUs: all)")] = (
        None
    )
    create_tunnel: Annotated[bool, doc("reach the server of a cluster at a port of this machine, through ssh")] = (
        False
    )
    server_tunnel_port: Annotated[int, doc("that port")] = 5000
    sandbox_tunnel_port: Annotated[int, doc("the same for the sandbox")] = 6000
    launch_chat_interface: Annotated[
        bool, doc("also a page to chat with the model in the browser, at http://127.0.0.1:7860")
    ] = False
    extra_chat_args: Annotated[
        str,
        doc(
            "settings of that page: ++port, ++host, ++system_message, ++temperature, ++top_p, ++tokens_to_generate"
        ),
    ] = ""


def run(parsed: Parsed[Options]) -> int:
    options = parsed.options
    if options.server_address:
        raise ConfigError("--server_address names a server that runs already; leave it out to start one.")
    if (cluster := placed(options, parsed.given)) is not None or options.with_sandbox:
        from newskills.commands import _serving

        return _serving.run(parsed, cluster or cluster_of(options))
    spec = msgspec.structs.replace(serve_spec(options), port=options.port, host=options.host)
    command = serve_argv(msgspec.structs.replace(spec, port=options.port or 5000))
    beside = None
    if options.launch_chat_interface:
        from newskills.commands._chat import chat_beside, chat_options

        beside = chat_beside(command.key_variable, chat_options(options.extra_chat_args), _say)
    if options.dry_run:
        sys.stdout.write("\n".join(command.argv) + "\n")
        return 0
    folder = Path(options.log_dir) if options.log_dir else Path(tempfile.mkdtemp(prefix="newskills-server-"))
    return serve_foreground(spec, folder / "server.log", options.server_timeout, say=_say, beside=beside)


def result(parsed: Parsed[Options]) -> None:
    if code := run(parsed):
        raise NewskillsError(f"The server ended with exit code {code}.")


def _say(text: str) -> None:
    sys.stdout.write(printable(text.rstrip("\n")) + "\n")
    sys.stdout.flush()


COMMAND = Command(
    name="start_server",
    summary="Serve a model in the foreground: its address is printed once it answers, then its log; Ctrl-C stops "
    "everything that was started.",
    options=Options,
    run=run,
    result=result,
    prepare="newskills.commands._serving:prepare",
    aliases=OLD_NAMES,
    examples=(
        "ns start_server --server_type=llamacpp --model=smollm2 --port=5000",
        "ns start_server --cluster=local --server_type=vllm --model=meta-llama/Llama-3.1-8B-Instruct --num_gpus=1",
        "ns start_server --cluster=slurm --server_type=vllm --model=/models/small --server_gpus=8 --create_tunnel",
    ),
)
