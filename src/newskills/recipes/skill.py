# SPDX-License-Identifier: Apache-2.0
"""A benchmark as something to learn: its prompt makes the training prompts, its grader the filter and the reward."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from newskills.base.errors import ConfigError, DataError
from newskills.base.records import Message, Row, Score
from newskills.models.tokenizer import HFTokenizer
from newskills.prompts.renderer import load_prompt
from newskills.run.rewarding import Verdicts
from newskills.run.rewards import RewardConfig as RewardConfig
from newskills.run.rewards import answered
from newskills.train.loops.samples import Problem, Reward, Scorer
from newskills.train.loops.sft import example
from newskills.train.verbs import Datum

Verdict = Callable[[Sequence[Row]], list[Score]]


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

    def scorer(self, verdict: Verdicts, config: RewardConfig) -> Scorer:
        """What turns sampled tokens into rewards. Raises as `reward`."""
        return Scorer(self.reward(verdict, config), self.tokenizer.decode, self.stops)

    def reward(self, verdict: Verdicts, config: RewardConfig) -> Reward:
        """The verdicts of the grader, and what else `config` lets count, as rewards of samples.

        Raises ConfigError, UnknownNameError, AuthError (a judge that cannot be asked).
        """
        return verdict.reward(config, lambda text: len(self.tokenizer.encode(text)))


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
