# SPDX-License-Identifier: Apache-2.0
"""From a request body to the text of the reply: prompt, answer, tokens, stop strings, log-probabilities."""

from __future__ import annotations

import re
import zlib
from typing import Any

from msgspec import Struct

from tests.server.script import Answer, Script, fraction

Body = dict[str, Any]
RUNNER_UP = -0.7
_TOKEN = re.compile(r"\A\n|\s*\S+|\s+$")


class Completion(Struct, kw_only=True):
    """One choice of a reply. `stopped_by` is the stop string that ended it, if one did."""

    text: str
    tokens: list[str]
    reasoning: str
    finish_reason: str
    stopped_by: str | None
    input_tokens: int
    output_tokens: int
    reasoning_tokens: int


class Vocabulary:
    """A toy tokenizer: a token is a word with the white space before it; ids are given out in order of sight."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._tokens: list[str] = []

    def encode(self, text: str) -> list[int]:
        ids = []
        for token in tokens_of(text):
            if token not in self._ids:
                self._ids[token] = len(self._tokens)
                self._tokens.append(token)
            ids.append(self._ids[token])
        return ids

    def decode(self, ids: list[int]) -> str:
        return "".join(self._tokens[i] if i < len(self._tokens) else f"<{i}>" for i in ids)


def tokens_of(text: str) -> list[str]:
    """The pieces of `text`; joined they are `text` again."""
    return _TOKEN.findall(text)


def text_of(content: Any) -> str:
    """A message's text; parts of other types than text are left out."""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or [] if isinstance(part, dict))


def prompt_of(body: Body, vocabulary: Vocabulary) -> str:
    """All that the model would read, messages on lines of their own."""
    if "messages" in body:
        return "\n".join(text_of(message.get("content")) for message in body["messages"])
    asked = body.get("prompt", body.get("input", body.get("content", "")))
    if isinstance(asked, list) and asked and isinstance(asked[0], int):
        return vocabulary.decode(asked)
    if isinstance(asked, list) and asked and isinstance(asked[0], dict):
        return "\n".join(text_of(item.get("content", item.get("output", ""))) for item in asked)
    if isinstance(asked, list):
        return "\n".join(str(item) for item in asked)
    return asked if isinstance(asked, str) else ""


def max_tokens_of(body: Body) -> int | None:
    """The limit under any of the names of the three endpoints."""
    for key in ("max_completion_tokens", "max_tokens", "max_output_tokens"):
        if body.get(key) is not None:
            return int(body[key])
    return None


def calls_of(script: Script, body: Body) -> tuple[Body, ...]:
    """The tool calls of this reply: those of the turn that the conversation has come to."""
    if not script.tool_turns:
        return script.tool_calls
    items = body.get("messages") or body.get("input") or []
    turns = sum(bool(item.get("tool_calls")) for item in items)
    kinds = [item.get("type") for item in items]
    turns += sum(
        a == "function_call" and b != "function_call" for a, b in zip(kinds, [*kinds[1:], ""], strict=True)
    )
    return script.tool_turns[turns] if turns < len(script.tool_turns) else ()


def answer_text(answer: Answer, body: Body, prompt: str, sighting: int, choice: int) -> str:
    """What the script's answer says to this request; `choice` numbers the choices of `n`."""
    if answer.kind == "echo":
        return _last_user_text(body) or prompt
    if answer.kind == "table":
        return next((answer.template % value for key, value in answer.table.items() if key in prompt), answer.text)
    if answer.kind == "random":
        drawn = int(fraction(answer.seed, body.get("seed"), prompt, choice) * answer.modulus)
        return answer.template % drawn
    if answer.kind == "sequence":
        return answer.texts[min(sighting, len(answer.texts)) - 1]
    return answer.text


