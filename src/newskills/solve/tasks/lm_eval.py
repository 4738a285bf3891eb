# SPDX-License-Identifier: Apache-2.0
"""The requests that lm_eval makes of a document, sent as its models `local-(chat-)completions` send them.

With a tokenizer that the user names (`++tokenizer`), prompts are sent as token ids, as lm_eval does; without, as text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from newskills.base.errors import ConfigError, DataError
from newskills.base.lm_eval.chats import has_chat, messages_of, render_context
from newskills.base.protocols import Kit, Model, Tokenizer
from newskills.base.records import Attempt, Inference, Message, Reply, Request, Row, Sample
from newskills.models.tokenizer import HFTokenizer
from newskills.solve.chat import MAIN, ChatSolver, ask
from newskills.solve.parts import SolverParts
from newskills.solve.replies import join_replies
from newskills.solve.tasks.loglikelihood import LoglikelihoodSolver

MOST_STOPS = 4
"""Stop strings that chat endpoints take; lm_eval leaves out the others."""
WINDOW = 2048
_FIELDS = frozenset({"temperature", "top_p", "top_k", "min_p", "repetition_penalty"})


class HarnessSolverConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++solver_config.*` of the solver `lm_eval`; the names are those of lm_eval's `model_args`."""

    max_length: Annotated[
        Annotated[int, Meta(ge=8)] | None,
        Meta(
            description="tokens of a window of rolling likelihoods (2048 where null), and of contexts, which are cut "
            "at the left where they are longer; null = contexts are not cut"
        ),
    ] = None
    likelihoods: Annotated[
        bool,
        Meta(
            description="ask the server for log-probabilities of a prompt before the first row (set by the task)"
        ),
    ] = False
    add_bos_token: Annotated[bool, Meta(description="begin prompts with the tokenizer's own mark")] = False


