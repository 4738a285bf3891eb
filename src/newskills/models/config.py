# SPDX-License-Identifier: Apache-2.0
"""`++server.*`: which endpoint is asked, and how. Keys are held outside the struct, so that it may be printed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from newskills.base.records import TokenPrices
from newskills.models.kinds import MODELS

Price = Annotated[float, Meta(ge=0)]
ContextStrategy = Literal["reduce_generation", "reduce_prompt_from_start", "reduce_prompt_from_end"]

DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 5000
MASK = "***"


class ServerConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The endpoint of a model. A `base_url` without a path gets `/v1` unless `use_v1_endpoint` is false.

    A key given in `api_key` is taken out at once: the field then reads `***N`, in `repr`, JSON and copies of this
    struct, and `key_of` finds the value only within this process. Another process must read it from
    `api_key_env_var`.
    """

    server_type: Annotated[str, Meta(description="kind of endpoint: openai, vllm, sglang, trtllm, gemini, …")] = (
        "openai"
    )
    model: Annotated[str | None, Meta(description="model name at the endpoint")] = None
    base_url: Annotated[str | None, Meta(description="address of the API, with or without /v1")] = None
    more_base_urls: Annotated[
        tuple[str, ...],
        Meta(description="addresses of further servers of the same model, which share the requests"),
    ] = ()
    host: Annotated[str, Meta(description="host, if base_url is not set")] = DEFAULT_HOST
    port: Annotated[int, Meta(ge=1, le=65535, description="port, if base_url is not set")] = DEFAULT_PORT
    api_key: Annotated[
        str | None, Meta(description="API key; better: put it in a variable and name that in api_key_env_var")
    ] = None
    api_key_env_var: Annotated[str | None, Meta(description="environment variable that holds the API key")] = None
    max_retries: Annotated[int, Meta(ge=0, description="retries of a request after a temporary failure")] = 3
    use_v1_endpoint: Annotated[bool, Meta(description="add /v1 to an address that has no path")] = True
    ssh_server: Annotated[str | None, Meta(description="[user@]host to reach the endpoint through, by ssh")] = None
    ssh_key_path: Annotated[str | None, Meta(description="private key for ssh_server")] = None
    enable_soft_fail: Annotated[
        bool, Meta(description="record a failed request as unscored instead of stopping the run")
    ] = False
    context_limit_retry_strategy: Annotated[
        ContextStrategy | None, Meta(description="what to shorten, once, if the context length is exceeded")
    ] = None
    num_special_tokens_budget: Annotated[
        int, Meta(ge=0, description="tokens to keep free when shortening, for the chat template")
    ] = 100
    model_class: Annotated[
        str | None, Meta(description="module::Class or file.py::Class, for server_type=custom")
    ] = None
    tokenizer: Annotated[str | None, Meta(description="tokenizer, if it is not the model's own")] = None
    max_tokens_name: Annotated[
        Literal["max_tokens", "max_completion_tokens"] | None,
        Meta(
            description="name under which inference.tokens_to_generate is sent to a chat endpoint; default: as "
            "the server type takes it"
        ),
    ] = None
    merge_system: Annotated[
        bool,
        Meta(
            description="put system messages in front of the next user message, for models without a system role"
        ),
    ] = False
    batch_api: Annotated[
        bool,
        Meta(description="ask in batches, at the price of batches (openai, azureopenai, anthropic, gemini, vllm)"),
    ] = False
    batch_command: Annotated[
        str, Meta(description="command that answers a batch of vllm here (default: vllm run-batch)")
    ] = ""
    price_per_million_input_tokens: Annotated[
        Price | None, Meta(description="price of 1,000,000 prompt tokens, for the cost of a run")
    ] = None
    price_per_million_output_tokens: Annotated[
        Price | None, Meta(description="price of 1,000,000 generated tokens, for the cost of a run")
    ] = None
    price_per_million_cached_tokens: Annotated[
        Price | None,
        Meta(description="price of 1,000,000 prompt tokens from a cache; default: as other prompt tokens"),
    ] = None
    price_per_million_cache_written_tokens: Annotated[
        Price | None,
        Meta(description="price of 1,000,000 prompt tokens put into a cache; default: as other prompt tokens"),
    ] = None

    @property
    def prices(self) -> TokenPrices:
        """Prices of a million tokens, those of batches where it is asked in batches."""
        usual = TokenPrices(
            read=self.price_per_million_input_tokens,
            written=self.price_per_million_output_tokens,
            cached=self.price_per_million_cached_tokens,
            cache_written=self.price_per_million_cache_written_tokens,
        )
        batch = MODELS.properties(self.server_type).batch
        if not self.batch_api or batch is None:
            return usual
        return usual.at(batch.price, batch.cached_price)

    def __post_init__(self) -> None:
        if any("?" in url or "#" in url for url in (self.base_url or "", *self.more_base_urls)):
            raise ValueError(
                "an address has no query, which would not be sent; put a key into an environment variable"
                " and name it in api_key_env_var"
            )
        if self.api_key is not None and not self.api_key.startswith(MASK):
            msgspec.structs.force_setattr(self, "api_key", _mask_of(self.api_key))


_HELD: dict[str, str] = {}
_USED: set[str] = set()


def key_of(config: ServerConfig, environ: Mapping[str, str], *variables: str) -> tuple[str | None, str]:
    """Return (key or None, where it comes from or was looked for: `NAME` of a variable, or `++server.api_key`).

    Order: `api_key`, `api_key_env_var` (then nothing else), `variables`, the `server_key` of the
    kind of server.
    Blanks around a key are dropped.
    """
    if config.api_key is not None:
        return _remember_used(_HELD.get(config.api_key)), "++server.api_key"
    own = MODELS.properties(config.server_type).server_key
    if config.api_key_env_var:
        names = (config.api_key_env_var,)
    else:
        names = (*variables, *((own,) if own else ()))
    for name in names:
        if key := environ.get(name, "").strip():
            return _remember_used(key), name
    return None, " or ".join(names)


def without_keys(text: str) -> str:
    """Return `text` without any key that this process has looked up."""
    for key in _USED:
        text = text.replace(key, MASK)
    return text


def _remember_used(key: str | None) -> str | None:
    if key is not None and len(key) > 3:
        _USED.add(key)
    return key


def _mask_of(key: str) -> str:
    key = key.strip()
    for mask, held in _HELD.items():
        if held == key:
            return mask
    mask = f"{MASK}{len(_HELD)}"
    _HELD[mask] = key
    return mask
