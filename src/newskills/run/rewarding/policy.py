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
from newskills.base.errors import ConfigError, ContextLimitError, NewskillsError
from newskills.base.protocols import Tokenizer
from newskills.base.records import Message, Reply, Request, Row, Usage
from newskills.train.loops.samples import SampledTurn
from newskills.train.verbs import Sampled, SamplingClient, SamplingParams

OTHER_TEMPLATE = (
    "Use a model whose template has tools (Qwen, Llama 3, SmolLM3), or let it write code: ++code_tags=qwen."
)
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
        """Create the batch; `params.max_tokens` limits one reply, and a request may want fewer."""
        self.form, self.params = form, params
        self._client = client
        self._waiting: list[_Question] = []
        self._changed = asyncio.Event()
        self._failure: NewskillsError | None = None
        self._rounds = 0
        self._shown: set[tuple[str, ...]] = set()

    async def serve(self, workers: Sequence[asyncio.Task[None]]) -> None:
        """Answer until all `workers` are done, each of which makes one attempt at a time.

        Raises what the client raises, what ends a worker, and what no attempt can go on from.
        """
        for worker in workers:
            worker.add_done_callback(lambda _: self._changed.set())
        while True:
            for worker in workers:
                if worker.done():
                    worker.result()
            if self._failure is not None:
                raise self._failure
            busy = sum(not worker.done() for worker in workers)
            if not busy:
                return
            # An attempt that was given up waits no longer.
            self._waiting = [question for question in self._waiting if not question.reply.done()]
            if len({question.model.number for question in self._waiting}) == busy:
                questions, self._waiting = sorted(self._waiting, key=lambda question: question.model.number), []
                # In a thread: connections to tools and environments must be kept alive meanwhile.
                for question, sampled in zip(
                    questions, await asyncio.to_thread(self._sample, questions), strict=True
                ):
                    question.answer(sampled)
                continue
            await self._changed.wait()
            self._changed.clear()

    async def ask(self, model: PolicyModel, request: Request, prompt: list[int]) -> Reply:
        question = _Question(model, request, prompt, asyncio.get_running_loop().create_future())
        self._waiting.append(question)
        self._changed.set()
        return await question.reply

    def fail(self, error: NewskillsError) -> None:
        """End all attempts: none of them could go on."""
        self._failure = self._failure or error
        self._changed.set()

    def check_tools(self, request: Request) -> None:
        """Raise ConfigError where the chat template cannot show the request's tools or their results."""
        names = tuple(tool["function"]["name"] for tool in request.tools or ())
        if names and names not in self._shown:
            if why := shows_tools(self.form.tokenizer, request):
                raise ConfigError(f"The model's chat template {why}.", hint=OTHER_TEMPLATE)
            self._shown.add(names)

    def _sample(self, questions: Sequence[_Question]) -> list[Sampled]:
        """Return what the model writes to each of the questions."""
        limits = [self._limit(question.request) for question in questions]
        stops = dict.fromkeys(stop for question in questions for stop in question.request.stop)
        params = msgspec.structs.replace(
            self.params,
            max_tokens=max(limits),
            stop_texts=tuple(stops),
            seed=_derive_seed(self.params.seed, self._rounds),
        )
        self._rounds += 1
        samples = self._client.sample([question.prompt for question in questions], 1, params)
        return [
            self._cut(sampled, question.request.stop, limit)
            for question, limit, (sampled,) in zip(questions, limits, samples, strict=True)
        ]

    def _limit(self, request: Request) -> int:
        return min(request.inference.tokens_to_generate or self.params.max_tokens, self.params.max_tokens)

    def _cut(self, sampled: Sampled, stops: Sequence[str], limit: int) -> Sampled:
        """Return the sample up to its limit, and up to and with the token that completes one of the request's stop
        texts."""
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


class _Question(Struct, frozen=True, eq=False):
    """A request that waits for its reply."""

    model: PolicyModel
    request: Request
    prompt: list[int]
    reply: asyncio.Future[Reply]

    def answer(self, sampled: Sampled) -> None:
        if not self.reply.done():
            self.reply.set_result(self.model.record(self.request, self.prompt, sampled))


