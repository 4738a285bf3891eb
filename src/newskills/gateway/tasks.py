# SPDX-License-Identifier: Apache-2.0
"""Tasks of programs: what each may spend, what it has spent, and how its requests become those of the run."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET, Struct, field

from newskills.base.errors import NewskillsError
from newskills.base.protocols import Model
from newskills.base.records import Inference, Message, Reply, Request, Row, TokenPrices
from newskills.gateway.form import ProgramRequest, ToolChoice, arguments_of, bad_request, name_of

SAMPLING = {
    "temperature": "temperature",
    "top_p": "top_p",
    "seed": "random_seed",
    "effort": "reasoning_effort",
    "max_tokens": "tokens_to_generate",
}
"""What a program may decide, and what it is called in the run's settings."""
ALL = frozenset(SAMPLING.values())
MOST_SETTINGS = 32
"""Settings of sampling that are kept for a task: backends encode each of them once."""


class TaskLimits(Struct, frozen=True, kw_only=True):
    """What a task may use; 0: no limit. `tokens`: those that the model generates; `cost` needs prices."""

    requests: int = 0
    tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0


def openai_choice(choice: ToolChoice) -> Row:
    """Return the keys of a request body for a choice of tools, in the words of OpenAI's chat."""
    keys: Row = {}
    if choice.name:
        keys["tool_choice"] = {"type": "function", "function": {"name": choice.name}}
    elif choice.mode != "auto":
        keys["tool_choice"] = {"none": "none", "any": "required"}[choice.mode]
    if choice.parallel is not None:
        keys["parallel_tool_calls"] = choice.parallel
    return keys


class Backend(Struct, frozen=True, kw_only=True):
    """What the backend behind the gateway can do.

    choice  keys of a request body for a choice of tools
    blocks  it wants its own content back in later turns (signatures of thinking), not the text alone
    """

    choice: Callable[[ToolChoice], Row] = openai_choice
    blocks: bool = False


class History:
    """What the model has said in a task, so that a program's history holds it to the letter.

    Protocols and programs rewrite it: arguments become objects, signatures are lost. The model should read what it
    wrote, for the cache of prompts, for training, and because some services refuse thinking without its signature.
    """

    def __init__(self) -> None:
        self._calls: dict[str, Row] = {}
        self._messages: dict[str, Row] = {}

    def keep_reply(self, reply: Reply) -> None:
        """Keep a reply, to which missing identities of calls are added; what is no call of a tool is left out."""
        calls = [call for call in reply.tool_calls or () if isinstance(call, dict) and name_of(call)]
        reply.tool_calls = calls or None
        for number, call in enumerate(calls):
            if not isinstance(call.get("id"), str) or not call["id"]:
                call["id"] = f"call_{len(self._calls)}_{number}"
            self._calls[str(call["id"])] = call
        raw = reply.raw_message
        if raw is not None and isinstance(raw.get("content"), list):
            self._messages[_reply_identity(reply.text, reply.tool_calls)] = raw

    def restore_calls(self, messages: list[Message], *, blocks: bool) -> list[Message]:
        """Return `messages` with the model's own calls; with `blocks` also its own content."""
        return [
            self._restore_message(message, blocks) if message.role == "assistant" else message
            for message in messages
        ]

    def _restore_message(self, message: Message, blocks: bool) -> Message:
        calls = [self._original_call(call) for call in message.tool_calls or ()] or None
        if calls != message.tool_calls:
            message = msgspec.structs.replace(message, tool_calls=calls)
        if blocks and isinstance(message.content, str | None):
            raw = self._messages.get(_reply_identity(message.content or "", calls))
            if raw is not None:
                return msgspec.structs.replace(message, content=raw["content"])
        return message

    def _original_call(self, call: Row) -> Row:
        """Return the call as the model made it, where the program has not changed it."""
        kept = self._calls.get(str(call.get("id")))
        if kept is not None and _same_call(call, kept):
            return kept
        return call


def _same_call(call: Row, kept: Row) -> bool:
    return name_of(call) == name_of(kept) and arguments_of(call) == arguments_of(kept)


