# SPDX-License-Identifier: Apache-2.0
"""How likely a model finds given continuations of a text: nothing is generated, so base models can be measured.

The completions endpoint is asked to echo the text with the log-probabilities of its tokens, as lm-evaluation-harness
does (`echo`, `logprobs`, one new token that is thrown away). vLLM and SGLang can; where `echo` is refused, vLLM's own
`prompt_logprobs` are asked for. A server that gives neither, or that ignores the wish, is an error and never a score.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from newskills.base.errors import BadRequestError, ContextLimitError, DataError
from newskills.base.protocols import Kit, Model
from newskills.base.records import Attempt, Inference, Logprobs, Reply, Request, Row, Sample
from newskills.solve.chat import MAIN, ChatSolver, ask
from newskills.solve.parts import SolverParts
from newskills.solve.replies import join_replies

_COMPARED = 20
"""Characters before the continuation that the server's tokens have to spell, too."""
_ECHO: Row = {"echo": True}
_PROMPT_LOGPROBS: Row = {"prompt_logprobs": 1}
_PROBE = "One, two, three, four"
_BEGINNING = "\n"
"""Stands before a text without context where the server puts no mark there, so that its first token counts, too."""


class Likelihood(NamedTuple):
    """Natural logarithm of the probability of a continuation; whether each of its tokens was the likeliest."""

    value: float
    greedy: bool | None
    tokens: int


class LoglikelihoodSolver:
    """Rows have `context` (a text, or one for each continuation) and `continuations`; the prompt shows `{context}`.

    Fields written: `generation` (the likeliest continuation), `loglikelihoods`, `greedy` and `continuation_tokens`
    (one value per continuation). Raises DataError for a row that does not fit, BadRequestError for a server that
    does not give log-probabilities of the prompt.
    """

    def __init__(self, parts: SolverParts) -> None:
        self._chat: ChatSolver = parts.chat
        self._first = asyncio.Lock()
        self._wish: Row | None = None

    def request(self, sample: Sample) -> Request:
        """Return the first of the requests; all of them are in its `solver` part.

        Raises DataError where contexts and continuations are not as many.
        """
        continuations = _field_texts(sample, "continuations")
        contexts = sample.row.get("context")
        several = contexts if isinstance(contexts, list) else [contexts] * len(continuations)
        if len(several) != len(continuations):
            raise DataError(
                f"Record {sample.id} has {len(several)} texts in context for {len(continuations)} continuations."
            )
        prompts = [self._chat.plain({**sample.row, "context": context}) for context in several]
        inference = _logprob_inference(self._chat.inference)
        return Request(
            prompt=prompts[0] + continuations[0],
            inference=inference,
            extra_body=_ECHO,
            solver={"prompts": prompts, "continuations": continuations},
        )

    async def probe(self, model: Model) -> None:
        """Ask the model once. Raises BadRequestError for a server that does not give log-probabilities of the
        prompt."""
        inference = _logprob_inference(self._chat.inference)
        request = Request(prompt=_PROBE, inference=inference, extra_body=_ECHO)
        _require_logprobs(await self._ask(request, _PROBE, model), model)

    async def solve(self, sample: Sample, request: Request, kit: Kit) -> Attempt:
        likelihoods: list[Likelihood] = []
        replies: list[Reply] = []
        for prompt, text in zip(request.solver["prompts"], request.solver["continuations"], strict=True):
            likelihood, reply = await self._measure_text(prompt, text, request, kit.models[MAIN])
            replies.append(reply)
            likelihoods.append(likelihood)
        best = max(range(len(likelihoods)), key=lambda place: likelihoods[place].value)
        whole = join_replies(replies)
        whole.logprobs = whole.finish_reason = None
        chosen = request.solver["continuations"][best].strip()
        attempt = await self._chat.attempt(sample, request, whole, chosen)
        attempt.fields |= {
            "loglikelihoods": [likelihood.value for likelihood in likelihoods],
            "greedy": [likelihood.greedy for likelihood in likelihoods],
            "continuation_tokens": [likelihood.tokens for likelihood in likelihoods],
        }
        return attempt

    def logprob_request(self, prompt: str | list[int]) -> Request:
        """Return the request that asks for the log-probabilities of a text, or of token ids."""
        return Request(prompt=prompt, inference=_logprob_inference(self._chat.inference), extra_body=_ECHO)

    async def measure(self, prompt: str, text: str, model: Model) -> tuple[Likelihood, Reply]:
        """Return how likely `text` is after `prompt`. Raises BadRequestError, and what the model raises."""
        return await self._measure_text(prompt, text, self.logprob_request(prompt + text), model)

    async def measure_ids(self, ids: list[int], count: int, model: Model) -> tuple[Likelihood, Reply]:
        """Return how likely the last `count` of the ids are after those before. Raises BadRequestError, and what the
        model raises."""
        reply = await self._ask(self.logprob_request(ids), ids, model)
        logprobs = _require_logprobs(reply, model)
        values = logprobs.logprobs[:-1]
        if len(values) < count:
            raise BadRequestError(
                f"The server of {model.name} gives log-probabilities of {len(values)} tokens where {count} were asked "
                "about."
            )
        chosen = values[len(values) - count :]
        return Likelihood(sum(chosen), _is_greedy(logprobs, count) if count else True, count), reply

    async def _measure_text(
        self, prompt: str, text: str, request: Request, model: Model
    ) -> tuple[Likelihood, Reply]:
        reply = await self._ask(request, prompt + text, model)
        if not prompt and not _has_all_logprobs(reply, text):
            prompt = _BEGINNING
            reply = await self._ask(request, prompt + text, model)
        return await self._likelihood(reply, prompt, text, request, model), reply

    async def _ask(self, request: Request, prompt: str | list[int], model: Model) -> Reply:
        """Ask for log-probabilities; the first request finds out how the server wants to be asked, and the others
        wait for it."""
        async with self._first:
            if self._wish is None:
                try:
                    reply = await ask(model, _prompt_request(request, prompt, _ECHO))
                    self._wish = _ECHO
                    return reply
                except ContextLimitError:
                    raise
                except BadRequestError as refusal:
                    return await self._without_echo(request, prompt, model, refusal)
        return await ask(model, _prompt_request(request, prompt, self._wish))

    async def _without_echo(
        self, request: Request, prompt: str | list[int], model: Model, refusal: BadRequestError
    ) -> Reply:
        """Ask for log-probabilities of the prompt without an echo. Raises the first refusal where this way is none
        either."""
        try:
            reply = await ask(model, _prompt_request(request, prompt, _PROMPT_LOGPROBS))
        except BadRequestError:
            raise refusal from None
        if reply.logprobs is None or len(reply.logprobs.tokens) < 2:
            raise refusal
        self._wish = _PROMPT_LOGPROBS
        return reply

    async def _likelihood(
        self, reply: Reply, prompt: str, text: str, request: Request, model: Model
    ) -> Likelihood:
        logprobs = _require_logprobs(reply, model)
        values = logprobs.logprobs[:-1]
        count = tokens_at_end(logprobs.tokens[:-1], prompt, text)
        if count is None:
            count = _continuation_length(reply, await self._ask(request, prompt, model), len(values))
        if count is None:
            raise BadRequestError(
                f"The tokens that the server of {model.name} gives with its log-probabilities do not spell the text "
                f"that was asked about, near {text[:40]!r}, and it does not count them."
            )
        return Likelihood(sum(values[-count:]), _is_greedy(logprobs, count), count)


