# SPDX-License-Identifier: Apache-2.0
"""What to serve, and the command that serves it. Commands are argv lists: no shell sees a word of them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from newskills.base.errors import ConfigError

DEFAULT_SLOTS = 16
ANY_INTERFACE = "0.0.0.0"  # noqa: S104 - engines in containers must be reached from other nodes


class ServeSpec(Struct, frozen=True, kw_only=True):
    """One model to serve on this node.

    host         interface to bind; None = all for engines in containers, loopback for llamacpp
    port         0 = the one who starts the server chooses a free one
    num_gpus     per node; 0 = the engine runs without
    extra_args   arguments for the engine, appended as they are; they win over our defaults
    entrypoint   other start command, words as a shell would split them
    served_name  name that clients send; None = `model`
    slots        requests that llamacpp serves at once
    node_rank    0-based, for engines that run one process per node
    master       host of rank 0, for these engines
    master_port  port there at which all ranks meet; several nodes need one
    python       interpreter in whose environment the engine is installed
    """

    model: str
    server_type: str
    host: str | None = None
    port: int = 0
    num_gpus: int = 0
    num_nodes: int = 1
    extra_args: list[str] = []
    entrypoint: str | None = None
    served_name: str | None = None
    slots: int = DEFAULT_SLOTS
    node_rank: int = 0
    master: str = "127.0.0.1"
    master_port: int = 0
    python: str = sys.executable

    @property
    def name(self) -> str:
        """What clients must send as the model's name."""
        return argument_value(self, "--served-model-name", "--alias") or self.served_name or self.model


class ServeCommand(Struct, frozen=True, kw_only=True):
    """How to start it, and how to tell that it is ready.

    env             variables on top of the starter's own; a PYTHONPATH goes in front of the inherited one
    health_path     a GET there answers 2xx once the model is loaded
    ready_offset    that GET goes to the port so many above the one of clients
    any_answer      any HTTP answer below 500 means ready, for engines without a health route
    tasks_per_node  processes of this command that each node starts
    key_variable    the engine answers only who sends the key that this variable holds; empty = it has no such way
    """

    argv: list[str]
    base_url: str
    env: dict[str, str] = {}
    health_path: str = "/health"
    ready_offset: int = 0
    any_answer: bool = False
    tasks_per_node: int = 1
    key_variable: str = ""


def serve_command(spec: ServeSpec, argv: Sequence[str], **settings: object) -> ServeCommand:
    """Make the command of `argv`, the user's arguments, and the address at which a client on this node reaches the
    server."""
    host = spec.host or ANY_INTERFACE
    reachable = "127.0.0.1" if host == ANY_INTERFACE else host
    settings = {"base_url": f"http://{reachable}:{spec.port}/v1", **settings}
    return ServeCommand(argv=[*argv, *spec.extra_args], **settings)  # type: ignore[arg-type]


def start_words(spec: ServeSpec, *default: str) -> list[str]:
    """Return the words that start the engine: `default`, or the user's entry point. Raises ConfigError."""
    if spec.entrypoint is None:
        return list(default)
    try:
        words = shlex.split(spec.entrypoint)
    except ValueError as error:
        raise ConfigError(f"--server_entrypoint cannot be split into words: {error}.") from error
    if not words:
        raise ConfigError("--server_entrypoint is empty.")
    if words[0].startswith("-") or words[0].endswith(".py"):
        return [spec.python, *words]
    return words


def installed_program(spec: ServeSpec, name: str) -> str:
    """Return the program `name` of the engine: beside the interpreter of its environment, else by PATH."""
    python = Path(spec.python)
    beside = python.with_name(name)
    if python.is_absolute() and beside.exists():
        return str(beside)
    return name


def argument_value(spec: ServeSpec, *flags: str) -> str | None:
    """Return the value that the user's arguments give to one of `flags` (the last one wins); None = not given.

    `--a-b 2`, `--a-b=2` and `--a_b 2` are the same flag; a flag without a value gives an empty text.
    """
    wanted = {flag.replace("_", "-") for flag in flags}
    text_told: str | None = None
    for index, word in enumerate(spec.extra_args):
        flag, equals, value = word.partition("=")
        if flag.startswith("-") and flag.replace("_", "-") in wanted:
            following = spec.extra_args[index + 1 : index + 2]
            if equals:
                text_told = value
            elif following:
                text_told = following[0]
            else:
                text_told = ""
    return text_told
