# SPDX-License-Identifier: Apache-2.0
"""argv of our own llama.cpp server: one process, this machine's CPU."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from newskills.base.errors import ConfigError
from newskills.models.kinds import LLAMACPP_KEY
from newskills.models.serving.spec import ServeCommand, ServeSpec, serve_command, start_words


def make(spec: ServeSpec) -> ServeCommand:
    """Return the command of the embedded server. Raises ConfigError for several nodes or GPUs: the embedded engine is
    built for CPUs."""
    if spec.num_nodes > 1:
        raise ConfigError("The llamacpp server runs on one node; leave out --server_nodes.")
    if spec.num_gpus:
        raise ConfigError("The llamacpp server runs on the CPU; leave out --server_gpus, or use vllm or sglang.")
    spec = msgspec.structs.replace(spec, host=spec.host or "127.0.0.1")
    return serve_command(
        spec,
        [
            *start_words(spec, spec.python, "-m", "newskills.models.serving.llamacpp_server"),
            *("--model", spec.model),
            *("--alias", spec.name),
            *("--host", str(spec.host)),
            *("--port", str(spec.port)),
            *("--slots", str(spec.slots)),
        ],
        key_variable=LLAMACPP_KEY,
    )


def prepare(spec: ServeSpec, say: Callable[[str], None]) -> None:
    """Ensure that the extra is installed and the weights are on disk. Raises NewskillsError."""
    from newskills.models.serving.weights import require_extra, resolve_weights

    require_extra("xllamacpp")
    resolve_weights(spec.model, say=say)
