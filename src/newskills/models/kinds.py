# SPDX-License-Identifier: Apache-2.0
"""Kinds of models by name (`server_type`), and what others need to know of each: nothing compares such a name.

A provider is one file with `make(config, *, concurrency, environ) -> Model`, and one row here (or the entry point
`newskills.models` of another distribution, with an attribute `properties`).
"""

from __future__ import annotations

from functools import cache
from typing import Literal

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError
from newskills.base.registry import DescribedRegistry

LLAMACPP_KEY = "NEWSKILLS_LLAMACPP_KEY"
"""Variable with the key of our own llama.cpp server: the server asks for it, clients send it."""

TRANSFORMERS_KEY = "NEWSKILLS_TRANSFORMERS_KEY"
"""The same of our own server for models of transformers."""

Extras = Literal["none", "always", "explicit", "changed"]


class Dialect(Struct, frozen=True, kw_only=True):
    """How a backend departs from the common ground of OpenAI-compatible endpoints.

    extras      none: OpenAI's own parameters only; always: sent by vLLM's names, set or not; explicit: sent by
                llama.cpp's names, set or not, since its defaults are not "off" (top_k 40, min_p 0.05); changed: sent
                only where set
    echoes      reasoning of earlier turns is sent back, under both names in use
    rendered    how a prompt that a chat template has rendered, with its own marks, is kept from getting a second
                mark at its beginning: flag: `add_special_tokens` is false (vLLM, TensorRT-LLM); ids: it is sent as
                token ids, which OpenAI's API takes as well (SGLang and llama.cpp know no such flag); text: the server
                adds nothing (Megatron, whose endpoint reads no list of ids)
    strict      OpenAI's own platform: reasoning models take other parameters, further keys are refused
    tokenizer   key of the text that the endpoint's /tokenize reads; empty: it has none
    effort_in_template  whether the reasoning effort is an argument of the chat template
    switch      whether requests hold arguments of the chat template, by which hybrid models are told not to think
    budget      path of the key that limits the tokens of thinking; empty: there is none
    token_ids   further keys of a request by which a reply tells the ids of its tokens
    ignores_eos whether a request with `ignore_eos` gets all tokens that it asks for
    """

    extras: Extras = "changed"
    rendered: Literal["flag", "ids", "text"] = "ids"
    tools: bool = True
    stream: bool = True
    chat_logprobs: bool = True
    echoes: bool = True
    tool_choice: str = ""
    v1: bool = True
    strict: bool = False
    tokenizer: Literal["", "prompt", "content"] = ""
    effort_in_template: bool = False
    switch: bool = False
    budget: tuple[str, ...] = ()
    token_ids: tuple[str, ...] = ()
    ignores_eos: bool = False


class BatchProperties(Struct, frozen=True, kw_only=True):
    """Batches of such models: many requests in a file, answered within a day for a part of the price.

    service       function that makes what submits them and looks after them
    rows, size    of a batch, at most (rows, and bytes of its file)
    price         share of the usual price that is paid
    cached_price  the same for prompt tokens that are read from a cache or written to it
    endpoints     inference.endpoint_type → path, in each row of a batch
    """

    service: str
    rows: int
    size: int = 100 << 20
    price: float = 0.5
    cached_price: float = 0.5
    endpoints: dict[str, str] = msgspec.field(default_factory=lambda: {"chat": ""})


