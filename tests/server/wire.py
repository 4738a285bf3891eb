# SPDX-License-Identifier: Apache-2.0
"""The JSON of replies, streams and errors, in the shapes that OpenAI, vLLM, SGLang and llama.cpp send."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any, Literal

from tests.server.answers import (
    Body,
    Completion,
    calls_of,
    chat_logprobs,
    echoed_logprobs,
    prompt_logprobs,
    text_logprobs,
    tokens_of,
)
from tests.server.script import Script

Endpoint = Literal["chat", "text", "responses"]


def endpoint_of(path: str) -> Endpoint | None:
    """Which API a path belongs to, with and without `/v1` or any other prefix; None for other routes."""
    path = path.split("?")[0].rstrip("/")
    if path.endswith("/chat/completions"):
        return "chat"
    if path.endswith("/completions"):
        return "text"
    return "responses" if path.endswith("/responses") else None


def reply(endpoint: Endpoint, script: Script, body: Body, choices: list[Completion]) -> Body:
    """The whole reply."""
    if endpoint == "responses":
        return _responses_reply(script, body, choices[0])
    kind = "chat.completion" if endpoint == "chat" else "text_completion"
    make = _chat_choice if endpoint == "chat" else _text_choice
    return {
        **_envelope(kind, script, body),
        "choices": [{"index": i, **make(script, body, choice)} for i, choice in enumerate(choices)],
        **_usage(script, choices, endpoint),
    }


REWARD_ROUTES = ("classify", "score", "pooling")


def reward(route: str, script: Script, body: Body) -> Body:
    """The score of the pooling models of vLLM: in the first class, in the pair, in the last token."""
    shown = json.dumps(body, ensure_ascii=False)
    score = next((value for text, value in script.rewards.items() if text in shown), 0.0)
    found: Body = {  # type: ignore[assignment]
        "classify": {"object": "classify", "label": "LABEL_0", "probs": [score], "num_classes": 1},
        "score": {"object": "score", "score": score},
        "pooling": {"object": "pooling", "data": [[0.5], [score]]},
    }[route]
    return {
        **_envelope("list", script, body),
        "data": [{"index": 0, **found}],
        "usage": {"prompt_tokens": len(tokens_of(shown)), "total_tokens": len(tokens_of(shown))},
    }


def stream(endpoint: Endpoint, script: Script, body: Body, choices: list[Completion]) -> Iterator[bytes]:
    """The reply as server-sent events, one token an event."""
    if endpoint == "responses":
        yield from _responses_stream(script, body, choices[0])
        return
    kind = "chat.completion.chunk" if endpoint == "chat" else "text_completion"
    base = _envelope(kind, script, body)
    for index, choice in enumerate(choices):
        for delta in _deltas(endpoint, script, body, choice):
            yield event({**base, "choices": [{"index": index, "finish_reason": None, **delta}]})
        last = {"delta": {}} if endpoint == "chat" else {"text": ""}
        ending = {
            "index": index,
            "finish_reason": choice.finish_reason,
            script.stop_key: choice.stopped_by,
            **last,
        }
        yield event({**base, "choices": [ending]})
    if (body.get("stream_options") or {}).get("include_usage") and script.usage != "none":
        yield event({**base, "choices": [], **_usage(script, choices, endpoint)})
    yield b"data: [DONE]\n\n"


def event(value: Any, name: str = "") -> bytes:
    """One server-sent event."""
    prefix = f"event: {name}\n" if name else ""
    return f"{prefix}data: {json.dumps(value)}\n\n".encode()


def error(status: int, message: str, code: str | int | None = None, type: str = "") -> Body:
    """An error body as OpenAI writes it."""
    kinds = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}
    kind = type or kinds.get(status, "invalid_request_error" if status < 500 else "server_error")
    return {
        "error": {"message": message, "type": kind, "param": None, "code": code if code is not None else status}
    }


def context_error(shape: str, limit: int, prompt: int, asked: int) -> Body:
    """The refusal of `prompt` + `asked` tokens by a model with `limit`, in one of `CONTEXT_SHAPES`."""
    top = f"This model's maximum context length is {limit} tokens"
    total = prompt + asked
    match shape:
        case "vllm":
            return error(400, f"{top}. However, your request has {prompt} input tokens. Please shorten the input.")
        case "vllm_difference":
            text = f"'max_tokens' is too large: {asked}. {top} and your request has {prompt} input tokens"
            return error(400, f"{text} ({asked} > {limit} - {prompt}).")
        case "vllm_negative":
            return error(400, f"max_tokens must be at least 1, got {limit - prompt}.")
        case "openai":
            text = f"{top}. However, you requested {total} tokens "
            text += f"({prompt} in the messages, {asked} in the completion)."
            return error(400, text, code="context_length_exceeded")
        case "sglang_input":
            return error(
                400, f"The input ({prompt} tokens) is longer than the model's context length ({limit} tokens)."
            )
        case "sglang_total":
            text = f"Requested token count exceeds the model's maximum context length of {limit} tokens. "
            text += f"You requested a total of {total} tokens: {prompt} tokens from the input messages and "
            return error(400, f"{text}{asked} tokens for the completion.")
        case "llamacpp":
            text = f"the request exceeds the available context size ({limit} tokens), try increasing it"
            body = error(400, text, type="exceed_context_size_error")
            body["error"] |= {"n_prompt_tokens": prompt, "n_ctx": limit}
            return body
    raise ValueError(f"no such context shape: {shape}")


def _envelope(kind: str, script: Script, body: Body) -> Body:
    model = body.get("model", script.models[0])
    return {"id": "fake-1", "object": kind, "created": int(time.time()), "model": model}


def _chat_choice(script: Script, body: Body, choice: Completion) -> Body:
    message: Body = {"role": "assistant", "content": choice.text}
    if choice.reasoning:
        message[script.reasoning_key] = choice.reasoning
    if calls := calls_of(script, body):
        message |= {"tool_calls": list(calls), "content": choice.text or None}
    logprobs = chat_logprobs(choice.tokens, body.get("top_logprobs") or 0) if body.get("logprobs") else None
    return _ended(script, choice, {"message": message, "logprobs": logprobs})


def _text_choice(script: Script, body: Body, choice: Completion) -> Body:
    asked = body.get("logprobs")
    logprobs = text_logprobs(choice.tokens, int(asked)) if asked is not None else None
    text, prompt = choice.text, body.get("prompt")
    if body.get("echo") and isinstance(prompt, str) and script.echo != "ignored":
        text = prompt + text
        if logprobs is not None:
            before = echoed_logprobs(tokens_of(prompt), script)
            logprobs = {name: before[name] + values for name, values in logprobs.items()}
    told: Body = {}
    if script.prompt_logprobs and body.get("prompt_logprobs") is not None and isinstance(prompt, str):
        told["prompt_logprobs"] = prompt_logprobs(tokens_of(prompt), script)
    return _ended(script, choice, {"text": text, "logprobs": logprobs, **told})


def _ended(script: Script, choice: Completion, rest: Body) -> Body:
    return {**rest, "finish_reason": choice.finish_reason, script.stop_key: choice.stopped_by}


def _deltas(endpoint: Endpoint, script: Script, body: Body, choice: Completion) -> Iterator[Body]:
    if endpoint == "text":
        for token in choice.tokens:
            yield _text_delta(body, token)
        return
    yield {"delta": {"role": "assistant", "content": ""}}
    if choice.reasoning:
        yield {"delta": {script.reasoning_key: choice.reasoning}}
    size = -(-len(choice.tokens) // (script.pieces or len(choice.tokens) or 1))
    for token in ("".join(choice.tokens[at : at + size]) for at in range(0, len(choice.tokens), size or 1)):
        delta: Body = {"delta": {"content": token}}
        if body.get("logprobs"):
            delta["logprobs"] = chat_logprobs([token], body.get("top_logprobs") or 0)
        yield delta
    for position, call in enumerate(calls_of(script, body)):
        yield {"delta": {"tool_calls": [{"index": position, **call}]}}


def _text_delta(body: Body, token: str) -> Body:
    asked = body.get("logprobs")
    return {"text": token} if asked is None else {"text": token, "logprobs": text_logprobs([token], int(asked))}


def _usage(script: Script, choices: list[Completion], endpoint: Endpoint) -> Body:
    if script.usage == "none":
        return {}
    off = 1000 if script.usage == "wrong" else 0
    factor = 0 if script.usage == "zero" else 1
    read = choices[0].input_tokens * factor + off
    written = sum(choice.output_tokens for choice in choices) * factor + off
    thought = sum(choice.reasoning_tokens for choice in choices) * factor
    names = (
        ("input_tokens", "output_tokens") if endpoint == "responses" else ("prompt_tokens", "completion_tokens")
    )
    details = {f"{names[1]}_details": {"reasoning_tokens": thought}} if script.reasoning else {}
    usage = {"usage": {names[0]: read, names[1]: written, "total_tokens": read + written, **details}}
    return {**usage, **_metrics(script)}


def _metrics(script: Script) -> Body:
    if script.drafts is None:
        return {}
    names = ("num_spec_steps", "num_draft_tokens", "num_accepted_draft_tokens")
    return {"metrics": {"speculative_decoding": dict(zip(names, script.drafts, strict=True))}}


def _responses_reply(script: Script, body: Body, choice: Completion) -> Body:
    output: list[Body] = []
    if choice.reasoning:
        thought = [{"type": "reasoning_text", "text": choice.reasoning}]
        output.append({"type": "reasoning", "id": "rs_1", "summary": [], "content": thought})
    part = {"type": "output_text", "text": choice.text, "annotations": []}
    output.append(
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
    )
    for call in calls_of(script, body):
        function = call.get("function", {})
        names = {"name": function.get("name"), "arguments": function.get("arguments")}
        output.append({"type": "function_call", "id": call.get("id"), "call_id": call.get("id"), **names})
    cut = choice.finish_reason == "length"
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": int(time.time()),
        "model": body.get("model", script.models[0]),
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "output": output,
        **_usage(script, [choice], "responses"),
    }


def _responses_stream(script: Script, body: Body, choice: Completion) -> Iterator[bytes]:
    whole = _responses_reply(script, body, choice)
    started = {**whole, "status": "in_progress", "output": []}
    yield event({"type": "response.created", "response": started}, "response.created")
    for token in choice.tokens:
        name = "response.output_text.delta"
        yield event(
            {"type": name, "item_id": "msg_1", "output_index": 0, "content_index": 0, "delta": token}, name
        )
    name = f"response.{whole['status']}"
    yield event({"type": name, "response": whole}, name)
