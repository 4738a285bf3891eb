# SPDX-License-Identifier: Apache-2.0
"""Pieces of replies that several wires share: tolerant JSON, token counts, log-probabilities, stop phrases."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from newskills.base.callbacks import HearPiece
from newskills.base.errors import ServerError
from newskills.base.records import Drafts, Logprobs, ReplyPiece, ReplyTokens, Row, Usage
from newskills.base.type_errors import type_fault

T = TypeVar("T")

PAGE = "an HTML page instead of an API answer"


def decode_body(body: bytes, decoder: msgspec.json.Decoder[T], kind: type[T], address: str) -> T:
    """Decode `body` as `kind`. Lone surrogates, broken UTF-8, NaN and Infinity, which some servers emit, are
    borne.

    Raises ServerError for anything else that is no such JSON: a half reply must never pass for an empty answer.
    """
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise ServerError(
            f"The reply of {address} does not have the expected fields: {type_fault(error)}.", status=200
        ) from error
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    if is_page(body):
        raise page_error(address)
    try:
        return msgspec.convert(_without_surrogates(json.loads(body.decode("utf-8", "replace"))), kind)
    except (ValueError, RecursionError) as error:
        raise ServerError(f"The reply of {address} is not valid JSON: {error}.", status=200) from error


def is_page(body: bytes) -> bool:
    """Return whether `body` is an HTML page, where JSON was expected."""
    return body.lstrip()[:1] == b"<"


def page_error(address: str) -> ServerError:
    """Return the error for a page that came with status 200."""
    return ServerError(
        f"{address} answered with {PAGE}.",
        status=200,
        hint="A login page, a proxy, or another program answers there: check ++server.base_url.",
    )


def usage_of(value: Any) -> Usage:
    """Return the counts of the chat, completions and responses endpoints; what is absent or no count stays None."""
    if not isinstance(value, dict):
        return Usage()
    prompt = value.get("prompt_tokens_details") or value.get("input_tokens_details")
    output = value.get("completion_tokens_details") or value.get("output_tokens_details")
    return Usage(
        input_tokens=first_count(value, "prompt_tokens", "input_tokens"),
        output_tokens=first_count(value, "completion_tokens", "output_tokens"),
        reasoning_tokens=first_count(output or value, "reasoning_tokens"),
        cached_tokens=first_count(prompt, "cached_tokens") if prompt else None,
    )


def drafts_of(value: Any) -> Drafts | None:
    """Read draft counts of `metrics`, where vLLM reports speculative decoding per request
    (`--per-request-spec-decode-metrics`)."""
    counts = member_of(value, "speculative_decoding")
    if counts is None:
        return None
    names = ("num_spec_steps", "num_draft_tokens", "num_accepted_draft_tokens")
    steps, drafted, accepted = (first_count(counts, name) for name in names)
    if steps is None or drafted is None or accepted is None:
        return None
    return Drafts(steps=steps, drafted=drafted, accepted=accepted)


def tokens_of(generated: Any, prompt: Any, logprobs: Any) -> ReplyTokens | None:
    """Read token ids: those of vLLM (`return_token_ids`), or those that llama.cpp gives with log-probabilities. None
    where there are none."""
    if not _are_ids(generated):
        entries = member_of(logprobs, "content")
        generated = [entry.get("id") for entry in entries or () if isinstance(entry, dict)]
    if not _are_ids(generated):
        return None
    return ReplyTokens(generated=generated, prompt=prompt if _are_ids(prompt) else [])


def _are_ids(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(type(item) is int for item in value)


def text_or_none(value: Any) -> str | None:
    """Return `value` where it is a text; None for anything else that a server may send."""
    if isinstance(value, str):
        return value
    return None


def member_of(value: Any, name: str) -> Any:
    """Return the member `name` of a JSON object; None where there is none, or `value` is no object."""
    if isinstance(value, dict):
        return value.get(name)
    return None


def image_url_of(part: Row) -> Any:
    """Return the address in an `image_url` part, which may be a text or an object with `url`."""
    image = part.get("image_url")
    if isinstance(image, dict):
        return image.get("url")
    return image


def call_arguments(text: str) -> Row:
    """Read the arguments of a tool call as an object; those that are none become its member `arguments`."""
    try:
        value = msgspec.json.decode(text or "{}")
    except msgspec.DecodeError:
        return {"arguments": text}
    if isinstance(value, dict):
        return value
    return {"arguments": value}


def first_count(value: Any, *names: str) -> int | None:
    """Return the first of `names` in `value` that is a non-negative whole number; None: there is none."""
    if not isinstance(value, dict):
        return None
    for name in names:
        number = value.get(name)
        if type(number) is int and number >= 0:
            return number
    return None


def logprobs_of(value: Any) -> Logprobs | None:
    """Read log-probabilities of both shapes: `content: [{token, logprob, top_logprobs: […]}]` and
    `tokens/token_logprobs/top_logprobs`.

    A token without a value (the first of an echoed prompt) is left out. None where nothing was reported.
    """
    if not isinstance(value, dict):
        return None
    if isinstance(content := value.get("content"), list):
        return _chat_logprobs(content)
    tokens, values, tops = value.get("tokens"), value.get("token_logprobs"), value.get("top_logprobs")
    if not isinstance(tokens, list) or not isinstance(values, list):
        return None
    kept = [i for i, logprob in enumerate(values[: len(tokens)]) if isinstance(logprob, int | float)]
    top = None
    if isinstance(tops, list) and len(tops) >= len(tokens):
        top = [dict(tops[i]) if isinstance(tops[i], dict) else {} for i in kept]
    return _logprobs_or_none([str(tokens[i]) for i in kept], [float(values[i]) for i in kept], top)


def with_prompt(prompt: Any, generated: Logprobs | None) -> Logprobs | None:
    """Return `generated` behind the tokens of the prompt, as vLLM's `prompt_logprobs` gives them.

    One mapping for each token (None for the first): id → {logprob, rank, decoded_token}, of the token itself and of the
    likeliest. `generated` where nothing was told of the prompt.
    """
    if not isinstance(prompt, list):
        return generated
    tokens, values, tops = [], [], []
    for entry in prompt:
        if isinstance(entry, dict):
            shown = [candidate for candidate in entry.values() if _is_prompt_entry(candidate)]
        else:
            shown = []
        if not shown:
            continue
        itself = max(shown, key=lambda candidate: candidate.get("rank") or 0)
        tokens.append(str(itself["decoded_token"]))
        values.append(float(itself["logprob"]))
        tops.append({str(candidate["decoded_token"]): float(candidate["logprob"]) for candidate in shown})
    if generated is not None:
        tokens, values = [*tokens, *generated.tokens], [*values, *generated.logprobs]
        tops += generated.top_logprobs or [{} for _ in generated.tokens]
    return _logprobs_or_none(tokens, values, tops)


def _is_prompt_entry(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("logprob"), int | float) and "decoded_token" in entry


def earliest_stop(text: str, phrases: Sequence[str]) -> str:
    """Return `text` up to the earliest occurrence of any phrase."""
    ends = [at for phrase in phrases if phrase and (at := text.find(phrase)) >= 0]
    if ends:
        return text[: min(ends)]
    return text


class StopGuard:
    """Passes on parts of a text up to the earliest stop phrase; what may be the beginning of one waits."""

    def __init__(self, hear: HearPiece, phrases: Sequence[str]) -> None:
        self._hear, self._phrases = hear, [phrase for phrase in phrases if phrase]
        self._waiting, self._ended = "", False

    def __call__(self, piece: ReplyPiece) -> None:
        """Send a part on, as far as it stands before a stop phrase."""
        if not piece.text:
            self._hear(piece)
        elif not self._ended:
            text = self._waiting + piece.text
            before = earliest_stop(text, self._phrases)
            self._ended = before != text
            kept = 0
            if not self._ended:
                kept = max((_overlap_length(text, phrase) for phrase in self._phrases), default=0)
            passed, self._waiting = before[: len(before) - kept], before[len(before) - kept :]
            if passed:
                self._hear(msgspec.structs.replace(piece, text=passed))


def _overlap_length(text: str, phrase: str) -> int:
    """Return how many of the last characters of a text are the beginning of a phrase."""
    longest = min(len(text), len(phrase) - 1)
    return next((size for size in range(longest, 0, -1) if text.endswith(phrase[:size])), 0)


def tool_call(identity: str, name: str, arguments: str) -> Row:
    """Return a tool call in the shape that records hold: OpenAI's."""
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


