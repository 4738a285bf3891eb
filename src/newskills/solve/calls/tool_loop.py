# SPDX-License-Identifier: Apache-2.0
"""Function calling: the model asks for tools, sees their results, and goes on until it asks for none.

https://platform.openai.com/docs/guides/function-calling; ReAct (https://arxiv.org/abs/2210.03629).
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from newskills.base.errors import FatalToolError, NewskillsError, ToolError
from newskills.base.protocols import Kit, Model, Tokenizer, Toolbox, ToolSpec
from newskills.base.reading.reply_text import join_turns
from newskills.base.records import Attempt, Message, Reply, Request, Row, Sample
from newskills.solve.calls.tool_calls import ToolCall, read_calls
from newskills.solve.chat import MAIN, ChatSolver, ask_next
from newskills.solve.dialogue import count_tokens, generated_tokens, with_budget
from newskills.solve.replies import join_replies

LIMIT_REACHED = "tool_call_limit_reached"
UNLIMITED = 1000
"""Calls of one sample where the user sets no limit: a model that goes round in circles must come to an end."""
AT_ONCE = 16
NOT_RUN = "Error: this call was not run, since the limit of tool calls is reached. Answer without further calls."


class ToolOptions(Struct, frozen=True, kw_only=True):
    """What the model may call, and how often for one sample (-1: `UNLIMITED`).

    settings       what else decides how the tools answer, for the resume key
    dropped_parts  kinds of message parts that are not stored in the conversation
    """

    specs: tuple[ToolSpec, ...]
    max_calls: int = -1
    settings: Row = {}
    dropped_parts: frozenset[str] = frozenset()

    @property
    def limit(self) -> int:
        if self.max_calls < 0:
            return UNLIMITED
        return self.max_calls


class _ToolConversation(Struct):
    """One sample under way. `asked` is the next request, `added` what is stored of the turns behind the prompt."""

    asked: Request
    request_id: str
    replies: list[Reply] = []
    added: list[Row] = []
    calls: int = 0
    unreadable: int = 0
    finish_reason: str | None = None


class ToolSolver:
    """Asks, runs the calls of the reply (up to `AT_ONCE` together, answered in order), and asks again.

    Mistakes of the model (arguments that are no JSON object or do not fit, unknown names) and failures of a tool
    are answered to the model. FatalToolError, SandboxError and what the model raises end the sample unscored. The
    state of tools is given up whatever happens.

    Record fields beside those of ChatSolver: `generation` is the text of all replies, token counts are sums over
    the requests, `reasoning_content` is a list; `num_tool_calls`, `tools`, `conversation`, `tool_metrics`.
    """

    def __init__(self, chat: ChatSolver, options: ToolOptions, *, counter: Tokenizer | None = None) -> None:
        """Create the solver; `counter` counts the tokens of results, only needed where generated tokens are
        limited."""
        self._chat, self._options, self._counter = chat, options, counter
        self._tools = [
            {
                "type": "function",
                "function": {"name": spec.name, "description": spec.description, "parameters": spec.input_schema},
            }
            for spec in options.specs
        ]

    def request(self, sample: Sample) -> Request:
        """Return the first request, with the tools. Raises DataError for a row that the prompt does not fit."""
        request = self._chat.request(sample)
        request.tools = self._tools
        request.solver = {"tools": self._options.settings, "max_tool_calls": self._options.max_calls}
        return request

    async def solve(self, sample: Sample, request: Request, kit: Kit) -> Attempt:
        """Let the model call tools, and return its attempt. Raises what the model raises, FatalToolError and
        SandboxError."""
        if kit.tools is None:
            raise FatalToolError("This run has no tools.")
        talk = _ToolConversation(asked=request, request_id=uuid.uuid4().hex)
        try:
            await self._converse(talk, kit.models[MAIN], kit.tools)
        finally:
            metrics = await _release_state(kit.tools, talk.request_id)
        whole = join_replies(talk.replies)
        whole.finish_reason = talk.finish_reason or whole.finish_reason
        texts = [self._chat.text(reply) for reply in talk.replies]
        text = join_turns([text for text in texts if text], "\n")
        attempt = await self._chat.attempt(sample, request, whole, text)
        thoughts = [reply.reasoning for reply in talk.replies if reply.reasoning]
        if talk.unreadable:
            metrics["num_tool_errors"] = metrics.get("num_tool_errors", 0) + talk.unreadable
        attempt.fields |= {
            **({"reasoning_content": thoughts} if thoughts else {}),
            "num_tool_calls": talk.calls,
            "tool_metrics": metrics,
            "tools": self._tools,
            "conversation": self._recorded_messages(request) + talk.added,
        }
        return attempt

    async def _converse(self, talk: _ToolConversation, model: Model, tools: Toolbox) -> None:
        while True:
            reply = await ask_next(model, talk.asked, talk.replies)
            if reply is None:
                talk.finish_reason = "length"  # what was said and shown has filled the model's context
                return
            calls = [] if reply.finish_reason == "length" else read_calls(reply, talk.calls)
            talk.added.append(_stored_reply(self._chat.text(reply), reply, calls))
            if not calls:
                return
            room = self._options.limit - talk.calls
            if room <= 0:
                talk.finish_reason = LIMIT_REACHED
                return
            results = await self._results(talk, calls[:room], tools)
            results += [NOT_RUN] * (len(calls) - len(results))
            if not await self._go_on(talk, reply, calls, results):
                talk.finish_reason = "length"
                return

    async def _results(self, talk: _ToolConversation, calls: Sequence[ToolCall], tools: Toolbox) -> list[str]:
        """Return the answers to `calls`, in their order. Raises what ends the sample."""
        places = asyncio.Semaphore(AT_ONCE)

        async def result(call: ToolCall) -> str | NewskillsError:
            if call.problem:
                return f"Error: {call.problem}"
            async with places:
                try:
                    return await tools.execute(call.name, call.arguments, talk.request_id)
                except NewskillsError as error:
                    is_tellable = isinstance(error, ToolError) and not isinstance(error, FatalToolError)
                    if is_tellable:
                        return f"Error: {error.message}"
                    return error

        outcomes = await asyncio.gather(*map(result, calls))
        talk.calls += len(calls)
        talk.unreadable += sum(bool(call.problem) for call in calls)
        for outcome in outcomes:
            if isinstance(outcome, NewskillsError):
                raise outcome
        return [outcome for outcome in outcomes if isinstance(outcome, str)]

    async def _go_on(
        self, talk: _ToolConversation, reply: Reply, calls: Sequence[ToolCall], results: Sequence[str]
    ) -> bool:
        """Prepare the next request, and return whether tokens are left to generate."""
        answers = [
            Message(role="tool", content=result, name=call.shown_name, tool_call_id=call.id)
            for call, result in zip(calls, results, strict=True)
        ]
        talk.added += [msgspec.to_builtins(answer) for answer in answers]
        raw = (reply.raw_message or {}).get("content")
        turn = Message(
            role="assistant",
            # Blocks of a provider's own go back as they came: thinking is signed there.
            content=raw if isinstance(raw, list) else reply.text,
            tool_calls=[call.row() for call in calls],
            reasoning_content=reply.reasoning,
        )
        messages = [*(talk.asked.messages or []), turn, *answers]
        following = with_budget(
            msgspec.structs.replace(talk.asked, messages=messages),
            await self._tokens_spent(talk, reply, calls, results),
        )
        if following is not None:
            talk.asked = following
        return following is not None

    async def _tokens_spent(
        self, talk: _ToolConversation, reply: Reply, calls: Sequence[ToolCall], results: Sequence[str]
    ) -> int:
        """Return the tokens generated and shown, where they are limited."""
        if talk.asked.inference.tokens_to_generate is None:
            return 0
        spent = await generated_tokens(reply, self._counter) + await count_tokens("".join(results), self._counter)
        if reply.usage.output_tokens is None:
            spent += await count_tokens("".join(call.raw_arguments for call in calls), self._counter)
        return spent

    def _recorded_messages(self, request: Request) -> list[Row]:
        """Return the prompt's messages without what does not belong into records."""
        rows: list[Row] = [msgspec.to_builtins(message) for message in request.messages or []]
        for row in rows:
            if isinstance(row.get("content"), list):
                row["content"] = [part for part in row["content"] if not self._is_dropped(part)]
        return rows

    def _is_dropped(self, part: Row) -> bool:
        image = part.get("image_url")
        url = image.get("url") if isinstance(image, dict) else image
        return part.get("type") in self._options.dropped_parts or str(url).startswith("data:")


def _stored_reply(text: str, reply: Reply, calls: Sequence[ToolCall]) -> Row:
    """Return a reply as a message; its reasoning stands under both names in use."""
    row: Row = {"role": "assistant", "content": text}
    if reply.reasoning:
        row |= {"reasoning_content": reply.reasoning, "reasoning": reply.reasoning}
    return row | ({"tool_calls": [call.row() for call in calls]} if calls else {})


async def _release_state(tools: Toolbox, request_id: str) -> Row:
    """Give up the request's state, and return what was measured. Trouble with giving up state takes nothing from an
    answer that is there."""
    with contextlib.suppress(NewskillsError):
        return await asyncio.shield(asyncio.ensure_future(tools.release(request_id)))
    return {}
