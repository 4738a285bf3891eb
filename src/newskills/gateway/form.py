# SPDX-License-Identifier: Apache-2.0
"""The form between the protocols: what a program asks for, what it is answered, and why it is refused.

Messages, tools and calls have OpenAI's chat shape (`base.records`), since every backend takes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, Protocol

import msgspec
from msgspec import Struct, field

from newskills.base.records import CacheMark, Message, Reply, ReplyPiece, Row

ProblemKind = Literal[
    "request", "authentication", "permission", "not_found", "too_large", "rate", "context", "overloaded", "server"
]


class ToolChoice(Struct, frozen=True, kw_only=True):
    """`mode` any: the model must call a tool, `name` where only that; `parallel` None: as the backend does."""

    mode: Literal["auto", "none", "any"] = "auto"
    name: str = ""
    parallel: bool | None = None


class ProgramRequest(Struct, kw_only=True):
    """What a program asks for. None: it did not say.

    model   the name that it asked by
    wire    what its protocol needs in order to write the reply
    cache_marks  where it wants a cache of prompts to hold the beginning
    notes   what of its request was dropped
    """

    messages: list[Message]
    model: str = ""
    tools: list[Row] = []
    choice: ToolChoice = ToolChoice()
    stop: list[str] = []
    response_format: Row | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    effort: str | None = None
    stream: bool = False
    wire: Row = {}
    cache_marks: list[CacheMark] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def note(self, sentence: str) -> None:
        """Keep a sentence about what was dropped, once."""
        if sentence not in self.notes:
            self.notes.append(sentence)


class ReplyHead(Struct, frozen=True, kw_only=True):
    """What is known of a reply before it comes; `number` counts those of a task, `created` is in seconds since 1970."""

    request: ProgramRequest
    task: str
    number: int
    created: int

    @property
    def id(self) -> str:
        """Identity of the reply, the same in a repeated run."""
        return f"{self.task}-{self.number}"


class Served(ReplyHead, frozen=True, kw_only=True):
    """A request with its reply."""

    reply: Reply


class GatewayProblem(Exception):
    """Why a request gets no reply: written as its protocol's error.

    final        trying again is pointless, and clients that ask (`x-should-retry`) are told so
    retry_after  seconds
    """

    def __init__(
        self,
        kind: ProblemKind,
        message: str,
        *,
        status: int,
        retry_after: float | None = None,
        final: bool = False,
        code: str | None = None,
    ) -> None:
        super().__init__(message)
        self.kind, self.status, self.retry_after, self.final, self.code = kind, status, retry_after, final, code
        self.message = message.encode("utf-8", "replace").decode()


def bad_request(sentence: str, code: str | None = None) -> GatewayProblem:
    """Return the refusal of a request that cannot be served as it is."""
    return GatewayProblem("request", sentence, status=400, final=True, code=code)


class ReplyStream(Protocol):
    """Writes one reply as server-sent events, in parts or at once."""

    differs: bool
    """Whether something else has been written than the whole reply says."""

    def take(self, piece: ReplyPiece) -> bytes:
        """Return the events of a part; none where it has to wait."""
        ...

    def end(self, reply: Reply) -> bytes:
        """Return the events of what is missing, and the end."""
        ...

    def fail(self, problem: GatewayProblem) -> bytes:
        """Return the end of a stream whose reply does not come."""
        ...


class ProgramProtocol(Protocol):
    """How programs of one kind ask and are answered."""

    name: str
    ping: bytes
    """Event that keeps a stream open and says nothing."""

    def read(self, body: Row, model: str, stream: bool) -> ProgramRequest:
        """Read a request; `model` and `stream` where the address says them. Raises GatewayProblem."""
        ...

    def answer(self, served: Served) -> Row:
        """Return the body of a reply that is not streamed."""
        ...

    def stream(self, head: ReplyHead) -> ReplyStream:
        """Return what writes the reply as server-sent events."""
        ...

    def error(self, problem: GatewayProblem) -> Row: ...

    def count(self, tokens: int) -> Row:
        """Return the answer to a request that only counts."""
        ...


PIECE = 2000
"""Characters of a text in one event."""


def split_text(text: str, size: int | None = None) -> Iterator[str]:
    """Yield `text` in pieces of `size` characters (PIECE), none where it is empty."""
    size = size or PIECE
    for start in range(0, len(text), size):
        yield text[start : start + size]


def encode_event(value: Row, name: str = "") -> bytes:
    """Return one server-sent event with `value` as JSON. Text of a model cannot break out of it: JSON has no raw line
    breaks."""
    data = encode_json(value)
    if name:
        return b"event: %b\ndata: %b\n\n" % (name.encode(), data)
    return b"data: %b\n\n" % data


def encode_json(value: Any) -> bytes:
    """Encode as JSON; lone surrogates, which UTF-8 has no bytes for, become `?`."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_without_surrogates(value))


def arguments_of(call: Row) -> Row:
    """Return the arguments of a call as an object; a text that is none, under the key `arguments`.

    >>> arguments_of({"function": {"arguments": '{"a": 1}'}}), arguments_of({"function": {"arguments": "ls"}})
    ({'a': 1}, {'arguments': 'ls'})
    """
    text = _called_function(call).get("arguments") or "{}"
    if isinstance(text, dict):
        return text
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError, TypeError):
        return {"arguments": text}
    if isinstance(value, dict):
        return value
    return {"arguments": value}


def name_of(call: Row) -> str:
    """Return the name of the called tool."""
    return str(_called_function(call).get("name") or "")


def argument_text(call: Row) -> str:
    """Return the arguments of a call as the model wrote them."""
    text = _called_function(call).get("arguments")
    if isinstance(text, str):
        return text
    return encode_json(text or {}).decode()


def _called_function(call: Row) -> Row:
    """Return the called function; an empty one where a server or a program sent something else."""
    function = call.get("function")
    if isinstance(function, dict):
        return function
    return {}


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list | tuple):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(name): _without_surrogates(item) for name, item in value.items()}
    return value
