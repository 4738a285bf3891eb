# SPDX-License-Identifier: Apache-2.0
"""A model in training as a model that solvers ask: so it is measured as an evaluation would, programs and all."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType

from newskills.base.chat_template import prompt_ids
from newskills.base.errors import ConfigError
from newskills.base.protocols import Kit, Tokenizer
from newskills.base.records import Reply, Request, Row, Usage
from newskills.run.engine.build import RunBuilder
from newskills.run.engine.sandboxes import Sandboxes
from newskills.run.grade import LoopThread
from newskills.run.rewarding.questions import QuestionFormat
from newskills.solve.chat import MAIN
from newskills.train.loops.evaluation import EvalSettings
from newskills.train.loops.samples import Decode
from newskills.train.verbs import Sampled, SamplingClient, SamplingParams

Answer = tuple[Row, str, str]
"""Problem's row, text, finish_reason."""


class SampledModel:
    """Samples of a client as replies. What is asked at one time is sampled together, once nobody has more to do."""

    name = "the model in training"

    def __init__(
        self, client: SamplingClient, tokenizer: Tokenizer, params: SamplingParams, decode: Decode
    ) -> None:
        """`params.max_tokens` are those of one reply; a request may want fewer."""
        self._client, self._tokenizer, self._params, self._decode = client, tokenizer, params, decode
        self._waiting: list[tuple[Request, asyncio.Future[Reply]]] = []
        self._alive = self._asked = 0

    async def solve_all(self, asking: QuestionFormat, rows: Sequence[Row], kit: Kit) -> list[Answer]:
        """Every row by the solver. Raises what it raises."""
        self._alive = len(rows)
        return list(await asyncio.gather(*(self._solve(asking, row, kit) for row in rows)))

    async def complete(self, request: Request) -> Reply:
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, future))
        self._sample_if_all_wait()
        return await future

    async def close(self) -> None:
        """There is nothing to close."""

    async def _solve(self, asking: QuestionFormat, row: Row, kit: Kit) -> Answer:
        try:
            fields = await asking.solve(row, kit)
        finally:
            self._alive -= 1
            self._sample_if_all_wait()
        return row, str(fields[asking.config.generation_key]), str(fields.get("finish_reason") or "stop")

    def _sample_if_all_wait(self) -> None:
        """Programs run between replies: none does while the model computes, which holds up the loop."""
        if not self._waiting or len(self._waiting) < self._alive:
            return
        waiting, self._waiting = self._waiting, []
        wanted = (
            max(request.inference.tokens_to_generate or 0 for request, _ in waiting) or self._params.max_tokens
        )
        params = SamplingParams(
            max_tokens=min(wanted, self._params.max_tokens),
            stop=self._params.stop,
            temperature=self._params.temperature,
            seed=self._params.seed + self._asked,
        )
        self._asked += 1
        prompts = [prompt_ids(request, self._tokenizer) for request, _ in waiting]
        samples = self._client.sample(prompts, 1, params)
        for (request, future), prompt, (sampled,) in zip(waiting, prompts, samples, strict=True):
            if not future.done():
                future.set_result(self._reply(request, len(prompt), sampled))

    def _reply(self, request: Request, prompt_tokens: int, sampled: Sampled) -> Reply:
        ended = bool(sampled.tokens) and sampled.tokens[-1] in set(self._params.stop)
        text = self._decode(sampled.tokens[:-1] if ended else sampled.tokens)
        usage = Usage(input_tokens=prompt_tokens, output_tokens=len(sampled.tokens))
        at = min(((text.find(stop), stop) for stop in request.stop if stop in text), default=None)
        if at is None:
            return Reply(text=text, finish_reason=sampled.stop_reason, usage=usage)
        return Reply(text=text[: at[0]], finish_reason="stop", usage=usage, raw_message={"stop_reason": at[1]})


class PolicyEvaluator:
    """Answers of a model in training by the solver of an evaluation. A context manager: its sandbox ends with it."""

    def __init__(self, asking: QuestionFormat, tokenizer: Tokenizer, decode: Decode, stops: Sequence[int]) -> None:
        self._asking, self._tokenizer, self._decode, self._stops = asking, tokenizer, decode, stops
        self._builder = RunBuilder(os.environ)
        self._sandboxes = Sandboxes(self._builder)
        self._loop = LoopThread()
        self._stack = ExitStack()

    def answers(
        self, client: SamplingClient, rows: Sequence[Row], settings: EvalSettings, seed: int
    ) -> list[Answer]:
        """`settings.samples` of each row, `settings.batch_size` rows at once. Raises what solvers and sandbox raise."""
        answers: list[Answer] = []
        for start in range(0, len(rows), settings.batch_size):
            part = [row for row in rows[start : start + settings.batch_size] for _ in range(settings.samples)]
            params = SamplingParams(
                max_tokens=settings.max_tokens,
                stop=self._stops,
                temperature=settings.temperature,
                seed=seed + 1000 * start,
            )
            model = SampledModel(client, self._tokenizer, params, self._decode)
            kit = Kit(models={MAIN: model}, sandbox=self._sandboxes.get(self._asking.config.sandbox))
            answers += self._loop.run(model.solve_all(self._asking, part, kit))
        return answers

    def __enter__(self) -> PolicyEvaluator:
        """Raises SandboxError, ConfigError where programs cannot be run here."""
        with ExitStack() as stack:
            stack.enter_context(self._loop)
            stack.callback(self._builder.close)
            stack.callback(lambda: self._loop.run(self._sandboxes.close()))
            self._loop.run(self._sandboxes.get(self._asking.config.sandbox).start())
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()


def with_programs(tags: str, executions: int, tokens: int) -> Row:
    """Settings of an evaluation whose answers hold programs, which are run.

    Raises ConfigError where none may run.
    """
    if executions < 1:
        raise ConfigError("++eval.code_executions: expected 1 or more.")
    return {
        "code_execution": True,
        "code_tags": tags,
        "server.code_execution.max_code_executions": executions,
        "inference.endpoint_type": "text",
        "inference.tokens_to_generate": tokens,
    }
