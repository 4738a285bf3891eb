# SPDX-License-Identifier: Apache-2.0
"""Replies as streams: parts become events as soon as the model has written them, or a whole reply becomes all at once.

Most protocols know a reply as blocks, one after the other. So a part of another block waits until the open call of a
tool is complete, and a call begins when it is clear that its arguments are an object. What has not been passed on when
the whole reply is there follows then; where backends tell no parts, that is all of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from newskills.base.records import Reply, ReplyPiece, Row, Usage
from newskills.gateway.form import (
    GatewayProblem,
    ReplyHead,
    ReplyStream,
    argument_text,
    name_of,
    split_text,
)

BlockKind = Literal["text", "reasoning", "call"]


class ReplyBlock(Struct, kw_only=True, eq=False):
    """A part of a reply as programs see it. `call`: number among the calls; `waiting`: arguments before it is open."""

    kind: BlockKind
    number: int = 0
    call: int = 0
    call_id: str = ""
    name: str = ""
    state: Literal["waiting", "open", "closed"] = "waiting"
    waiting: str = ""
    parts: list[str] = field(default_factory=list)

    @property
    def content(self) -> str:
        """Return what has been passed on of it."""
        return "".join(self.parts)

    def may_open(self) -> bool:
        """Return whether a call is certain to be one of an object."""
        return bool(self.call_id and self.name) and self.waiting.lstrip().startswith("{")

    def is_complete(self) -> bool:
        """Return whether the arguments of a call are whole."""
        return self.content.rstrip().endswith("}") and _parse_object(self.content) is not None


class BlockStream:
    """Fits `ReplyStream`. Protocols say how blocks begin, grow and end.

    usage    token counts as far as they are known
    differs  whether something else was passed on than the whole reply says
    """

    def __init__(self, head: ReplyHead) -> None:
        self.head = head
        self.usage = Usage()
        self.differs = False
        self._begun = False
        self._events: list[bytes] = []
        self._open: ReplyBlock | None = None
        self._count = self._call_count = 0
        self._passed: dict[str, list[str]] = {"text": [], "reasoning": []}
        self._calls: dict[int, ReplyBlock] = {}
        self._waiting: list[ReplyPiece] = []

    def take(self, piece: ReplyPiece) -> bytes:
        """Return the events of a part, or nothing where it has to wait."""
        if piece.usage is not None:
            self.usage = piece.usage
            return b""
        if not self._waiting and self._is_of_open_call(piece):
            self._pass_native(piece)
            return self._drain_events()
        self._waiting.append(piece)
        while (free := self._next_free()) is not None:
            self._waiting.remove(free)
            self._pass_native(free)
        return self._drain_events()

    def end(self, reply: Reply) -> bytes:
        """Return the events of all that has not been passed on, and the end."""
        self._waiting.clear()
        self.usage = reply.usage
        if not self._begun:
            for piece in self.thoughts(reply):
                self._pass_native(piece)
        calls = [(call, self._matching_block(call)) for call in reply.tool_calls or ()]
        for call, block in calls:
            if block is not None:
                self._complete(block, self.arguments(call))
        self._add_rest("reasoning", reply.reasoning or "")
        self._add_rest("text", reply.text)
        for call, block in calls:
            if block is None:
                new = ReplyBlock(kind="call", call_id=str(call.get("id") or ""), name=name_of(call))
                self._begin_block(new)
                self._grow(new, self.arguments(call))
        if not self._count:
            self.block("text")
        self.close(reply)
        self.write(self.ending(reply))
        return self._drain_events()

    def fail(self, problem: GatewayProblem) -> bytes:
        """Return the end of a stream whose reply does not come."""
        self.write(self.failure(problem, begun=self._begun))
        return self._drain_events()

    def write(self, data: bytes) -> None:
        """Add events; before the first ones, those that begin a reply."""
        if not self._begun:
            self._begun = True
            self._events.append(self.beginning())
        self._events.append(data)

    def block(self, kind: BlockKind) -> ReplyBlock:
        """Return the open block, which is of that kind: where it is not, it is closed, and another one opened."""
        if self._open is None or self._open.kind != kind:
            self._begin_block(ReplyBlock(kind=kind))
        assert self._open is not None
        return self._open

    def close(self, reply: Reply | None = None) -> None:
        """Close the open block, where there is one; `reply` where it was the last."""
        if self._open is not None:
            block, self._open = self._open, None
            block.state = "closed"
            self.write(self.closing(block, reply))

    def next_number(self) -> int:
        """Return the number of a further block."""
        self._count += 1
        return self._count - 1

    # What protocols say of themselves.

    def beginning(self) -> bytes:
        return b""

    def opening(self, block: ReplyBlock) -> bytes:
        return b""

    def growth(self, block: ReplyBlock, text: str) -> bytes:
        return b""

    def closing(self, block: ReplyBlock, reply: Reply | None) -> bytes:
        return b""

    def ending(self, reply: Reply) -> bytes:
        return b""

    def failure(self, problem: GatewayProblem, *, begun: bool) -> bytes:
        return b""

    def native(self, piece: ReplyPiece) -> bool:
        """Write a part in the words of the protocol itself, where the backend speaks it; return whether it was."""
        return False

    def thoughts(self, reply: Reply) -> Iterator[ReplyPiece]:
        """Yield what a whole reply begins with."""
        if reply.reasoning:
            yield ReplyPiece(reasoning=reply.reasoning)

    def arguments(self, call: Row) -> str:
        """Return the arguments of a call as the protocol has them."""
        return argument_text(call)

    def _next_free(self) -> ReplyPiece | None:
        """Return the first of the parts that need not wait; None where all have to, or there are none."""
        block = self._open
        if block is None or block.kind != "call" or not self._waiting or block.is_complete():
            return next(iter(self._waiting), None)
        return next(filter(self._is_of_open_call, self._waiting), None)

    def _is_of_open_call(self, piece: ReplyPiece) -> bool:
        return piece.call is not None and self._open is not None and self._calls.get(piece.call) is self._open

    def _pass_native(self, piece: ReplyPiece) -> None:
        if piece.native is not None and self.native(piece):
            self._passed["reasoning"].append(piece.reasoning)
            self._passed["text"].append(piece.text)
            if piece.call is not None:
                block = ReplyBlock(kind="call", call_id=piece.call_id, name=piece.name, state="closed")
                block.parts.append(piece.arguments)
                self._calls[piece.call] = block
            return
        if piece.reasoning:
            self._add("reasoning", piece.reasoning)
        if piece.text:
            self._add("text", piece.text)
        if piece.call is not None:
            self._pass_call(piece.call, piece)

    def _pass_call(self, number: int, piece: ReplyPiece) -> None:
        block = self._calls.setdefault(number, ReplyBlock(kind="call"))
        if block.state == "waiting":
            block.call_id, block.name = piece.call_id or block.call_id, block.name + piece.name
            block.waiting += piece.arguments
            # calls keep their order: one that has no arguments yet may still get some
            earlier = (self._calls[other] for other in self._calls if other < number)
            if block.may_open() and all(other.state != "waiting" for other in earlier):
                self._begin_block(block)
                self._grow(block, block.waiting)
        elif block.state == "open":
            self._grow(block, piece.arguments)
        elif piece.arguments:
            self.differs = True

    def _begin_block(self, block: ReplyBlock) -> None:
        self.close()
        block.state, block.number = "open", self.next_number()
        if block.kind == "call":
            block.call = self._call_count
            self._call_count += 1
        self._open = block
        self.write(self.opening(block))

    def _grow(self, block: ReplyBlock, text: str) -> None:
        if text:
            block.parts.append(text)
        for piece in split_text(text):
            self.write(self.growth(block, piece))

    def _add(self, kind: Literal["text", "reasoning"], text: str) -> None:
        self._passed[kind].append(text)
        self._grow(self.block(kind), text)

    def _add_rest(self, kind: Literal["text", "reasoning"], whole: str) -> None:
        passed = "".join(self._passed[kind])
        if not whole.startswith(passed):
            self.differs = True
        elif len(passed) < len(whole):
            self._add(kind, whole[len(passed) :])

    def _matching_block(self, call: Row) -> ReplyBlock | None:
        """Return the block in which a call has been passed on, if it has; no other call gets it."""
        for number, block in self._calls.items():
            if block.state != "waiting" and (block.call_id, block.name) == (call.get("id"), name_of(call)):
                return self._calls.pop(number)
        return None

    def _complete(self, block: ReplyBlock, arguments: str) -> None:
        passed = block.content
        if block.state == "open" and arguments.startswith(passed):
            self._grow(block, arguments[len(passed) :])
        elif passed != arguments and _parse_object(passed) != _parse_object(arguments or "{}"):
            self.differs = True

    def _drain_events(self) -> bytes:
        data = b"".join(self._events)
        self._events.clear()
        return data


class LiveReply:
    """A reply on its way to a program that streams: gets parts from the backend (`begun`: some have come), and gives
    events."""

    def __init__(self, stream: ReplyStream) -> None:
        self.begun = False
        self._stream = stream
        self._events: list[bytes] = []
        self._news = asyncio.Event()

    def hear(self, piece: ReplyPiece) -> None:
        """Turn a part into events."""
        self.begun = self.begun or piece.usage is None
        if events := self._stream.take(piece):
            self._events.append(events)
            self.wake()

    def end(self, reply: Reply) -> bool:
        """Add the rest; return whether all that was passed on is what the reply says."""
        self._events.append(self._stream.end(reply))
        return not self._stream.differs

    def fail(self, problem: GatewayProblem) -> None:
        """Add the end of a stream whose reply does not come."""
        self._events.append(self._stream.fail(problem))

    def wake(self) -> None:
        """Tell who waits that there are events."""
        self._news.set()

    def events(self) -> bytes:
        """Return what has come since the last time."""
        data = b"".join(self._events)
        self._events.clear()
        self._news.clear()
        return data

    async def wait(self, seconds: float) -> bool:
        """Wait for events or the end; return False where none come in that time."""
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return False
        return True


def _parse_object(text: str) -> Any:
    """Return arguments as an object; None where they are none."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return None
    if isinstance(value, dict):
        return value
    return None
