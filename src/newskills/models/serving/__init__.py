# SPDX-License-Identifier: Apache-2.0
"""What serves a model: one file per engine that makes its argv, and the embedded llama.cpp server.

Add an engine: a file with `make(spec) -> ServeCommand`, and a row in `SERVERS` (or the entry point
`newskills.servers` of another distribution).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable

from newskills.base.errors import ConfigError
from newskills.base.registry import Registry, fold
from newskills.models.serving.spec import ServeCommand, ServeSpec

__all__ = ["SERVERS", "ServeCommand", "ServeSpec", "prepare", "serve_argv"]

SERVERS = Registry(
    "server type",
    {
        "llamacpp": "newskills.models.serving.llamacpp:make",
        "vllm": "newskills.models.serving.vllm:make",
        "vllm_multimodal": "newskills.models.serving.vllm:make",
        "vllm_dp_ray": "newskills.models.serving.vllm:make_data_parallel",
        "sglang": "newskills.models.serving.sglang:make",
        "trtllm": "newskills.models.serving.trtllm:make",
        "megatron": "newskills.models.serving.megatron:make",
        "asr_nim": "newskills.models.serving.speech:make",
        "tts_nim": "newskills.models.serving.speech:make",
        "generic": "newskills.models.serving.generic:make",
    },
    group="newskills.servers",
    aliases={"llama.cpp": "llamacpp", "llama_cpp": "llamacpp", "tensorrt_llm": "trtllm"},
)

PREPARERS = {"llamacpp": "newskills.models.serving.llamacpp:prepare"}
"""What has to be there before the server starts, so that fetching does not count as a slow start."""

NOT_STARTED_HERE = frozenset({"openai", "azureopenai", "azure", "gemini", "anthropic", "nim", "litellm", "custom"})


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


def prepare(spec: ServeSpec, say: Callable[[str], None]) -> None:
    """Fetch what the engine of `spec` needs on this machine; `say` gets lines about what takes long.

    Raises NewskillsError.
    """
    _check_type(spec.server_type)
    if (where := PREPARERS.get(SERVERS.resolve(spec.server_type))) is not None:
        module, _, attr = where.partition(":")
        getattr(importlib.import_module(module), attr)(spec, say)


def _check_type(server_type: str) -> None:
    if fold(server_type) in NOT_STARTED_HERE:
        raise ConfigError(
            f"A server of type '{server_type}' is a hosted service and cannot be started here.",
            hint="Give its --server_address, or leave out --server_gpus.",
        )