class ModelProperties(Struct, frozen=True, kw_only=True):
    """What is particular about a kind of model.

    hosted      a service of others: it is asked at its address and never started by us
    keys        variables with a key for it, the usual one first
    hosts       host → variable with its key, for services that share one wire; a key is required there
    server_key  variable with the key that a server of this kind, started by us, asks its clients for
    dialect     of an OpenAI-compatible endpoint; None: it speaks something else
    queues      requests wait in line there, instead of being refused
    solver      the solver that its replies are for; empty: any that chats
    sends_media its replies are sound or images, which only `solver` keeps
    tool_choice function that says in a request which tools may or must be called
    thinking    function that says in a request how much may be thought
    blocks      it wants its own blocks of content back in later turns, with their signatures
    batch       how it is asked in batches; None: it has none
    """

    hosted: bool = False
    keys: tuple[str, ...] = ()
    hosts: dict[str, str] = {}
    server_key: str = ""
    dialect: Dialect | None = None
    queues: bool = False
    solver: str = ""
    sends_media: bool = False
    tool_choice: str = "newskills.models.parameters:tool_choice_keys"
    thinking: str = "newskills.models.parameters:thinking_keys"
    blocks: bool = False
    batch: BatchProperties | None = None


_OPENAI = Dialect(extras="none", echoes=False, strict=True)
_TRTLLM = Dialect(
    extras="always",
    rendered="flag",
    tokenizer="prompt",
    token_ids=("return_token_ids",),
    switch=True,
    ignores_eos=True,
)
_VLLM = ModelProperties(
    dialect=msgspec.structs.replace(_TRTLLM, budget=("thinking_token_budget",)),
    queues=True,
    batch=BatchProperties(
        service="newskills.models.batch_apis.offline:make",
        rows=1_000_000,
        size=1 << 30,
        price=1.0,
        cached_price=1.0,
        endpoints={"chat": "/v1/chat/completions"},
    ),
)
_ENDPOINT = "newskills.models.openai:make"

