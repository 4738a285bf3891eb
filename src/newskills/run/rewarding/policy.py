# SPDX-License-Identifier: Apache-2.0
"""A model in training as a model that solvers ask: it solves problems as in an evaluation, code and tools included.

Each attempt keeps the token ids that were sampled. What follows them in the next request (outputs, results of tools,
turns of the chat template) is added as tokens of its own; sampled text is never tokenised again for the loss.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from newskills.base.chat_template import prompt_text
from newskills.base.errors import ContextLimitError
from newskills.base.protocols import Tokenizer
from newskills.base.records import Message, Reply, Request, Row, Usage
from newskills.train.loops.samples import SampledTurn
from newskills.train.verbs import Sampled, SamplingClient, SamplingParams

CALL, CALL_END = "<tool_call>", "</tool_call>"
"""How models of the field (Hermes, Qwen, SmolLM) write the call of a tool: JSON with `name` and `arguments`."""


class PolicyFormat(Struct, frozen=True, kw_only=True):
    """tokenizer; token ids that end a reply, of which templates write the first; tokens that the model can see."""

    tokenizer: Tokenizer
    stops: Sequence[int]
    context: int | None = None

    @property
    def end(self) -> str:
        return self.tokenizer.decode(self.stops[:1])


class PolicyBatch:
    """Attempts under way with one model. What they ask is sampled together, once none of them has more to do: so the
    samples depend on the seed alone, not on how long code or tools take.
    """

    def __init__(self, client: SamplingClient, form: PolicyFormat, params: SamplingParams) -> None:
        """`params.max_tokens` are those of one reply; a request may want fewer."""
        self.form, self.params = form, params
        self._client = client
        self._waiting: list[tuple[PolicyModel, Request, list[int], asyncio.Future[Reply]]] = []
        self._made = self._alive = self._rounds = 0

    def model(self) -> PolicyModel:
        """For one more attempt, which must be ended with `leave`."""
        self._alive += 1
        self._made += 1
        return PolicyModel(self, self._made)

    def leave(self) -> None:
        self._alive -= 1
        self._sample_if_all_wait()

    async def ask(self, model: PolicyModel, request: Request, prompt: list[int]) -> Reply:
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting.append((model, request, prompt, future))
        self._sample_if_all_wait()
        return await future

    def _sample_if_all_wait(self) -> None:
        """The loop stands still while the model computes; none of the code runs then that has a time limit."""
        if not self._waiting or len(self._waiting) < self._alive:
            return
        waiting, self._waiting = sorted(self._waiting, key=lambda entry: entry[0].number), []
        limits = [self._limit(request) for _, request, *_ in waiting]
        params = msgspec.structs.replace(
            self.params,
            max_tokens=max(limits),
            stop_texts=tuple(dict.fromkeys(stop for _, request, *_ in waiting for stop in request.stop)),
            seed=_seed(self.params.seed, self._rounds),
        )
        self._rounds += 1
        samples = self._client.sample([prompt for _, _, prompt, _ in waiting], 1, params)
        for (model, request, prompt, future), limit, (sampled,) in zip(waiting, limits, samples, strict=True):
            if not future.done():
                future.set_result(model.record(request, prompt, self._cut(sampled, request.stop, limit)))

    def _limit(self, request: Request) -> int:
        return min(request.inference.tokens_to_generate or self.params.max_tokens, self.params.max_tokens)

    def _cut(self, sampled: Sampled, stops: Sequence[str], limit: int) -> Sampled:
        """The sample up to its limit, and up to and with the token that completes one of the request's stop texts."""
        tokens = sampled.tokens[:limit]
        reason = sampled.stop_reason if len(tokens) == len(sampled.tokens) else "length"
        decode = self.form.tokenizer.decode

        def stopped(count: int) -> bool:
            text = decode(tokens[:count])
            return any(stop in text for stop in stops)

        if stops and stopped(len(tokens)):
            low, high = 0, len(tokens)
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if stopped(middle) else (middle, high)
            tokens, reason = tokens[:high], "stop"
        count = len(tokens)
        return Sampled(tokens=tokens, logprobs=sampled.logprobs[:count], stop_reason=reason)