class PolicyModel:
    """The model as one attempt asks it. `turns` are what it has read and written; `busy`: replies that are awaited."""

    name = "the model in training"

    def __init__(self, batch: PolicyBatch, number: int) -> None:
        self._batch, self.number = batch, number
        self.turns: list[SampledTurn] = []
        self.busy = 0
        self._exchanges: list[_Exchange] = []

    async def complete(self, request: Request) -> Reply:
        """Return the model's reply. Raises ContextLimitError where the conversation leaves no room for a reply,
        ConfigError (and ends all attempts) where the model's chat template cannot show it."""
        form = self._batch.form
        try:
            self._batch.check_tools(request)
            prompt = self._prompt(request)
        except ConfigError as error:
            self._batch.fail(error)
            raise
        if form.context is not None and len(prompt) + self._batch.params.max_tokens > form.context:
            raise ContextLimitError(
                f"The conversation has {len(prompt)} tokens; the model's context of {form.context} leaves no room for "
                f"a reply of {self._batch.params.max_tokens}."
            )
        self.busy += 1
        try:
            return await self._batch.ask(self, request, prompt)
        finally:
            self.busy -= 1

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def record(self, request: Request, prompt: list[int], sampled: Sampled) -> Reply:
        """Keep a turn; return what the solver is told of it."""
        self.turns.append(SampledTurn(prompt, sampled))
        form = self._batch.form
        decode = form.tokenizer.decode
        ended = bool(sampled.tokens) and sampled.tokens[-1] in set(form.stops)
        text_tokens = sampled.tokens[:-1] if ended else sampled.tokens
        text = decode(text_tokens)
        at = min(((text.find(stop), stop) for stop in request.stop if stop in text), default=None)
        # What a token adds behind a stop text stays in the sequence, but is no part of the conversation.
        shown = text if at is None else text[: at[0]] + at[1]
        end = decode(sampled.tokens[-1:]) if ended else ""
        self._exchanges.append(_Exchange(request, prompt, sampled.tokens, shown, end))
        usage = Usage(input_tokens=len(prompt), output_tokens=len(sampled.tokens))
        reply = Reply(text=text, finish_reason=sampled.stop_reason, usage=usage)
        if at is not None:
            reply.text, reply.raw_message = text[: at[0]], {"stop_reason": at[1]}
        if request.tools and CALL in text:
            reply.text, reply.tool_calls = split_calls(text)
        return reply

    def _prompt(self, request: Request) -> list[int]:
        """Return the token ids of a request: those of the latest exchange that it continues, and what has been
        added.

        Players of an environment take turns, so that need not be the last exchange.
        """
        form = self._batch.form
        if isinstance(request.prompt, list):
            return request.prompt
        for exchange in reversed(self._exchanges):
            if (added := exchange.text_after_reply(request, form)) is not None:
                return [*exchange.prompt, *exchange.tokens, *form.tokenizer.encode(added)]
        return form.tokenizer.encode(prompt_text(request, form.tokenizer) or "")


class _Exchange(Struct, frozen=True):
    """A request and the reply: its tokens, its text up to a stop text, the text of its end token (empty: none)."""

    request: Request
    prompt: list[int]
    tokens: list[int]
    text: str
    end: str

    def text_after_reply(self, request: Request, form: PolicyFormat) -> str | None:
        """Return the text of `request` behind the reply's tokens; None where it does not go on from this exchange."""
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
        """Return what follows a reply in a chat: its shown end, the end of its turn, and the turns behind it; None
        where the chat does not continue it."""
        messages = request.messages or []
        reply = messages[at]
        if reply.role != "assistant":
            return None
        content = reply.content if isinstance(reply.content, str) else ""
        if not reply.tool_calls and content.startswith(self.text):
            shown = content[len(self.text) :]
        else:
            shown = ""
        whole = prompt_text(request, form.tokenizer) or ""
        variables = dict(request.extra_body.get("chat_template_kwargs", {}))
        if request.tools:
            variables["tools"] = request.tools
        own = form.tokenizer.render(messages[: at + 1], **{**variables, "add_generation_prompt": False})
        _, end, tail = own.rpartition(form.end)
        if not whole.startswith(own):
            return None
        own_end = "" if self.end else end
        next_turns = tail if end else ""
        return shown + own_end + next_turns + whole[len(own) :]


def split_calls(text: str) -> tuple[str, list[Row]]:
    """Return a reply's text without the calls of tools in it, and these as OpenAI's API has them; nothing is trusted.

    A call that cannot be read has its text as arguments, so that the solver can tell the model.
    """
    kept, calls = [], []
    rest = text
    while CALL in rest:
        before, _, rest = rest.partition(CALL)
        body, _, rest = rest.partition(CALL_END)
        kept.append(before)
        calls.append(_call_row(body.strip()))
    return "".join([*kept, rest]).strip(), calls


def _call_row(body: str) -> Row:
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


def shows_tools(tokenizer: Tokenizer, first: Request) -> str:
    """Return why the model's chat template cannot show `first`, a request with tools; empty where it can.

    Raises ConfigError where the template cannot render it at all.
    """
    names = [tool["function"]["name"] for tool in first.tools or ()]
    whole = prompt_text(first, tokenizer) or ""
    if missing := [name for name in names if name not in whole]:
        return f"does not tell the model of its tools ({', '.join(missing)})"
    mark = "f3c1a07b"
    call = {"id": "c", "type": "function", "function": {"name": names[0], "arguments": "{}"}}
    turns = [
        *(first.messages or []),
        Message(role="assistant", content="", tool_calls=[call]),
        Message(role="tool", content=mark, name=names[0], tool_call_id="c"),
    ]
    shown = prompt_text(msgspec.structs.replace(first, messages=turns), tokenizer) or ""
    if mark in shown:
        return ""
    return "does not show the results of tools"


def _derive_seed(seed: int, rounds: int) -> int:
    """Derive the seed of samples that follow so many rounds of others; the first are those of plain sampling."""
    if not rounds:
        return seed
    return int.from_bytes(hashlib.blake2b(f"{seed} {rounds}".encode(), digest_size=4).digest(), "big") >> 1