def complete(script: Script, body: Body, text: str, prompt: str) -> Completion:
    """Cuts `text` at stop strings and at the token limit, as a server would, and counts."""
    stops = body.get("stop") or []
    text, stopped_by = _cut_at_stop(text, [stops] if isinstance(stops, str) else list(stops))
    thought, said = tokens_of(script.reasoning), tokens_of(text)
    limit, reason = max_tokens_of(body), "tool_calls" if calls_of(script, body) else "stop"
    if limit is not None and len(thought) + len(said) > limit:
        thought, said = thought[:limit], said[: max(0, limit - len(thought))]
        reason, stopped_by = "length", None
    return Completion(
        text="".join(said),
        tokens=said,
        reasoning="".join(thought),
        finish_reason=script.finish_reason or reason,
        stopped_by=stopped_by,
        input_tokens=len(tokens_of(prompt)),
        output_tokens=len(said) + len(thought),
        reasoning_tokens=len(thought),
    )


def logprob(token: str, rank: int = 0) -> float:
    """A made-up natural log-probability, the same for the same token; lower for each rank."""
    return -(zlib.crc32(token.encode()) % 1000) / 1000 - rank


def chat_logprobs(tokens: list[str], top: int) -> Body:
    """`choices[].logprobs` of the chat endpoint."""
    return {
        "content": [
            {**_entry(token, 0), "top_logprobs": [_entry(alternative(token, r), r) for r in range(top)]}
            for token in tokens
        ]
    }


def text_logprobs(tokens: list[str], top: int) -> Body:
    """`choices[].logprobs` of the completions endpoint."""
    offsets, position = [], 0
    for token in tokens:
        offsets.append(position)
        position += len(token)
    return {
        "tokens": tokens,
        "token_logprobs": [logprob(token) for token in tokens],
        "top_logprobs": [{alternative(t, r): logprob(alternative(t, r), r) for r in range(top)} for t in tokens],
        "text_offset": offsets,
    }


def echoed_logprobs(tokens: list[str], script: Script) -> Body:
    """The same for the tokens of an echoed prompt: the first has none; another token always has −0.7."""
    shown = [f"{token}\ufffd" for token in tokens] if script.echo == "mangled" else tokens
    values = [script.likely.get(token, logprob(token)) for token in tokens]
    tops = [{token: value, f"{token}~": RUNNER_UP} for token, value in zip(shown, values, strict=True)]
    return {
        "tokens": shown,
        "token_logprobs": [None, *values[1:]],
        "top_logprobs": [None, *tops[1:]],
        "text_offset": text_logprobs(tokens, 0)["text_offset"],
    }


def prompt_logprobs(tokens: list[str], script: Script) -> list[Body | None]:
    """vLLM's own form: None for the first token, else by id the token itself and the likeliest, with their ranks."""
    told: list[Body | None] = []
    for place, token in enumerate(tokens):
        value = script.likely.get(token, logprob(token))
        rank = 1 if value >= RUNNER_UP else 7
        entry = {f"{place}": {"logprob": value, "rank": rank, "decoded_token": token}}
        if rank > 1:
            entry[f"{place + 1000}"] = {"logprob": RUNNER_UP, "rank": 1, "decoded_token": f"{token}~"}
        told.append(entry if place else None)
    return told


def alternative(token: str, rank: int) -> str:
    """The token that came `rank`-th; 0 is the token itself."""
    return token if rank == 0 else f"{token}~{rank}"


def _entry(token: str, rank: int) -> Body:
    return {"token": token, "logprob": logprob(token, rank), "bytes": list(token.encode())}


def _last_user_text(body: Body) -> str:
    asked = body.get("messages") or body.get("input")
    users = (
        [m for m in asked if isinstance(m, dict) and m.get("role") == "user"] if isinstance(asked, list) else []
    )
    return text_of(users[-1].get("content")) if users else ""


def _cut_at_stop(text: str, stops: list[str]) -> tuple[str, str | None]:
    found = [(text.index(stop), stop) for stop in stops if stop and stop in text]
    if not found:
        return text, None
    position, stop = min(found)
    return text[:position], stop