class PolicyModel:
    """The model as one attempt asks it. `turns` are what it has read and written; `busy`: a reply is awaited."""

    name = "the model in training"

    def __init__(self, batch: PolicyBatch, number: int) -> None:
        self._batch, self.number = batch, number
        self.turns: list[SampledTurn] = []
        self.busy = False
        self._last: _Exchange | None = None

    async def complete(self, request: Request) -> Reply:
        """Raises ContextLimitError where the conversation leaves no room for a reply."""
        form = self._batch.form
        prompt = self._prompt(request)
        if form.context is not None and len(prompt) + self._batch.params.max_tokens > form.context:
            raise ContextLimitError(
                f"The conversation has {len(prompt)} tokens; the model's context of {form.context} leaves no room for "
                f"a reply of {self._batch.params.max_tokens}."
            )
        self.busy = True
        try:
            return await self._batch.ask(self, request, prompt)
        finally:
            self.busy = False

    async def close(self) -> None:
        """There is nothing to close."""

    def record(self, request: Request, prompt: list[int], sampled: Sampled) -> Reply:
        """Keeps a turn; what the solver is told of it."""
        self.turns.append(SampledTurn(prompt, sampled))
        form = self._batch.form
        decode = form.tokenizer.decode
        ended = bool(sampled.tokens) and sampled.tokens[-1] in set(form.stops)
        text = decode(sampled.tokens[:-1] if ended else sampled.tokens)
        at = min(((text.find(stop), stop) for stop in request.stop if stop in text), default=None)
        # What a token adds behind a stop text stays in the sequence, but is no part of the conversation.
        shown = text if at is None else text[: at[0]] + at[1]
        self._last = _Exchange(
            request, prompt, sampled.tokens, shown, decode(sampled.tokens[-1:]) if ended else ""
        )
        usage = Usage(input_tokens=len(prompt), output_tokens=len(sampled.tokens))
        reply = Reply(text=text, finish_reason=sampled.stop_reason, usage=usage)
        if at is not None:
            reply.text, reply.raw_message = text[: at[0]], {"stop_reason": at[1]}
        if request.tools and CALL in text:
            reply.text, reply.tool_calls = split_calls(text)
        return reply

    def _prompt(self, request: Request) -> list[int]:
        """Token ids of a request: those of the exchange before and what has been added, where it goes on from that."""
        form = self._batch.form
        if isinstance(request.prompt, list):
            return request.prompt
        added = self._last.added(request, form) if self._last is not None else None
        if added is None or self._last is None:
            return form.tokenizer.encode(prompt_text(request, form.tokenizer) or "")
        return [*self._last.prompt, *self._last.tokens, *form.tokenizer.encode(added)]


class _Exchange(Struct, frozen=True):
    """A request and the reply: its tokens, its text up to a stop text, the text of its end token (empty: none)."""

    request: Request
    prompt: list[int]
    tokens: list[int]
    text: str
    end: str

    def added(self, request: Request, form: PolicyFormat) -> str | None:
        """The text of `request` behind the reply's tokens; None where it does not go on from this exchange."""
        if request.messages is None:
            begun = f"{self.request.prompt}{self.text}"
            whole = request.prompt
            if self.request.messages is not None or not isinstance(whole, str) or not whole.startswith(begun):
                return None
            return whole[len(begun) :].removeprefix(self.end)
        before = self.request.messages
        if before is None or request.messages[: len(before)] != before or len(request.messages) < len(before) + 2:
            return None
        return self._added_turns(request, form, len(before))

    def _added_turns(self, request: Request, form: PolicyFormat, at: int) -> str | None:
        """Of a chat: what was shown to the end of the reply's own turn, its end, and the turns behind it."""
        messages = request.messages or []
        reply = messages[at]
        if reply.role != "assistant":
            return None
        content = reply.content if isinstance(reply.content, str) else ""
        shown = content[len(self.text) :] if not reply.tool_calls and content.startswith(self.text) else ""
        whole = prompt_text(request, form.tokenizer) or ""
        variables = dict(request.extra_body.get("chat_template_kwargs", {}))
        if request.tools:
            variables["tools"] = request.tools
        own = form.tokenizer.render(messages[: at + 1], **{**variables, "add_generation_prompt": False})
        _, end, tail = own.rpartition(form.end)
        if not whole.startswith(own):
            return None
        return shown + ("" if self.end else end) + (tail if end else "") + whole[len(own) :]


def split_calls(text: str) -> tuple[str, list[Row]]:
    """A reply's text without the calls of tools in it, and these as OpenAI's API has them; nothing is trusted.

    A call that cannot be read has its text as arguments, so that the solver can tell the model.
    """
    kept, calls = [], []
    rest = text
    while CALL in rest:
        before, _, rest = rest.partition(CALL)
        body, _, rest = rest.partition(CALL_END)
        kept.append(before)
        calls.append(_call(body.strip()))
    return "".join([*kept, rest]).strip(), calls


def _call(body: str) -> Row:
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        value = None
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return {"type": "function", "function": {"name": "unreadable", "arguments": body or "-"}}
    arguments = value.get("arguments", {})
    if not isinstance(arguments, str):
        arguments = msgspec.json.encode(arguments).decode()
    return {"type": "function", "function": {"name": value["name"], "arguments": arguments}}


def shows_tools(form: PolicyFormat, first: Request) -> str:
    """Why the model's chat template is no template for `first`, a request with tools; empty where it is one.

    Raises ConfigError where the template cannot render it at all.
    """
    names = [tool["function"]["name"] for tool in first.tools or ()]
    whole = prompt_text(first, form.tokenizer) or ""
    if missing := [name for name in names if name not in whole]:
        return f"does not tell the model of its tools ({', '.join(missing)})"
    mark = "f3c1a07b"
    call = {"id": "c", "type": "function", "function": {"name": names[0], "arguments": "{}"}}
    turns = [
        *(first.messages or []),
        Message(role="assistant", content="", tool_calls=[call]),
        Message(role="tool", content=mark, name=names[0], tool_call_id="c"),
    ]
    shown = prompt_text(msgspec.structs.replace(first, messages=turns), form.tokenizer) or ""
    return "" if mark in shown else "does not show the results of tools"


def _seed(seed: int, rounds: int) -> int:
    """Of the samples that follow so many rounds of others; the first are those of plain sampling."""
    if not rounds:
        return seed
    return int.from_bytes(hashlib.blake2b(f"{seed} {rounds}".encode(), digest_size=4).digest(), "big") >> 1