def _chat_logprobs(content: list[Any]) -> Logprobs | None:
    entries = [e for e in content if isinstance(e, dict) and isinstance(e.get("logprob"), int | float)]
    top: list[dict[str, float]] = []
    for entry in entries:
        alternatives: dict[str, float] = {}
        for other in entry.get("top_logprobs") or ():
            alternatives.setdefault(str(other.get("token")), float(other.get("logprob")))
        top.append(alternatives)
    return _logprobs_or_none([str(e.get("token")) for e in entries], [float(e["logprob"]) for e in entries], top)


def _logprobs_or_none(
    tokens: list[str], values: list[float], top: list[dict[str, float]] | None
) -> Logprobs | None:
    if not tokens:
        return None
    return Logprobs(tokens=tokens, logprobs=values, top_logprobs=top if top and any(top) else None)


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    return value


DELTA_TYPES = frozenset(
    {
        "response.output_text.delta",
        "response.reasoning_text.delta",
        "response.reasoning_summary_text.delta",
        "response.function_call_arguments.delta",
        "content_block_delta",
    }
)
"""Types of events with tokens in the responses API, and in Anthropic's."""
DELTA_KEYS = ("content", "reasoning", "reasoning_content", "tool_calls", "function_call")


class StreamedChoice(Struct):
    delta: Row | None = None
    text: str | None = None


class StreamEvent(Struct):
    choices: list[StreamedChoice] = []
    candidates: list[Any] = []
    type: Any = None


_events = msgspec.json.Decoder(StreamEvent)


def brings_tokens(event: bytes) -> bool:
    """Return whether the data of an event of a stream holds what a model generated, in the wires of all backends.

    The rules are those of vLLM 0.33.0 (`vllm/benchmarks/lib/endpoint_request_func.py`), from which the figures of load
    tests take their meaning; `reasoning_content`, the name that other servers give to `reasoning`, counts as well.
    """
    try:
        value = _events.decode(event)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False
    if value.choices:
        delta = value.choices[0].delta
        # on the completions endpoint, a token may be an empty text
        return delta is None or _holds_tokens(delta)
    return bool(value.candidates) or value.type in DELTA_TYPES


def _holds_tokens(delta: Row) -> bool:
    """Return whether a part of a chat reply holds tokens. One with a role and an empty text opens the reply; one with
    an empty text alone is a token without one, such as a special token."""
    if any(delta.get(key) for key in DELTA_KEYS):
        return True
    return delta.get("content") == "" and "role" not in delta
