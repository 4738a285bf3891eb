# SPDX-License-Identifier: Apache-2.0
"""A reward model as what the reward server asks: the number of a reply is its reward, with no grader.

The prompt is rebuilt as in training: by a benchmark, or from `messages`, `prompt` (a text that is used as it is), or
`problem` or `question` (one turn of the user, through the model's chat template).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from newskills.base.chat_template import prompt_text
from newskills.base.errors import ConfigError, DataError
from newskills.base.records import Message, Request, Row
from newskills.models.tokenizer import HFTokenizer
from newskills.run.rewarding.graders import Count
from newskills.run.rewarding.questions import QuestionFormat
from newskills.run.rewarding.reward import RewardConfig, RewardItem
from newskills.train.loops.samples import Judged

if TYPE_CHECKING:
    from newskills.train.backends.cpu.reward import CpuRewardModel

TRUNCATED_FINISH = "length"
"""The finish reason of a reply that no token ends."""
QUESTIONS = ("problem", "question")


class RewardModelSource:
    """The reward model in `folder`, one batch at a time in a thread of its own."""

    def __init__(self, folder: Path, asking: QuestionFormat | None = None, threads: int = 0) -> None:
        """Load the reward model; `asking`: how the benchmark that it was trained on asks. Raises ConfigError,
        DataError."""
        from newskills.train.backends.cpu.weights import end_tokens

        self._folder, self._asking, self._threads = folder, asking, threads
        self._tokenizer = HFTokenizer(str(folder))
        self._end = end_tokens(folder)[0]
        self.label = f"reward model {folder}"
        self._model: CpuRewardModel | None = None
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="newskills-reward-model")

    async def start(self) -> None:
        """Read the weights. Raises ConfigError for a folder with another kind of model, DataError."""
        self._model = await asyncio.get_running_loop().run_in_executor(self._worker, self._load_model)

    async def rewarder(self, config: RewardConfig, count: Count | None = None) -> RewardModelSource:
        """Return this source itself. Raises ConfigError for settings of verdicts, which there are none of."""
        if config != RewardConfig():
            raise ConfigError(
                "A reward model gives the whole reward, so ++reward.* has no effect.",
                hint="Leave it out, or use --grader.",
            )
        return self

    async def judge(self, samples: Sequence[RewardItem]) -> list[Judged]:
        """Reward samples in order; `correct` says only that the number is positive. A reply that is too long has
        no reward.

        Raises DataError for a sample without a prompt.
        """
        sequences = [self._tokens(sample) for sample in samples]
        return await asyncio.get_running_loop().run_in_executor(self._worker, self._judge_sequences, sequences)

    async def close(self) -> None:
        self._worker.shutdown(wait=False, cancel_futures=True)

    def _load_model(self) -> CpuRewardModel:
        from newskills.train.backends.cpu.reward import load_reward_model

        return load_reward_model(self._folder, self._threads)

    def _judge_sequences(self, sequences: Sequence[list[int]]) -> list[Judged]:
        assert self._model is not None
        context = self._model.model.shape.max_position_embeddings
        fitting = [sequence for sequence in sequences if len(sequence) <= context]
        scores = self._model.values(fitting) if fitting else []
        values = iter(scores)
        return [
            _scored_reply(next(values))
            if len(sequence) <= context
            else _unscored_reply(f"the text has {len(sequence)} tokens, the model's context {context}")
            for sequence in sequences
        ]

    def _tokens(self, sample: RewardItem) -> list[int]:
        ids = self._tokenizer.encode(self._prompt(sample.record)) + self._tokenizer.encode(sample.text)
        if sample.record.get("finish_reason") == TRUNCATED_FINISH:
            return ids
        return [*ids, self._end]

    def _prompt(self, row: Row) -> str:
        if self._asking is not None:
            return prompt_text(self._asking.request(row), self._tokenizer) or ""
        if isinstance(row.get("prompt"), str):
            return str(row["prompt"])
        turns = row.get("messages", row.get("prompt"))
        if not isinstance(turns, list):
            question = next((row[name] for name in QUESTIONS if isinstance(row.get(name), str)), None)
            if question is None:
                raise DataError(
                    f"A sample has neither `prompt`, `messages` nor `problem`; its keys are {', '.join(sorted(row))}.",
                    hint="The reward model needs what the reply answers.",
                )
            turns = [{"role": "user", "content": question}]
        try:
            messages = msgspec.convert(turns, list[Message])
        except msgspec.ValidationError as error:
            raise DataError(f"`messages` of a sample is not a conversation: {error}.") from error
        return prompt_text(Request(messages=messages), self._tokenizer) or ""


def _scored_reply(value: float) -> Judged:
    if not math.isfinite(value):
        return _unscored_reply(f"the number is {value}")
    return Judged(
        value, value > 0, outcome="correct" if value > 0 else "wrong", components={"reward_model": value}
    )


def _unscored_reply(why: str) -> Judged:
    return Judged(None, False, outcome="unscored", why=f"reward model: {why}")