def _logprob_inference(inference: Inference) -> Inference:
    return msgspec.structs.replace(
        inference, endpoint_type="text", temperature=0.0, tokens_to_generate=1, top_logprobs=1, stream=False
    )


def _require_logprobs(reply: Reply, model: Model) -> Logprobs:
    if reply.logprobs is None or len(reply.logprobs.tokens) < 2:
        raise BadRequestError(
            f"The server of {model.name} returns no log-probabilities of the prompt (completions with "
            "echo and logprobs), which the solver loglikelihood needs.",
            hint="vLLM, SGLang and --server_type=transformers return them; llama.cpp does not.",
        )
    return reply.logprobs


def _field_texts(sample: Sample, field: str) -> list[str]:
    value: Any = sample.row.get(field)
    if not isinstance(value, list) or not value or not all(isinstance(text, str) and text for text in value):
        raise DataError(f"Record {sample.id}: the field '{field}' must be a list of texts, none of them empty.")
    return value


def _prompt_request(request: Request, prompt: str | list[int], wish: Row) -> Request:
    return msgspec.structs.replace(request, prompt=prompt, extra_body=wish, solver={})


def _has_all_logprobs(reply: Reply, text: str) -> bool:
    """Return whether each token of a text without context has a log-probability: the server begins with a mark."""
    return reply.logprobs is not None and tokens_at_end(reply.logprobs.tokens[:-1], "", text) is not None


def tokens_at_end(tokens: Sequence[str], prompt: str, text: str) -> int | None:
    """Return how many of the last tokens of `prompt + text` reach into `text`; None where they do not spell it.

    The first token of a text has no probability and is not among `tokens`, unless the server puts a mark before it.
    """
    spelt = "".join(tokens)
    length = min(len(spelt), len(prompt) + len(text), len(text) + _COMPARED)
    if length < len(text) or spelt[-length:] != (prompt + text)[-length:]:
        return None
    reached = count = 0
    while reached < len(text):
        count += 1
        reached += len(tokens[-count])
    return count


def _continuation_length(whole: Reply, context: Reply, continuation_count: int) -> int | None:
    """Count by the server's own counts: the tokens of all less those of the context."""
    if whole.usage.input_tokens is None or context.usage.input_tokens is None:
        return None
    count = whole.usage.input_tokens - context.usage.input_tokens
    if 0 < count <= continuation_count:
        return count
    return None


def _is_greedy(logprobs: Logprobs, count: int) -> bool | None:
    """Return whether no other token was likelier at any place; None where the server does not say."""
    tops = logprobs.top_logprobs
    if tops is None or not all(tops[-count - 1 : -1]):
        return None
    pairs = zip(logprobs.logprobs[-count - 1 : -1], tops[-count - 1 : -1], strict=True)
    return all(value >= max(top.values()) for value, top in pairs)
