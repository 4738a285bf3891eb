# SPDX-License-Identifier: Apache-2.0
"""Models behind endpoints: one file per wire format, plus what serves a model on this machine (`serving/`).

Add a backend: a file with `make(config, *, concurrency, environ) -> Model`, and a row in `MODELS` of `kinds.py` (or
the entry point `newskills.models` of another distribution).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from newskills.base.errors import ConfigError
from newskills.base.registry import fold
from newskills.models.kinds import MODELS as MODELS

if TYPE_CHECKING:
    from newskills.base.protocols import Model
    from newskills.base.records import Inference
    from newskills.models.config import ServerConfig

REMOVED = {
    "nemo": (
        "newskills cannot serve or convert .nemo checkpoints: export the model to a Hugging Face folder "
        "with the NeMo release that wrote it, then use --server_type=vllm; --server_type=megatron serves "
        "a Megatron checkpoint."
    ),
}
"""Server types of earlier versions → what to do instead."""


def make_model(config: ServerConfig, *, concurrency: int, environ: Mapping[str, str]) -> Model:
    """Return the model that `config` describes, ready for `concurrency` requests at once. Sends nothing.

    Raises UnknownNameError or ConfigError for the server type, ConfigError for a missing or wrong setting,
    AuthError naming the variable for a missing key.
    """
    if config.batch_api:
        raise ConfigError(
            "Batches take hours, so they are for evaluations and generations only.",
            hint="Leave out ++server.batch_api.",
        )
    if config.more_base_urls:
        return _routed_model(config, concurrency, environ)
    if (instead := REMOVED.get(fold(config.server_type))) is not None:
        raise ConfigError(f"The server type '{config.server_type}' no longer exists.", hint=instead)
    canonical = MODELS.resolve(config.server_type)
    maker = MODELS.get(canonical)
    model: Model = maker(
        msgspec.structs.replace(config, server_type=canonical), concurrency=concurrency, environ=environ
    )
    if config.max_tokens_name is not None and MODELS.properties(canonical).dialect is None:
        raise ConfigError(
            f"{canonical} does not accept server.max_tokens_name.", hint="It is for OpenAI-compatible endpoints."
        )
    server = config.ssh_server or environ.get("NEMO_SKILLS_SSH_SERVER")
    if server:
        _route_through(model, server, config.ssh_key_path or environ.get("NEMO_SKILLS_SSH_KEY_PATH"))
    return model


def _routed_model(config: ServerConfig, concurrency: int, environ: Mapping[str, str]) -> Model:
    from newskills.models.routing import RoutedModel

    if config.base_url is None:
        raise ConfigError(
            "++server.more_base_urls needs the first server's address.", hint="Set ++server.base_url."
        )
    urls = dict.fromkeys((config.base_url, *config.more_base_urls))
    alone = msgspec.structs.replace(config, more_base_urls=())
    return RoutedModel(
        {
            url: make_model(msgspec.structs.replace(alone, base_url=url), concurrency=concurrency, environ=environ)
            for url in urls
        }
    )


def check_inference(model: Model, inference: Inference, *, tools: bool = False) -> None:
    """Raise ConfigError for a sampling setting that the model's backend cannot honour, before any request.

    A model without a method `check` of its own (a user's class) takes everything.
    """
    if (check := getattr(model, "check", None)) is not None:
        check(inference, tools=tools)


def _route_through(model: Model, server: str, key_path: str | None) -> None:
    from newskills.models.tunnel import RoutableModel

    if not isinstance(model, RoutableModel):
        raise ConfigError(
            "server.ssh_server works only for endpoints over HTTP and gRPC.",
            hint="Leave it out for this server type.",
        )
    model.route_through(server, key_path)
