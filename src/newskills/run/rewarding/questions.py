# SPDX-License-Identifier: Apache-2.0
"""What an evaluation asks a model about a row, and what of its reply the grader reads, for those who train it.

The request is the one that the evaluation's own solver makes, so that a model is trained on what it will be asked.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from newskills.base.benchmark import Benchmark
from newskills.base.errors import ConfigError
from newskills.base.protocols import Bounded, Kit, NeedsCheck
from newskills.base.records import Message, Reply, Request, Row, Sample
from newskills.base.registry import fold
from newskills.config.layers import Layer
from newskills.models.tokenizer import HFTokenizer
from newskills.run.engine.build import RunBuilder, chat_options
from newskills.run.planning.config import CHAT, GenerationConfig
from newskills.run.planning.plan import resolve_config, task_layer
from newskills.run.rewarding.policy import shows_tools
from newskills.solve.agents.bash import TOOL
from newskills.solve.chat import ChatSolver

BASH, NATIVE = "bash", "native_tools"
"""The agent that asks whether its model takes tools, and its setting that says so."""


class QuestionFormat:
    """How `config` asks the model; `model` is the folder of its tokenizer, where one is here."""

    def __init__(self, config: GenerationConfig) -> None:
        """Make the prompt and the solver of `config`. Raises ConfigError, UnknownNameError, DataError."""
        self.config = config
        with closing(RunBuilder(os.environ)) as builder:
            prompt = builder.prompt(config)
            self._solver = builder.solver(config, prompt)
        self._chat = ChatSolver(prompt, chat_options(config))

    def request(self, row: Row) -> Request:
        """Return the first request about `row`. Raises DataError for a row that the prompt does not fit."""
        return self._solver.request(Sample(id=str(row.get("id", "")), row=row))

    def check(self) -> None:
        """Raise ConfigError where the solver needs something that is not installed here."""
        if isinstance(self._solver, NeedsCheck):
            self._solver.check()

    async def solve(self, row: Row, kit: Kit) -> Row:
        """Return the fields of an evaluation's record, by its solver. Raises what that raises."""
        sample = Sample(id=str(row.get("id", "")), row=row)
        attempt = await self._solver.solve(sample, self._solver.request(sample), kit)
        return attempt.fields

    def record(self, row: Row, text: str, finish_reason: str) -> Row:
        """Return what the grader gets of a reply: the fields of an evaluation's record that it can decide by."""
        reply = Reply(text=text, finish_reason=finish_reason)
        return {**row, **self._chat.fields(reply, self._chat.text(reply))}

    @property
    def at_once(self) -> int:
        """How many attempts may be under way together: a further one would wait for those that wait for a reply."""
        config = self.config
        limits = [config.max_concurrent_requests, config.sandbox.max_sessions]
        if config.agent is not None:
            limits.append(config.environment.at_once)
        if isinstance(self._solver, Bounded):
            limits.append(self._solver.at_once)
        return min(limits)

    @property
    def one_reply(self) -> bool:
        """Whether one reply is an answer."""
        return (self.config.selected_by or self.config.solved_by) == CHAT

    def check_one_reply(self, what: str) -> None:
        """Raise ConfigError where an answer takes more than one reply, which sampling alone cannot give."""
        if not self.one_reply:
            raise ConfigError(
                f"{what} uses the solver {self.config.selected_by or self.config.solved_by}, which sends several "
                "requests or runs the model's code; training samples one reply.",
                hint="Use a benchmark with the solver chat, or your own problems: --training_data=FILE "
                "++prompt_config=NAME.",
            )

    def check_one_answer(self, what: str) -> None:
        """Raise ConfigError where the solver chooses among several answers of the model, or judges those of others."""
        if self.config.judges:
            raise ConfigError(
                f"{what} uses the solver {self.config.solved_by}, which judges answers that its rows hold; there is "
                "nothing to reward.",
                hint="Reward answers by a judge instead: ++reward.judge.server.model=NAME.",
            )
        if self.config.selected_by or self.config.parallel_thinking.mode is not None:
            raise ConfigError(
                f"{what} uses a solver that chooses among several answers; training learns from each one.",
                hint="Leave it out: ++group_size sets how many answers a problem gets.",
            )


def asking_of(benchmark: Benchmark, data: Path, model: str, overrides: Sequence[Layer] = ()) -> QuestionFormat:
    """Return how an evaluation of `benchmark`, whose rows are in `data`, asks `model` (a folder, or a name).

    `overrides` are laid over the benchmark's own settings. Raises ConfigError, UnknownNameError, DataError.
    """
    here = {"tokenizer": model} if Path(model).is_dir() else {}
    fixed = {"input_file": str(data), "server.server_type": "llamacpp", "server.model": model, **here}
    layers = [Layer("this training", fixed), task_layer(benchmark, data.parent), *overrides]
    config = resolve_config(layers).value
    if here and config.agent is not None and fold(config.agent) == BASH and NATIVE not in config.agent_config:
        # Its first attempt would find out, while all others wait for it instead of being sampled with it.
        takes = not shows_tools(
            HFTokenizer(model), Request(messages=[Message(role="user", content="x")], tools=[TOOL])
        )
        config = msgspec.structs.replace(config, agent_config={**config.agent_config, NATIVE: takes})
    return QuestionFormat(config)
