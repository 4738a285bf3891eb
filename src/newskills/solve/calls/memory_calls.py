# SPDX-License-Identifier: Apache-2.0
"""Questions about what a model was told in earlier conversations, of which it knows what it has written down.

The conversations of a scenario are held once, one after the other, by the first of its questions; the others start from
the memory that they left. A run that was cut short holds those of its scenarios that it still has questions of again.
"""

from __future__ import annotations

import asyncio
import copy
import hashlib
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from newskills.base.errors import ConfigError
from newskills.base.protocols import Kit, Model
from newskills.base.records import Attempt, Message, Reply, Request, Row, Sample
from newskills.solve.calls.function_calls import CallConversation, FunctionCallSolver, next_turn, run_turn
from newskills.solve.calls.memories import Encoder, Memory, check_encoder, load_encoder, make_memory
from newskills.solve.chat import MAIN
from newskills.solve.parts import SolverParts
from newskills.solve.replies import join_replies

_KEEPING = (
    "You can keep notes with the functions that you are given; they outlast this conversation, and you will need them"
    " in later ones. Write down whatever could matter later, correct what has changed, and keep it easy to find."
)
_LAYERS = (
    " There are two stores: the core, which is small and which you always see, and the archive, which is large and has"
    " to be searched."
)
_NOTES = "Your {part} now:\n{shown}"


class MemoryConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++solver_config.*` of `solver=memory_calls`."""

    memory: Annotated[Literal["kv", "vector", "rec_sum"], Meta(description="type of memory")] = "kv"


class _Scenario(Struct):
    """`state` of its memory after all conversations; `replies`: those that it took."""

    lock: asyncio.Lock
    state: Row | None = None
    replies: list[Reply] = []


class MemoryCallSolver(FunctionCallSolver):
    """Rows have `scenario`, `setting`, `sessions` (texts of the user, by conversation), `question`.

    Record fields beside those of the chat: `generation` is the last reply, empty where it never came to one;
    `memory_calls` and `memory_digest` (which memory was asked), `num_tool_calls`; the sample that held the
    conversations has their tokens in `num_session_tokens`.
    """

    Config = MemoryConfig

    def __init__(self, parts: SolverParts, config: MemoryConfig = MemoryConfig()) -> None:  # noqa: B008 - frozen
        super().__init__(parts)
        self._kind = config.memory
        self._scenarios: dict[str, _Scenario] = {}
        self._encoder: Encoder | None = None
        self._trouble: ConfigError | None = None
        self._loading = asyncio.Lock()

    def check(self) -> None:
        """Raise ConfigError where the memory's library is missing."""
        if self._kind == "vector":
            check_encoder()

    def request(self, sample: Sample) -> Request:
        """Return the request without what the memory will hold, which is not known yet; the conversations that fill it
        are part of the key."""
        request = super().request(sample)
        row = sample.row
        request.solver = {"memory": self._kind, "setting": row["setting"], "sessions": row["sessions"]}
        return request

    async def solve(self, sample: Sample, request: Request, kit: Kit) -> Attempt:
        """Ask the row's question of a model with the scenario's memory. Raises what the model raises, ConfigError where
        the weights of the memory's encoder are missing."""
        row, model = sample.row, kit.models[MAIN]
        if self._kind == "vector":
            await self._load()
        scenario = self._scenarios.setdefault(row["scenario"], _Scenario(lock=asyncio.Lock()))
        held: list[Reply] = []
        async with scenario.lock:
            if scenario.state is None:
                scenario.state, held = await self._remember(row, request, model)
        memory = await self._memory(scenario.state)
        talk = CallConversation(asked=_open_request(request, row["setting"], memory), services=memory)
        done = await run_turn(talk, model)
        whole = join_replies(talk.replies)
        whole.finish_reason = talk.finish_reason or whole.finish_reason
        last = self._chat.text(talk.replies[-1]) if done else ""
        attempt = await self._chat.attempt(sample, request, whole, last)
        steps = [step for turn in talk.turns for step in turn]
        attempt.fields |= {
            "memory_calls": steps,
            "num_tool_calls": sum(map(len, steps)),
            "memory_digest": hashlib.blake2b(msgspec.json.encode(scenario.state), digest_size=8).hexdigest(),
            **({"num_session_tokens": _output_tokens(held)} if held else {}),
        }
        return attempt

    async def _load(self) -> None:
        async with self._loading:
            if self._trouble is not None:
                raise self._trouble
            if self._encoder is None:
                try:
                    self._encoder = await asyncio.to_thread(load_encoder)
                except ConfigError as error:
                    self._trouble = error
                    raise

    async def _memory(self, state: Row) -> Memory:
        return await asyncio.to_thread(make_memory, self._kind, copy.deepcopy(state), self._encoder)

    async def _remember(self, row: Row, request: Request, model: Model) -> tuple[Row, list[Reply]]:
        """Return the state after all conversations, and the replies in them; one that comes to no end leaves what it
        has written."""
        state: Row = {}
        held: list[Reply] = []
        for texts in row["sessions"]:
            memory = await self._memory(state)
            first, *others = [Message(role="user", content=text) for text in texts]
            first_request = msgspec.structs.replace(request, messages=[first], solver={})
            talk = CallConversation(asked=_open_request(first_request, row["setting"], memory), services=memory)
            going = await run_turn(talk, model)
            for message in others:
                if not going:
                    break
                next_turn(talk, [_message_row(message)], [])
                going = await run_turn(talk, model)
            held += talk.replies
            state = memory.state()
        return state, held


def _open_request(request: Request, setting: str, memory: Memory) -> Request:
    layered = "core" in memory.state()
    notes = _NOTES.format(part="core" if layered else "notes", shown=memory.visible_text())
    system_text = f"{setting}\n\n{_KEEPING}{_LAYERS if layered else ''}\n\n{notes}"
    messages = [Message(role="system", content=system_text), *(request.messages or [])]
    return msgspec.structs.replace(request, messages=_one_system(messages))


def _one_system(messages: list[Message]) -> list[Message]:
    """Join instructions in one message: chat templates refuse a second one."""
    rest = [message for message in messages if message.role != "system"]
    system_texts = [str(message.content) for message in messages if message.role == "system"]
    return [Message(role="system", content="\n\n".join(system_texts)), *rest]


def _message_row(message: Message) -> Any:
    return msgspec.to_builtins(message)


def _output_tokens(replies: list[Reply]) -> int:
    return sum(reply.usage.output_tokens or 0 for reply in replies)