class HarnessSolver:
    """Rows have `contexts`, `requests` and `repeats`, as `benchmarks/lm_eval/rows.py` makes them.

    Fields written: `responses`, for each request the list of its replies: a text, `[log-likelihood, greedy]`, or the
    log-likelihood of a rolling one; and `generation`: the text, or the likeliest continuation. Raises DataError,
    ConfigError, BadRequestError for a server without log-probabilities of the prompt.
    """

    Config = HarnessSolverConfig

    def __init__(self, parts: SolverParts, config: HarnessSolverConfig = HarnessSolverConfig()) -> None:  # noqa: B008 - frozen
        self._chat: ChatSolver = parts.chat
        self._config = config
        self._tokenizer: Tokenizer | None = parts.counter
        self._likelihoods = LoglikelihoodSolver(parts)

    @property
    def _ids(self) -> HFTokenizer | None:
        """The tokenizer that makes ids of prompts; None where they are sent as text."""
        if isinstance(self._tokenizer, HFTokenizer):
            return self._tokenizer
        return None

    def request(self, sample: Sample) -> Request:
        """Return the first of the requests; all of them are in its `solver` part. Raises DataError, ConfigError."""
        row = sample.row
        requests, contexts = row.get("requests"), row.get("contexts")
        if not isinstance(requests, list) or not requests or not isinstance(contexts, list):
            raise DataError(
                f"Row {sample.id} is not a document of a task of lm_eval: it needs `requests` and `contexts`."
            )
        first = self._first(requests[0], contexts, self._chat.inference)
        first.solver = {
            "requests": requests,
            "contexts": contexts,
            "repeats": row.get("repeats") or 1,
            "settings": msgspec.to_builtins(self._config),
        }
        return first

    async def probe(self, model: Model) -> None:
        """Ask for log-probabilities of a prompt, where the task needs them. Raises BadRequestError for a server that
        does not give them."""
        if self._config.likelihoods:
            await self._likelihoods.probe(model)

    def _first(self, request: Row, contexts: Sequence[str], inference: Inference) -> Request:
        if request["kind"] == "generate_until":
            return self._generation_request(request, contexts[request["context"]], inference)
        if request["kind"] == "loglikelihood":
            text = self._text(contexts[request["context"]])
            return self._likelihoods.logprob_request(text + request["continuation"])
        if self._ids is None:
            raise ConfigError(
                "Rolling likelihoods need the model's tokenizer, which cuts the text into windows.",
                hint="Name it: ++tokenizer=NAME (a folder, or a name on the hub).",
            )
        return self._likelihoods.logprob_request(request["text"])

    def _generation_request(self, request: Row, context: str, inference: Inference) -> Request:
        settings = dict(request.get("settings") or {})
        if settings:
            inference = _request_inference(inference, settings)
        stop = list(request["until"])
        if inference.endpoint_type != "text":
            messages = messages_of(context)
            if messages is None:
                raise ConfigError(
                    "A chat endpoint takes messages, and this task makes texts.",
                    hint="Use ++apply_chat_template=true, or ++inference.endpoint_type=text.",
                )
            return Request(messages=messages, inference=inference, stop=stop[:MOST_STOPS])
        text = self._text(context)
        return Request(
            prompt=self._prompt(text, inference.tokens_to_generate or 0), inference=inference, stop=stop
        )

    def _prompt(self, text: str, room: int) -> str | list[int]:
        """Return a text as it is sent; ids are cut where a longest length is set, with `room` for the reply."""
        if self._ids is None:
            return text
        ids, longest = self._encode(text), self._config.max_length
        if longest is not None:
            return ids[-max(longest - 1 - room, 1) :]
        return ids

    def _encode(self, text: str) -> list[int]:
        assert self._ids is not None, "only called with a tokenizer"
        ids = self._ids.encode(text)
        if self._config.add_bos_token:
            return [*self._ids.begin, *ids]
        return ids

    def _text(self, context: str) -> str:
        """Return a context as the model reads it. Raises ConfigError for a conversation without a chat template."""
        if not has_chat(context):
            return context
        tokenizer = self._tokenizer
        if tokenizer is None:
            raise ConfigError(
                "++apply_chat_template on a text endpoint needs the model's tokenizer with its chat template.",
                hint="Name it: ++tokenizer=NAME (a folder, or a name on the hub).",
            )

        def render(messages: list[Message], begins: bool) -> str:
            if begins:
                return tokenizer.render(messages)
            return tokenizer.render(messages[:-1]) + str(messages[-1].content)

        return render_context(context, render)

    async def solve(self, sample: Sample, request: Request, kit: Kit) -> Attempt:
        """Ask all requests of the document at once. Raises what the model raises."""
        model, document = kit.models[MAIN], request.solver
        answers = await asyncio.gather(*(self._answer(each, document, model) for each in document["requests"]))
        responses = [response for response, _ in answers]
        whole = join_replies([reply for _, replies in answers for reply in replies])
        generates = document["requests"][0]["kind"] == "generate_until"
        if not generates:
            whole.logprobs = whole.finish_reason = None
        attempt = await self._chat.attempt(sample, request, whole, _reply_text(document["requests"], responses))
        attempt.fields["responses"] = responses
        return attempt

    async def _answer(self, each: Row, document: Row, model: Model) -> tuple[list[Any], list[Reply]]:
        """Return what lm_eval gets for one request, once for each repeat, and the replies that it was made of."""
        if each["kind"] == "generate_until":
            answers = await self._generate(each, document, model)
            return [answer.text for answer in answers], answers
        if each["kind"] == "loglikelihood":
            context = self._text(document["contexts"][each["context"]])
            value, greedy, reply = await self._measure(context, each["continuation"], model)
            return [[value, greedy]] * document["repeats"], [reply]
        rolled, replies = await self._roll(each["text"], model)
        return [rolled] * document["repeats"], replies

    async def _generate(self, each: Row, document: Row, model: Model) -> list[Reply]:
        """Ask as often as the task repeats it, each time with a seed of its own: the same seed would give the same."""
        inference = self._chat.inference
        made = self._generation_request(each, document["contexts"][each["context"]], inference)
        replies = []
        for number in range(document["repeats"]):
            seed = made.inference.random_seed
            own = msgspec.structs.replace(made.inference, random_seed=None if seed is None else seed + number)
            replies.append(await ask(model, msgspec.structs.replace(made, inference=own)))
        return replies

    async def _measure(self, context: str, continuation: str, model: Model) -> tuple[float, bool, Reply]:
        """Return the log-likelihood of a continuation, and whether a greedy model would write it."""
        if self._ids is None:
            blanks = len(context) - len(context.rstrip())
            if context and blanks:
                context, continuation = context[:-blanks], context[-blanks:] + continuation
            likelihood, reply = await self._likelihoods.measure(context, continuation, model)
            return likelihood.value, bool(likelihood.greedy), reply
        before, after = await asyncio.to_thread(self._pair, context, continuation)
        return await self._measure_ids(before, after, model)

    async def _measure_ids(self, before: list[int], after: list[int], model: Model) -> tuple[float, bool, Reply]:
        if not after:
            likelihood, reply = await self._likelihoods.measure_ids(before, 0, model)
            return 0.0, True, reply
        ids = before + after
        if self._config.max_length is not None:
            ids = ids[-(self._config.max_length - 1) :]
        likelihood, reply = await self._likelihoods.measure_ids(ids, len(after), model)
        return likelihood.value, bool(likelihood.greedy), reply

    def _pair(self, context: str, continuation: str) -> tuple[list[int], list[int]]:
        """Return the ids of a context and its continuation as lm_eval splits them (`TemplateLM._encode_pair`)."""
        tokenizer = self._ids
        assert tokenizer is not None, "only called with a tokenizer"
        if not context:
            after, mark = self._encode(continuation), tokenizer.prefix
            if mark is None:
                raise ConfigError(f"The tokenizer {tokenizer.name} has no mark to begin a text with.")
            if after[0] != mark:
                return ([mark], after)
            return (after[:1], after[1:])
        blanks = len(context) - len(context.rstrip())
        if blanks:
            context, continuation = context[:-blanks], context[-blanks:] + continuation
        whole, before = self._encode(context + continuation), self._encode(context)
        return before, whole[len(before) :]

    async def _roll(self, text: str, model: Model) -> tuple[float, list[Reply]]:
        """Return the log-likelihood of a text, window by window."""
        tokenizer = self._ids
        assert tokenizer is not None, "checked with the request"
        ids = await asyncio.to_thread(self._encode, text)
        if tokenizer.prefix is None:
            raise ConfigError(f"The tokenizer {tokenizer.name} has no mark to begin a text with.")
        if not ids:
            return 0.0, [(await self._measure_ids([tokenizer.prefix], [], model))[2]]
        parts = rolling_windows(ids, tokenizer.prefix, (self._config.max_length or WINDOW) - 2)
        measured = await asyncio.gather(
            *(self._likelihoods.measure_ids(before + after, len(after), model) for before, after in parts)
        )
        return sum(likelihood.value for likelihood, _ in measured), [reply for _, reply in measured]