MODELS = DescribedRegistry(
    "server type",
    {
        "vllm": (_ENDPOINT, _VLLM),
        "vllm_dp_ray": (_ENDPOINT, _VLLM),
        "vllm_multimodal": (_ENDPOINT, _VLLM),
        "sglang": (
            _ENDPOINT,
            ModelProperties(
                dialect=Dialect(
                    extras="always",
                    tool_choice="auto",
                    tokenizer="prompt",
                    switch=True,
                    budget=("custom_params", "thinking_budget"),
                    ignores_eos=True,
                ),
                queues=True,
            ),
        ),
        "trtllm": (_ENDPOINT, ModelProperties(dialect=_TRTLLM, queues=True)),
        "megatron": (
            _ENDPOINT,
            ModelProperties(
                dialect=Dialect(
                    extras="none", tools=False, stream=False, chat_logprobs=False, v1=False, rendered="text"
                )
            ),
        ),
        "nim": (
            _ENDPOINT,
            ModelProperties(
                hosted=True, dialect=Dialect(tokenizer="prompt", budget=("nvext", "max_thinking_tokens"))
            ),
        ),
        "llamacpp": (
            _ENDPOINT,
            ModelProperties(
                server_key=LLAMACPP_KEY,
                dialect=Dialect(
                    extras="explicit",
                    tokenizer="content",
                    effort_in_template=True,
                    switch=True,
                    budget=("thinking_budget_tokens",),
                    ignores_eos=True,
                ),
            ),
        ),
        "transformers": (
            _ENDPOINT,
            ModelProperties(
                server_key=TRANSFORMERS_KEY,
                dialect=msgspec.structs.replace(_TRTLLM, tools=False, stream=False, effort_in_template=True),
                queues=True,
            ),
        ),
        "generic": (_ENDPOINT, ModelProperties(dialect=Dialect())),
        "openai": (
            "newskills.models.openai:make_hosted",
            ModelProperties(
                hosted=True,
                keys=("OPENAI_API_KEY", "NVIDIA_API_KEY"),
                hosts={"api.openai.com": "OPENAI_API_KEY", "api.nvidia.com": "NVIDIA_API_KEY"},
                dialect=_OPENAI,
                batch=BatchProperties(
                    service="newskills.models.batch_apis.openai:make",
                    rows=50_000,
                    endpoints={
                        "chat": "/v1/chat/completions",
                        "text": "/v1/completions",
                        "responses": "/v1/responses",
                    },
                ),
            ),
        ),
        "azureopenai": (
            "newskills.models.openai:make_azure",
            ModelProperties(
                hosted=True,
                keys=("AZURE_OPENAI_API_KEY",),
                dialect=_OPENAI,
                batch=BatchProperties(
                    service="newskills.models.batch_apis.openai:make_azure",
                    rows=100_000,
                    endpoints={"chat": "/chat/completions", "responses": "/v1/responses"},
                ),
            ),
        ),
        "gemini": (
            "newskills.models.gemini:make",
            ModelProperties(
                hosted=True,
                keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
                tool_choice="newskills.models.gemini:tool_choice_keys",
                thinking="newskills.models.gemini:thinking_keys",
                blocks=True,
                batch=BatchProperties(
                    service="newskills.models.batch_apis.gemini:make", rows=50_000, cached_price=1.0
                ),
            ),
        ),
        "anthropic": (
            "newskills.models.anthropic:make",
            ModelProperties(
                hosted=True,
                keys=("ANTHROPIC_API_KEY",),
                tool_choice="newskills.models.anthropic:tool_choice_keys",
                thinking="newskills.models.anthropic:thinking_keys",
                blocks=True,
                batch=BatchProperties(service="newskills.models.batch_apis.anthropic:make", rows=100_000),
            ),
        ),
        "litellm": ("newskills.models.litellm:make", ModelProperties(hosted=True)),
        "comet": ("newskills.models.trained_judges:make_comet", ModelProperties()),
        "nvembed": ("newskills.models.trained_judges:make_nvembed", ModelProperties()),
        "step": ("newskills.models.trained_judges:make_step", ModelProperties()),
        "vllm_classify": ("newskills.models.reward:make_classify", ModelProperties()),
        "vllm_score": ("newskills.models.reward:make_score", ModelProperties()),
        "vllm_pooling": ("newskills.models.reward:make_pooling", ModelProperties()),
        "asr_nim": (
            "newskills.models.riva:make_asr",
            ModelProperties(keys=("NVIDIA_API_KEY",), solver="transcription"),
        ),
        "tts_nim": (
            "newskills.models.riva:make_tts",
            ModelProperties(keys=("NVIDIA_API_KEY",), solver="synthesis", sends_media=True),
        ),
        "custom": ("newskills.models.custom:make", ModelProperties(hosted=True)),
    },
    usual=ModelProperties(),
    group="newskills.models",
    aliases={"llama.cpp": "llamacpp", "llama_cpp": "llamacpp", "tensorrt_llm": "trtllm", "azure": "azureopenai"},
)


def dialect_of(server_type: str) -> Dialect:
    """Return how such an endpoint departs from OpenAI's. Raises ConfigError where it speaks something else."""
    dialect = MODELS.properties(server_type).dialect
    if dialect is None:
        raise ConfigError(f"server_type {server_type} is not an OpenAI-compatible endpoint.")
    return dialect


def key_for_host(server_type: str, host: str) -> tuple[str, bool]:
    """Return the variable with the key for a host of a service, and whether the host requires one."""
    properties = MODELS.properties(server_type)
    for known_host, variable in properties.hosts.items():
        if host == known_host or host.endswith(f".{known_host}"):
            return variable, True
    return properties.keys[0], False


def service_keys() -> tuple[str, ...]:
    """Return the variables that hold keys of hosted services, those of plug-ins last."""
    rows = [properties for properties in MODELS.built_in().values() if properties.hosted]
    return tuple(dict.fromkeys(name for properties in (*rows, *_plug_ins()) for name in properties.keys))


@cache
def _plug_ins() -> tuple[ModelProperties, ...]:
    """Return the properties of installed kinds; one that cannot be loaded raises when it is used."""
    rows: list[ModelProperties] = []
    for name in MODELS.names():
        if name not in MODELS.built_in():
            try:
                rows.append(MODELS.properties(name))
            except ConfigError:
                continue
    return tuple(rows)
