# SPDX-License-Identifier: Apache-2.0
"""What serves a model: one file per engine that makes its argv, and the embedded llama.cpp server.

Add an engine: a file with `make(spec) -> ServeCommand`, and a row in `SERVERS` (or the entry point
`newskills.servers` of another distribution).
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from newskills.base.errors import ConfigError
from newskills.base.registry import DescribedRegistry, load_function
from newskills.models.kinds import MODELS
from newskills.models.serving.spec import DEFAULT_SLOTS, ServeCommand, ServeSpec

__all__ = [
    "OWN_CONTAINER",
    "SERVERS",
    "ServeCommand",
    "ServeSpec",
    "ServerProperties",
    "prepare",
    "serve_argv",
    "server_properties",
]


class ServerProperties(Struct, frozen=True, kw_only=True):
    """What is particular about a server that newskills starts.

    on_cpu        it needs no GPU, and answers `slots` requests at once
    takes_gpus    it uses those of this machine all the same, unless told otherwise
    slots         requests that it answers at once, or puts in an order of its own
    serves_file   the weights are one .gguf file, not a folder
    loopback      it listens on this machine only, unless a host is given
    joins_by_ray  its one process reaches the other nodes through Ray
    container     name of its container in cluster configs; empty: the server type
    packages      modules that it needs in this Python, of the extra newskills[local]
    prepare       "module:function" of what has to be there before it starts, so that fetching does not count as a slow
                  start
    batches       "module:function" of the command that answers a file of requests without a server; empty: it has none
    """

    on_cpu: bool = False
    takes_gpus: bool = False
    slots: int = DEFAULT_SLOTS
    serves_file: bool = False
    loopback: bool = False
    joins_by_ray: bool = False
    container: str = ""
    packages: tuple[str, ...] = ()
    prepare: str = ""
    batches: str = ""


OWN_CONTAINER = "nemo-skills"
"""Name in cluster configs of the container that has newskills."""
_BY_RAY = ServerProperties(joins_by_ray=True)
_VLLM = ServerProperties(joins_by_ray=True, batches="newskills.models.serving.vllm:batch_words")

SERVERS = DescribedRegistry(
    "server type",
    {
        "llamacpp": (
            "newskills.models.serving.llamacpp:make",
            ServerProperties(
                on_cpu=True,
                serves_file=True,
                loopback=True,
                container=OWN_CONTAINER,
                packages=("xllamacpp", "gguf"),
                prepare="newskills.models.serving.llamacpp:prepare",
            ),
        ),
        "transformers": (
            "newskills.models.serving.hf.command:make",
            ServerProperties(
                on_cpu=True,
                takes_gpus=True,
                slots=128,
                loopback=True,
                container=OWN_CONTAINER,
                prepare="newskills.models.serving.hf.command:prepare",
            ),
        ),
        "vllm": ("newskills.models.serving.vllm:make", _VLLM),
        "vllm_multimodal": ("newskills.models.serving.vllm:make", _VLLM),
        "vllm_dp_ray": ("newskills.models.serving.vllm:make_data_parallel", _BY_RAY),
        "sglang": ("newskills.models.serving.sglang:make", ServerProperties()),
        "trtllm": ("newskills.models.serving.trtllm:make", ServerProperties()),
        "megatron": ("newskills.models.serving.megatron:make", ServerProperties()),
        "asr_nim": ("newskills.models.serving.speech:make", ServerProperties()),
        "tts_nim": ("newskills.models.serving.speech:make", ServerProperties()),
        "generic": ("newskills.models.serving.generic:make", ServerProperties(container=OWN_CONTAINER)),
    },
    usual=ServerProperties(),
    group="newskills.servers",
    aliases={"llama.cpp": "llamacpp", "llama_cpp": "llamacpp", "tensorrt_llm": "trtllm"},
)


def serve_argv(spec: ServeSpec) -> ServeCommand:
    """Return the command that serves `spec` on one node; `spec.port` must have been chosen.

    Raises UnknownNameError or ConfigError.
    """
    _check_type(spec.server_type)
    make = SERVERS.get(spec.server_type)
    if not 0 < spec.port < 65536:
        raise ConfigError(f"{spec.port} is not a port to serve on (1 to 65535).")
    if spec.num_gpus < 0 or spec.num_nodes < 1:
        raise ConfigError(
            f"Cannot serve on {spec.num_nodes} nodes with {spec.num_gpus} GPUs each: --server_nodes must be "
            "at least 1, --server_gpus at least 0."
        )
    made: ServeCommand = make(spec)
    return made


def prepare_server(spec: ServeSpec, say: Callable[[str], None]) -> None:
    """Fetch what the engine of `spec` needs on this machine; `say` gets lines about what takes long.

    Raises NewskillsError.
    """
    if place := server_properties(spec.server_type).prepare:
        load_function(place)(spec, say)


def server_properties(server_type: str) -> ServerProperties:
    """Return what is particular about a server of this type. Raises UnknownNameError, ConfigError for a hosted
    service."""
    _check_type(server_type)
    return SERVERS.properties(server_type)


def _check_type(server_type: str) -> None:
    if server_type in MODELS and server_type not in SERVERS:
        service = "is a hosted service and " if MODELS.properties(server_type).hosted else ""
        raise ConfigError(
            f"A server of type '{server_type}' {service}cannot be started here.",
            hint="Give its --server_address, or leave out --server_gpus.",
        )
