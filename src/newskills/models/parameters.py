# SPDX-License-Identifier: Apache-2.0
"""Sampling parameters of the OpenAI-compatible backends: what each takes, by which name. None is ignored.

`check_inference` raises ConfigError for a setting that the backend cannot honour; `constant_keys` returns the part of
the request body that depends on the settings alone.
"""

from __future__ import annotations

import re
from typing import cast

from newskills.base.errors import ConfigError
from newskills.base.records import Inference, Row
from newskills.models.kinds import MODELS, Dialect, Extras, dialect_of
from newskills.models.wire import TEMPLATE

REPEAT_WINDOW = 65536
"""Tokens that llama.cpp's penalty looks back on (default 64); elsewhere the penalty covers the whole text."""


def is_reasoning_model(model: str) -> bool:
    """Return whether the model is of OpenAI's o-series or gpt-5 family, also behind a vendor prefix
    (`openai/o3`)."""
    return re.match(r"o\d|gpt-5", model.rsplit("/", 1)[-1]) is not None


def check_inference(server_type: str, model: str, inference: Inference, *, tools: bool = False) -> None:
    """Raise ConfigError naming the setting that `server_type` cannot honour, and what to set instead."""
    dialect = dialect_of(server_type)
    _check_endpoint(server_type, inference, tools)
    if dialect.extras == "none":
        _refuse_parameter(inference.top_k not in (-1, 0, None), server_type, "top_k", "-1")
        _refuse_parameter(bool(inference.min_p), server_type, "min_p", "0")
        _refuse_parameter(inference.repetition_penalty not in (1.0, None), server_type, "repetition_penalty", "1")
    _refuse_parameter(inference.stream and not dialect.stream, server_type, "stream", "false")
    chat = inference.endpoint_type == "chat"
    _refuse_parameter(
        inference.top_logprobs is not None and chat and not dialect.chat_logprobs, server_type, "top_logprobs"
    )
    if tools and not dialect.tools:
        raise ConfigError(
            f"{server_type} does not accept tools.", hint="Use server_type vllm or sglang for tool calling."
        )
    if dialect.strict:
        _check_strict(server_type, model, inference)
    if inference.thinking_budget is not None:
        thinking_keys(server_type, model, inference)


def constant_keys(server_type: str, model: str, inference: Inference, max_tokens_name: str | None = None) -> Row:
    """Return body keys for `inference`, without the messages, tools and stop phrases of a single request.

    `max_tokens_name` replaces the usual name of the limit of new tokens, where the endpoint is chat.
    """
    dialect = dialect_of(server_type)
    body: Row = {"model": model}
    if dialect.strict and is_reasoning_model(model):
        body |= _reasoning_keys(inference)
    else:
        body |= _sampling_keys(inference)
    if not (dialect.strict and inference.endpoint_type == "responses"):
        body["seed"] = inference.random_seed
    body |= _extra_keys(dialect.extras, inference)
    if inference.reasoning_effort is not None:
        body |= _effort_keys(dialect, inference)
    if inference.thinking_budget is not None:
        body |= thinking_keys(server_type, model, inference)
    if inference.stream:
        body["stream"] = True
        if inference.endpoint_type != "responses":
            body["stream_options"] = {"include_usage": True}
    if max_tokens_name is not None and inference.endpoint_type == "chat":
        for usual in ("max_tokens", "max_completion_tokens"):
            body.pop(usual, None)
        body[max_tokens_name] = inference.tokens_to_generate
    return {name: value for name, value in body.items() if value is not None}


def thinking_keys(server_type: str, model: str, inference: Inference) -> Row:
    """Return the keys of a request body that say how much may be thought; none where nothing is to be said.

    A hybrid model is told by arguments of its chat template whether to think: `enable_thinking` (Qwen3) or `thinking`
    (DeepSeek V3.1, Granite); a template ignores the name that it does not have. Raises ConfigError for what such a
    server has no word for.
    """
    dialect = MODELS.properties(server_type).dialect
    budget = inference.thinking_budget
    if budget is None:
        effort = inference.reasoning_effort
        if dialect is not None and effort is not None:
            return _effort_keys(dialect, inference)
        return {}
    refuse_both(inference)
    if inference.endpoint_type != "chat":
        raise ConfigError(
            f"The endpoint {inference.endpoint_type} of {server_type} takes no inference.thinking_budget.",
            hint="Set ++inference.endpoint_type=chat; or text, where newskills ends the thinking itself.",
        )
    if dialect is None or not (dialect.switch if budget == "none" else dialect.budget):
        what = "switch for thinking" if budget == "none" else "limit on tokens of thinking"
        hint = "Set ++inference.reasoning_effort=LEVEL instead, where the model has levels."
        if dialect is not None and not dialect.strict:
            hint += " Or ++inference.endpoint_type=text, where newskills ends the thinking itself."
        raise ConfigError(f"{server_type} has no {what} (inference.thinking_budget).", hint=hint)
    body: Row = {}
    if dialect.switch:
        thinks = budget != "none"
        body[TEMPLATE] = {"enable_thinking": thinks, "thinking": thinks}
    if budget != "none":
        value: Row | int = budget
        for name in reversed(dialect.budget):
            value = {name: value}
        body |= cast(Row, value)
    return body


