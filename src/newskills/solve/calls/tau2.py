# SPDX-License-Identifier: Apache-2.0
"""A conversation of the model with a simulated user, both of whom may call functions of a service (tau2-bench)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from newskills.base.errors import ConfigError, ContextLimitError
from newskills.base.protocols import Kit, Model
from newskills.base.reading.reply_text import without_thinking
from newskills.base.records import Attempt, Inference, Message, Reply, Request, Row, Sample
from newskills.graders.tau2.grader import ENDED, start_service
from newskills.graders.tau2.service import ToolService
from newskills.solve.calls.tool_calls import ToolCall, read_calls, result_messages
from newskills.solve.chat import MAIN, ask
from newskills.solve.dialogue import append_messages
from newskills.solve.parts import SolverParts
from newskills.solve.replies import join_replies

GREETING = "Hi! How can I help you today?"
STOP = ("###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###")
Side = Literal["assistant", "user"]


class Tau2SolverConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++solver_config.*` of the solver `tau2`."""

    data: Annotated[str, Meta(description="folder with <domain>.json: the data of the simulated services")] = ""
    user: Annotated[
        str, Meta(description="role of the model that plays the user (++models.user.model=NAME …)")
    ] = "user"
    judge: Annotated[
        str,
        Meta(
            description="role of the model that judges assertions in words; empty: the model that plays the user"
        ),
    ] = ""
    max_steps: Annotated[
        int, Meta(ge=1, description="largest number of messages and calls, both sides together")
    ] = 200
    max_errors: Annotated[int, Meta(ge=1, description="largest number of refused calls, both sides together")] = 10
    user_prompt: Annotated[str, Meta(description="prompt that describes the user")] = "tau2/user"
    judge_prompt: Annotated[str, Meta(description="prompt that asks whether an assertion holds")] = (
        "tau2/assertion"
    )
    user_tokens: Annotated[
        int, Meta(ge=1, description="largest number of new tokens per request of the user or judge")
    ] = 2048


class _TwoSidedConversation(Struct):
    """The conversation as it is recorded, and what each side has seen of it."""

    service: ToolService
    agent: Request
    user: Request
    record: list[Row] = []
    replies: list[Reply] = []
    steps: int = 0
    errors: int = 0
    ended: str = ""


class Tau2Solver:
    """Row: `domain`, `policy`, `user_scenario`, `initial_state`, `evaluation_criteria`.

    Written: `conversation`, `ended` (user_stop, max_steps, too_many_errors, context), `nl_judgements`, and the costs of
    the model's own replies. The user's model ends the conversation by one of `STOP`; its failures are raised: they are
    no answer's fault.
    """

    Config = Tau2SolverConfig

    def __init__(self, parts: SolverParts, config: Tau2SolverConfig = Tau2SolverConfig()) -> None:  # noqa: B008 - frozen
        self._chat, self._config, self._load = parts.chat, config, parts.load

    def request(self, sample: Sample) -> Request:
        """Return the first request for the model itself, after the user's first words, which are not known yet. Raises
        DataError, ConfigError."""
        request = self._chat.request(sample)
        if request.messages is None:
            raise ConfigError("A conversation with a user needs ++inference.endpoint_type=chat.")
        request.messages = _system_messages(request.messages)
        request.solver = {"tau2": msgspec.to_builtins(self._config), "task": sample.row["user_scenario"]}
        return request

    async def solve(self, sample: Sample, request: Request, kit: Kit) -> Attempt:
        """Hold the conversation of the model with the user. Raises what the models raise, ConfigError where no model
        plays the user."""
        row, config = sample.row, self._config
        user = _role_model(kit, config.user)
        service = await asyncio.to_thread(start_service, row, config.data)
        talk = _TwoSidedConversation(
            service=service,
            agent=msgspec.structs.replace(request, tools=service.tools("assistant"), solver={}),
            user=self._play(row, service),
            record=[],
            replies=[],
        )
        _begin_conversation(talk, (row.get("initial_state") or {}).get("message_history") or ())
        side: Side = "user" if talk.record[-1]["role"] == "assistant" else "assistant"
        while not talk.ended:
            await self._turn(talk, side, kit.models[MAIN] if side == "assistant" else user)
            side = "user" if side == "assistant" else "assistant"
        judged = await self._judge(row, talk, _role_model(kit, config.judge or config.user))
        whole = join_replies(talk.replies) if talk.replies else Reply(text="")
        last = next(
            (m["content"] for m in reversed(talk.record) if m["role"] == "assistant" and m.get("content")), ""
        )
        attempt = await self._chat.attempt(sample, request, whole, str(last))
        attempt.fields |= {"conversation": talk.record, "ended": talk.ended, "nl_judgements": judged}
        return attempt

    def _side(self, prompt: str, row: Row, tools: list[Row] | None) -> Request:
        """Return the request that the user's or the judge's model is asked with."""
        inference = Inference(tokens_to_generate=self._config.user_tokens)
        messages = self._load(prompt).messages(row)
        return Request(messages=messages, inference=inference, tools=tools)

    def _play(self, row: Row, service: ToolService) -> Request:
        request = self._side(self._config.user_prompt, row, service.tools("user") or None)
        return msgspec.structs.replace(request, messages=_system_messages(request.messages or []))

    async def _turn(self, talk: _TwoSidedConversation, side: Side, model: Model) -> None:
        """Let one side speak; before that it may call functions."""
        while not talk.ended:
            request_of_side = talk.agent if side == "assistant" else talk.user
            try:
                reply = await ask(model, request_of_side)
            except ContextLimitError:
                if side == "user" or not talk.replies:
                    raise
                talk.ended = "context"
                return
            if side == "assistant":
                talk.replies.append(reply)
            talk.steps += 1
            called = read_calls(reply, sum(len(m.get("tool_calls") or ()) for m in talk.record))
            text = without_thinking(reply.text)
            if called:
                _run_calls(talk, side, text, called)
            else:
                _add_text(talk, side, text)
            if not talk.ended and talk.steps >= self._config.max_steps:
                talk.ended = "max_steps"
            if not talk.ended and talk.errors >= self._config.max_errors:
                talk.ended = "too_many_errors"
            if not called:
                return

    async def _judge(self, row: Row, talk: _TwoSidedConversation, model: Model) -> list[bool | None]:
        """Return a verdict for each assertion in words; only where they count, and the conversation does."""
        criteria = row["evaluation_criteria"]
        if talk.ended != ENDED or "NL_ASSERTION" not in (criteria.get("reward_basis") or ()):
            return []
        heard = [m for m in talk.record if m["role"] != "tool" and not m.get("tool_calls")]
        conversation = "\n\n".join(f"{m['role'].capitalize()}: {m['content']}" for m in heard)
        verdicts: list[bool | None] = []
        for assertion in criteria.get("nl_assertions") or ():
            question = self._side(
                self._config.judge_prompt, {"conversation": conversation, "assertion": assertion}, None
            )
            verdicts.append(_yes_or_no((await ask(model, question)).text))
        return verdicts


