# SPDX-License-Identifier: Apache-2.0
"""One prompt, one request, one answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from newskills.base.chat_template import prompt_ids
from newskills.base.protocols import Kit, Model, Tokenizer
from newskills.base.records import Attempt, Inference, Message, Reply, Request, Row, Sample
from newskills.solve.dialogue import ask as ask
from newskills.solve.dialogue import ask_next as ask_next
from newskills.solve.reasoning import split_reasoning, trim_at_stop
from newskills.solve.replies import join_replies
from newskills.solve.tasks.sound import in_pieces
from newskills.solve.thinking import ThinkingLimits, reply_with_thinking

MAIN = "main"


class Renderer(Protocol):
    """The part of a prompt that a solver needs."""

    def messages(self, row: Row) -> list[Message]: ...

    def text(self, row: Row, tokenizer: Tokenizer | None) -> str: ...


class ChatSolverOptions(Struct, frozen=True, kw_only=True):
    """How the answer is asked for and what is recorded of it.

    stop        texts at which generation ends; cut off the text unless `keep_stop`
    timing      record start, end and duration
    extra_body  further keys of each request
    thinking    how much is thought, where that is forced
    pieces_of   `task_type` of rows whose sound, where it lasts longer than `piece_seconds`, is sent in pieces
    """

    inference: Inference = Inference()
    stop: tuple[str, ...] = ()
    keep_stop: bool = False
    generation_key: str = "generation"
    parse_reasoning: bool = False
    end_reasoning: str = "</think>"
    timing: bool = True
    response_format: Row | None = None
    extra_body: Row = {}
    thinking: ThinkingLimits | None = None
    pieces_of: tuple[str, ...] = ()
    piece_seconds: float = 30.0


class ChatSolver:
    """Renders the row, asks once, turns the reply into record fields. Raises what the model raises.

    `template` renders chats for the text endpoint; `counter` counts prompt tokens that the server does not report.
    """

    def __init__(
        self,
        prompt: Renderer,
        options: ChatSolverOptions,
        *,
        template: Tokenizer | None = None,
        counter: Tokenizer | None = None,
    ) -> None:
        self._prompt = prompt
        self._options = options
        self._template = template
        self._counter = counter

    @property
    def generation_key(self) -> str:
        """Field of the record that gets the text."""
        return self._options.generation_key

    @property
    def inference(self) -> Inference:
        """Sampling parameters of the requests."""
        return self._options.inference

    def with_prompt(self, prompt: Renderer) -> ChatSolver:
        """Return this solver with another prompt."""
        return ChatSolver(prompt, self._options, template=self._template, counter=self._counter)

    def changed(self, prompt: Renderer, **options: Any) -> ChatSolver:
        """Return this solver with another prompt and other `ChatOptions`."""
        changed = msgspec.structs.replace(self._options, **options)
        return ChatSolver(prompt, changed, template=self._template, counter=self._counter)

    @property
    def end_reasoning(self) -> str:
        """Text that ends the model's reasoning."""
        return self._options.end_reasoning

    def plain(self, row: Row) -> str:
        """Return the prompt as a text to go on with, without a chat template. Raises DataError, ConfigError."""
        return self._prompt.text(row, None)

    def request(self, sample: Sample) -> Request:
        """Return the sample's request. Raises DataError for a row that the prompt does not fit."""
        options = self._options
        request = Request(
            inference=options.inference,
            stop=list(options.stop),
            response_format=options.response_format,
            extra_body=options.extra_body,
        )
        if options.inference.endpoint_type == "text":
            request.prompt = self._prompt.text(sample.row, self._template)
            if options.thinking is not None:
                request.prompt = options.thinking.prompt(request.prompt)
                request.solver = {"thinking": options.thinking.inserted_texts()}
        else:
            request.messages = self._prompt.messages(sample.row)
        return request

    async def solve(self, sample: Sample, request: Request, kit: Kit) -> Attempt:
        if str(sample.row.get("task_type")) in self._options.pieces_of:
            return await self._solve_in_pieces(sample, request, kit.models[MAIN])
        if self._options.thinking is not None:
            return await self._solve_forced(sample, request, kit.models[MAIN], self._options.thinking)
        reply = await ask(kit.models[MAIN], request)
        return await self.attempt(sample, request, reply, self.text(reply))

    async def _solve_forced(
        self, sample: Sample, request: Request, model: Model, limits: ThinkingLimits
    ) -> Attempt:
        """Solve with a thinking of limited length, which is kept apart from the answer."""
        forced = await reply_with_thinking(model, request, limits, self._counter)
        reply = forced.reply()
        text = self.text(reply)
        attempt = await self.attempt(sample, request, reply, text)
        if self._options.parse_reasoning:
            attempt.fields |= {
                self.generation_key: text.strip(),
                "_full_generation": forced.full_text,
                "_generation_finished_thinking": forced.ended,
            }
        attempt.fields |= forced.fields()
        return attempt

    async def _solve_in_pieces(self, sample: Sample, request: Request, model: Model) -> Attempt:
        """Solve by one request after the other; texts joined by blanks, tokens added up. Cut off where one of them
        was."""
        pieces = await asyncio.to_thread(in_pieces, request, self._options.piece_seconds)
        replies = [await ask(model, piece) for piece in pieces]
        whole = join_replies(replies)
        if any(reply.finish_reason == "length" for reply in replies):
            whole.finish_reason = "length"
        texts = [self.text(reply).strip() for reply in replies]
        attempt = await self.attempt(sample, request, whole, " ".join(filter(None, texts)))
        if len(pieces) > 1:
            attempt.fields["num_audio_pieces"] = len(pieces)
        return attempt

    def text(self, reply: Reply) -> str:
        """Return what is kept of one reply: the part before the stop phrases, or up to their end."""
        stop = self._options.stop
        return trim_at_stop(with_stop(reply, stop), stop, keep_phrase=self._options.keep_stop)

    def stopped(self, reply: Reply) -> bool:
        """Return whether the reply ended at one of the stop phrases."""
        stop = self._options.stop
        text = with_stop(reply, stop)
        return any(phrase in text for phrase in stop)

    async def attempt(self, sample: Sample, request: Request, reply: Reply, text: str) -> Attempt:
        """Return the attempt with the record fields of `text`, and with what `reply` says about it."""
        fields = self.fields(reply, text)
        if self._counter is not None and "num_input_tokens" not in fields:
            fields["num_input_tokens"] = len(await asyncio.to_thread(prompt_ids, request, self._counter))
        if self._options.timing:
            fields |= {
                "generation_start_time": reply.started,
                "generation_end_time": reply.ended,
                "generation_time": reply.ended - reply.started,
            }
        return Attempt(sample_id=sample.id, key=request.key(), fields=fields)

    def fields(self, reply: Reply, text: str) -> Row:
        """Return what the record of `reply` holds, where `text` is kept of it."""
        options = self._options
        key = options.generation_key
        if options.parse_reasoning:
            fields = split_reasoning(text, key, options.end_reasoning, separate=bool(reply.reasoning))
        else:
            fields = {key: text}
        if reply.reasoning is not None:
            fields["reasoning_content"] = reply.reasoning
        usage = reply.usage
        if usage.output_tokens is not None:
            fields["num_generated_tokens"] = usage.output_tokens
        if usage.input_tokens is not None:
            fields["num_input_tokens"] = usage.input_tokens
        if options.inference.cache_prompt == "auto":
            if usage.cached_tokens is not None:
                fields["num_cached_tokens"] = usage.cached_tokens
            if usage.cache_written_tokens is not None:
                fields["num_cache_written_tokens"] = usage.cache_written_tokens
        if usage.reasoning_tokens is not None:
            fields["num_reasoning_tokens"] = usage.reasoning_tokens
            if usage.output_tokens is not None:
                fields["num_answer_tokens"] = max(0, usage.output_tokens - usage.reasoning_tokens)
        if reply.drafts is not None:
            fields["spec_num_drafts"] = reply.drafts.steps
            fields["spec_draft_tokens"] = reply.drafts.drafted
            fields["spec_accepted_tokens"] = reply.drafts.accepted
        if reply.finish_reason is not None:
            fields["finish_reason"] = reply.finish_reason
        if reply.logprobs is not None:
            fields["tokens"] = reply.logprobs.tokens
            fields["logprobs"] = reply.logprobs.logprobs
            if reply.logprobs.top_logprobs is not None:
                fields["top_logprobs"] = reply.logprobs.top_logprobs
        return fields


def with_stop(reply: Reply, stop: Sequence[str]) -> str:
    """Return the text with the stop phrase behind it that the server named, and took off unless told otherwise."""
    named = (reply.raw_message or {}).get("stop_reason")
    taken = isinstance(named, str) and named in stop and not reply.text.endswith(named)
    if taken:
        return f"{reply.text}{named}"
    return reply.text