def _reply_identity(text: str, calls: list[Row] | None) -> str:
    return "\0".join([text.strip(), *(str(call.get("id")) for call in calls or ())])


class GatewayTask(Struct, kw_only=True, eq=False):
    """What one task asks, and has program. Times by time.monotonic().

    request  sampling parameters of the run, stop phrases and further keys of each request
    forced   settings of `request.inference` that hold whatever the program says; of the others it may say
    live     programs that stream get replies while the model writes them, and such a reply is not asked for again
    replies  those so far, where `keeps_replies`
    failure  of the last request, if it failed
    tools    those that the program offered last
    refusals requests that came after a limit was used up, which `exhausted` names
    refusal  why its last request could not be read or served at all; empty: it could
    """

    model: Model
    request: Request = field(default_factory=Request)
    name: str = "task"
    forced: frozenset[str] = ALL
    limits: TaskLimits = TaskLimits()
    prices: TokenPrices = TokenPrices()
    backend: Backend = Backend()
    live: bool = False
    keeps_replies: bool = True
    replies: list[Reply] = field(default_factory=list)
    failure: NewskillsError | None = None
    tools: list[Row] | None = None
    requests: int = 0
    answered: int = 0
    refusals: int = 0
    exhausted: str = ""
    refusal: str = ""
    tokens: int = 0
    cost: float = 0.0
    began: float = field(default_factory=time.monotonic)
    history: History = field(default_factory=History)
    settings: dict[tuple[Any, ...], Inference] = field(default_factory=dict)

    def admit(self) -> None:
        """Count a request. Raises GatewayProblem once the task has used up a limit: no further request is sent."""
        limits = self.limits
        used: list[tuple[str, float, float]] = [
            ("requests", self.requests, limits.requests),
            ("generated tokens", self.tokens, limits.tokens),
            ("cost", self.cost, limits.cost),
            ("seconds", time.monotonic() - self.began, limits.seconds),
        ]
        for name, value, limit in used:
            if limit and value >= limit:
                self.refusals += 1
                self.exhausted = name
                raise bad_request(f"This task has used up its limit of {limit:g} {name}.", code="task_limit")
        self.requests += 1

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the task's time is over; None without a limit."""
        if not self.limits.seconds:
            return None
        return max(0.0, self.began + self.limits.seconds - time.monotonic())

    def to_send(self, program: ProgramRequest) -> Request:
        """Return the request that goes to the model."""
        run = self.request
        self.tools = program.tools or None
        choice = program.choice if program.tools else ToolChoice()
        return msgspec.structs.replace(
            run,
            messages=self.history.restore_calls(program.messages, blocks=self.backend.blocks),
            tools=self.tools,
            stop=[*run.stop, *program.stop],
            response_format=program.response_format or run.response_format,
            inference=self._inference(program),
            extra_body={**run.extra_body, **self.backend.choice(choice)},
            cache_marks=program.cache_marks or UNSET,
        )

    def book(self, reply: Reply) -> None:
        """Count what a reply has used, and remember it."""
        self.answered += 1
        self.tokens += reply.usage.output_tokens or 0
        self.cost += self.prices.cost(reply.usage)
        self.failure = None
        self.history.keep_reply(reply)
        if self.keeps_replies:
            self.replies.append(reply)

    def _inference(self, program: ProgramRequest) -> Inference:
        run = self.request.inference
        changes = {
            setting: value
            for name, setting in SAMPLING.items()
            if setting not in self.forced and (value := getattr(program, name)) is not None
        }
        if run.thinking_budget is not None:
            changes.pop("reasoning_effort", None)  # a server takes one of the two
        largest = run.tokens_to_generate
        if largest is not None and "tokens_to_generate" in changes:
            changes["tokens_to_generate"] = min(largest, changes["tokens_to_generate"])
        if not changes:
            return run
        key = tuple(sorted(changes.items()))
        if key not in self.settings:
            if len(self.settings) >= MOST_SETTINGS:
                self.settings.clear()
            self.settings[key] = msgspec.structs.replace(run, **changes)
        return self.settings[key]