def _system_messages(messages: Sequence[Message]) -> list[Message]:
    """Return a prompt as the instructions of a conversation that is yet to begin."""
    return [Message(role="system", content=message.content) for message in messages]


def _role_model(kit: Kit, role: str) -> Model:
    if role not in kit.models:
        raise ConfigError(
            f"tau2-bench needs a second model that plays the user, but no model has the role '{role}'.",
            hint=f"Give one: ++models.{role}.model=NAME ++models.{role}.server_type=openai.",
        )
    return kit.models[role]


def _begin_conversation(talk: _TwoSidedConversation, history: Sequence[Row]) -> None:
    """Let the agent greet, or go on from what the task says was said before."""
    if not history:
        _add_text(talk, "assistant", GREETING)
        return
    for message in history:
        if message["role"] in ("user", "assistant") and message.get("content"):
            _add_text(talk, message["role"], message["content"])
        elif message["role"] == "assistant":
            made = [
                ToolCall(id=call["id"], name=call["name"], arguments=call["arguments"])
                for call in message["tool_calls"]
            ]
            results = [
                m["content"] for m in history if m["role"] == "tool" and m["id"] in {call.id for call in made}
            ]
            talk.agent = _append_calls(talk.agent, "", made, results)


def _add_text(talk: _TwoSidedConversation, side: Side, text: str) -> None:
    """Add a text for both sides; each sees its own words as the assistant's."""
    talk.record.append({"role": side, "content": text})
    if side == "user" and any(word in text for word in STOP):
        talk.ended = ENDED
        return
    talk.agent = append_messages(talk.agent, [Message(role=side, content=text)])
    talk.user = append_messages(talk.user, [Message(role="assistant" if side == "user" else "user", content=text)])


def _run_calls(talk: _TwoSidedConversation, side: Side, text: str, called: Sequence[ToolCall]) -> None:
    """Run calls; only the caller sees them and their results."""
    results = []
    for call in called:
        if call.problem:
            output = f"Error: {call.problem}"
        else:
            output = talk.service.call(side, call.name, call.arguments)
        talk.errors += output.startswith("Error: ")
        results.append(output)
    talk.steps += len(called)
    rows = [{"id": call.id, "name": call.name, "arguments": _call_arguments(call)} for call in called]
    talk.record.append({"role": side, "content": text or None, "tool_calls": rows})
    talk.record += [
        {"role": "tool", "id": call.id, "content": output} for call, output in zip(called, results, strict=True)
    ]
    if side == "assistant":
        talk.agent = _append_calls(talk.agent, text, called, results)
    else:
        talk.user = _append_calls(talk.user, text, called, results)


def _append_calls(request: Request, text: str, called: Sequence[ToolCall], results: Sequence[str]) -> Request:
    message = Message(role="assistant", content=text, tool_calls=[call.row() for call in called])
    return append_messages(request, [message, *result_messages(called, results)])


def _call_arguments(call: ToolCall) -> Any:
    if call.problem:
        return call.raw_arguments
    return call.arguments


def _yes_or_no(text: str) -> bool | None:
    """Return the verdict of the last line that is yes or no, marks aside; None where there is none."""
    for line in reversed(without_thinking(text).splitlines()):
        word = line.strip(" *_.:").lower().removeprefix("verdict:").strip(" *_.:")
        if word in ("yes", "no"):
            return word == "yes"
    return None
