# SPDX-License-Identifier: Apache-2.0
"""A benchmark as something to learn: its prompt makes the training prompts, its grader the filter and the reward."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError, DataError
from newskills.base.records import Message, Row, Score
from newskills.models.tokenizer import HFTokenizer
from newskills.prompts.renderer import load_prompt
from newskills.train.loops.samples import Judged, Problem, Reward, Scorer
from newskills.train.loops.sft import example
from newskills.train.verbs import Datum

Verdict = Callable[[Sequence[Row]], list[Score]]


class RewardConfig(Struct, frozen=True, kw_only=True):
    """What a verdict is worth. An unscored sample is worth nothing at all: it takes no part."""

    correct: float = 1.0
    wrong: float = 0.0
    no_answer: float = 0.0


class Skill:
    """How the model in `folder` (a Hugging Face folder) is asked and answers: prompts and rewards as token ids.

    `prompt` is that of a benchmark; without one only conversations and texts can be made examples.
    """

    def __init__(self, folder: Path, prompt: str | None = None) -> None:
        """Raises ConfigError for a model without tokenizer or end token, and for an unknown prompt."""
        self.tokenizer = HFTokenizer(str(folder))
        self.stops = _stops(folder, self.tokenizer)
        self._prompt = load_prompt(prompt) if prompt else None

    def prompt(self, row: Row) -> list[int]:
        """Token ids up to where the model answers."""
        if self._prompt is None:
            raise ConfigError("No prompt is named.", hint="Set ++prompt_config=generic/math for instance.")
        return self.tokenizer.encode(self.tokenizer.render(self._prompt.messages(row)))

    def example(self, row: Row, answer: str) -> Datum:
        """`answer` as the reply to learn."""
        return example(self.prompt(row), [*self.tokenizer.encode(answer), self.stops[0]])

    def reply(self, messages: Sequence[Row], answer: str) -> Datum:
        """`answer` as the reply to a conversation."""
        prompt = self.tokenizer.render([msgspec.convert(message, Message) for message in messages])
        return example(self.tokenizer.encode(prompt), [*self.tokenizer.encode(answer), self.stops[0]])

    def continuation(self, before: str, text: str) -> Datum:
        """`text` after `before`, both as they are: without template, and without a token that ends it."""
        return example(self.tokenizer.encode(before), self.tokenizer.encode(text))

    def problem(self, row: Row) -> Problem:
        return Problem(self.prompt(row), row)

    def scorer(self, verdict: Verdict, config: RewardConfig) -> Scorer:
        """What turns sampled tokens into rewards."""
        return Scorer(self.reward(verdict, config), self.tokenizer.decode, self.stops)

    def reward(self, verdict: Verdict, config: RewardConfig) -> Reward:
        """The verdicts of the grader as rewards of samples."""

        def judge(samples: Sequence[tuple[Row, str, str]]) -> list[Judged]:
            scores = verdict([answered(row, text, reason) for row, text, reason in samples])
            return [judged(score, config) for score in scores]

        return judge


def answered(row: Row, text: str, finish_reason: str) -> Row:
    """The record that a grader gets of an evaluation, with the fields of a generation."""
    return {**row, "generation": text, "finish_reason": finish_reason}


def judged(score: Score, config: RewardConfig) -> Judged:
    value = None if score.outcome == "unscored" else getattr(config, score.outcome)
    answer = score.fields.get("predicted_answer")
    return Judged(value, score.outcome == "correct", None if answer is None else str(answer))


def accepted(rows: Iterable[Row], answers: Iterable[str], verdict: Verdict) -> list[tuple[Row, str]]:
    """Rejection sampling: the pairs that the grader calls correct. Raises DataError where none is."""
    pairs = list(zip(rows, answers, strict=True))
    scores = verdict([answered(row, answer, "stop") for row, answer in pairs])
    kept = [pair for pair, score in zip(pairs, scores, strict=True) if score.outcome == "correct"]
    if not kept:
        raise DataError("The grader accepts none of the answers, so there is nothing to train on.")
    return kept


def _stops(folder: Path, tokenizer: HFTokenizer) -> list[int]:
    """Ids of the tokens that end a reply."""
    path = folder / "generation_config.json"
    if not path.is_file():
        path = folder / "config.json"
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Row).get("eos_token_id")
    except (OSError, msgspec.DecodeError) as error:
        raise DataError(f"{path} cannot be read: {error}.") from error
    stops: list[Any] = found if isinstance(found, list) else [found]
    if not all(isinstance(stop, int) for stop in stops):
        raise ConfigError(f"{path} names no eos_token_id, so {tokenizer.name} could never end a reply.")
    return stops