def rolling_windows(ids: Sequence[int], mark: int, longest: int) -> Iterator[tuple[list[int], list[int]]]:
    """Yield (context, tokens to predict): each token once, with as much before it as fits (`utils` of lm_eval)."""
    if not ids:
        return
    first = min(longest, len(ids))
    yield [mark], list(ids[:first])
    done = first
    while done < len(ids):
        count = min(len(ids) - done, longest)
        end = done + count
        before = list(ids[max(end - longest - 1, 0) : end - 1])
        yield before[: len(before) - (count - 1)], list(ids[end - count : end])
        done = end


def _request_inference(inference: Inference, settings: Row) -> Inference:
    """Return the parameters with what one request says otherwise than its task."""
    known_fields = {name: value for name, value in settings.items() if name in _FIELDS}
    tokens = settings.get("max_tokens", settings.get("max_gen_toks", inference.tokens_to_generate))
    rest = {
        name: value
        for name, value in settings.items()
        if name not in _FIELDS and name not in ("max_tokens", "max_gen_toks", "do_sample")
    }
    return msgspec.structs.replace(
        inference, tokens_to_generate=tokens, extra_body={**inference.extra_body, **rest}, **known_fields
    )


def _reply_text(requests: Sequence[Row], responses: Sequence[Sequence[Any]]) -> str:
    """Return the text of the reply, or the likeliest continuation."""
    if requests[0]["kind"] == "generate_until":
        return str(responses[0][0])
    if requests[0]["kind"] == "loglikelihood":
        measured = [at for at, request in enumerate(requests) if request["kind"] == "loglikelihood"]
        best = max(measured, key=lambda at: responses[at][0][0])
        return str(requests[best]["continuation"])
    return str(responses[0][0])