def refuse_both(inference: Inference) -> None:
    """Raise ConfigError where thinking is limited by tokens and by a level at once."""
    if inference.reasoning_effort is not None:
        raise ConfigError(
            "inference.thinking_budget and inference.reasoning_effort both say how much to think.",
            hint="Set only one of the two.",
        )


def tool_choice_keys(mode: str, name: str, parallel: bool | None, responses: bool) -> Row:
    """Return the keys of a request body that say which tools may be called; none where nothing is to be said.

    mode       auto, none, or any: some tool must be called, `name` where it is not empty
    parallel   whether several may be called at once; None: as the service does
    responses  in the words of the responses endpoint
    """
    keys: Row = {}
    if name:
        function: Row = {"name": name}
        if not responses:
            function = {"function": function}
        keys["tool_choice"] = {"type": "function", **function}
    elif mode == "none":
        keys["tool_choice"] = "none"
    elif mode != "auto":
        keys["tool_choice"] = "required"
    if parallel is not None:
        keys["parallel_tool_calls"] = parallel
    return keys


def _check_endpoint(server_type: str, inference: Inference, tools: bool) -> None:
    if inference.endpoint_type != "text":
        return
    if inference.tokens_to_generate is None:
        raise ConfigError(
            "inference.endpoint_type=text needs a limit, because servers stop after 16 tokens by default.",
            hint="Set ++inference.tokens_to_generate=N.",
        )
    _refuse_parameter(
        inference.reasoning_effort is not None, f"{server_type} with endpoint_type=text", "reasoning_effort"
    )
    if tools:
        raise ConfigError(
            "inference.endpoint_type=text does not accept tools.", hint="Set ++inference.endpoint_type=chat."
        )


def _check_strict(server_type: str, model: str, inference: Inference) -> None:
    if inference.extra_body:
        raise ConfigError(
            f"{server_type} does not accept inference.extra_body ({', '.join(inference.extra_body)}).",
            hint="For another OpenAI-compatible endpoint that knows these keys, set server_type=generic.",
        )
    _refuse_parameter(
        inference.stream and inference.top_logprobs is not None, f"{server_type} with stream", "top_logprobs"
    )
    if is_reasoning_model(model):
        _refuse_parameter(
            inference.temperature not in (0.0, None), f"The reasoning model {model}", "temperature", "0.0"
        )
        _refuse_parameter(inference.top_p not in (0.95, None), f"The reasoning model {model}", "top_p", "0.95")
        _refuse_parameter(inference.top_logprobs is not None, f"The reasoning model {model}", "top_logprobs")
    else:
        _refuse_parameter(
            inference.reasoning_effort is not None, f"{model}, which is not a reasoning model,", "reasoning_effort"
        )


def _refuse_parameter(wrong: bool, who: str, field: str, neutral: str = "null") -> None:
    if wrong:
        raise ConfigError(f"{who} does not accept inference.{field}.", hint=f"Set ++inference.{field}={neutral}.")


def _sampling_keys(inference: Inference) -> Row:
    body: Row = {"temperature": inference.temperature, "top_p": inference.top_p}
    limit = inference.tokens_to_generate
    if limit is not None:
        body["max_output_tokens" if inference.endpoint_type == "responses" else "max_tokens"] = limit
    top = inference.top_logprobs
    if top is None:
        return body
    if inference.endpoint_type == "text":
        return body | {"logprobs": top}
    if inference.endpoint_type == "responses":
        return body | {"top_logprobs": top, "include": ["message.output_text.logprobs"]}
    return body | {"logprobs": True, "top_logprobs": top}


def _reasoning_keys(inference: Inference) -> Row:
    names = {"responses": "max_output_tokens", "text": "max_tokens", "chat": "max_completion_tokens"}
    if inference.tokens_to_generate is None:
        return {}
    return {names[inference.endpoint_type]: inference.tokens_to_generate}


def _extra_keys(extras: Extras, inference: Inference) -> Row:
    if extras == "always":
        body: Row = {
            "min_p": inference.min_p,
            "repetition_penalty": inference.repetition_penalty,
            "spaces_between_special_tokens": False,
        }
        if (inference.top_k or 0) > 0:
            body["top_k"] = inference.top_k
        if inference.endpoint_type == "text":
            body["skip_special_tokens"] = False
        return body
    if extras == "explicit":
        body = {
            "top_k": None if inference.top_k is None else max(inference.top_k, 0),
            "min_p": inference.min_p,
            "repeat_penalty": inference.repetition_penalty,
        }
        if inference.repetition_penalty not in (1.0, None):
            body["repeat_last_n"] = REPEAT_WINDOW
        return body
    if extras == "changed":
        neutral = Inference()
        names = ("top_k", "min_p", "repetition_penalty")
        return {n: getattr(inference, n) for n in names if getattr(inference, n) != getattr(neutral, n)}
    return {}


def _effort_keys(dialect: Dialect, inference: Inference) -> Row:
    if inference.endpoint_type == "responses":
        return {"reasoning": {"effort": inference.reasoning_effort}}
    if dialect.effort_in_template:
        return {"chat_template_kwargs": {"reasoning_effort": inference.reasoning_effort}}
    return {"reasoning_effort": inference.reasoning_effort}
