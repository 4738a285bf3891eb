# SPDX-License-Identifier: Apache-2.0
"""Problems, samples of them and what these are worth, as every trainer gets them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from msgspec import Struct

from newskills.base.errors import TrainingError
from newskills.base.records import Row


class Problem(Struct, frozen=True):
    """`prompt` as token ids; `row` is what the grader gets, with the generation merged in."""

    prompt: Sequence[int]
    row: Row


class Judged(Struct, frozen=True):
    """The reward of a sample; None where the instrument failed. `answer` is what the grader extracted.

    outcome     correct, wrong, no_answer or unscored
    components  what the reward is the sum of, by name
    why         cause and sentence of what is unscored
    """

    reward: float | None
    correct: bool
    answer: str | None = None
    outcome: str = ""
    components: dict[str, float] = {}
    why: str = ""


Reward = Callable[[Sequence[tuple[Row, str, str]]], list[Judged]]
"""Judges samples: (problem's row, text, finish_reason) each."""

Decode = Callable[[Sequence[int]], str]


class Scorer(Struct, frozen=True):
    """How sampled tokens become rewards: `decode` makes text of them, `reward` judges it, `stops` end a sample."""

    reward: Reward
    decode: Decode
    stops: Sequence[int]

    def text(self, tokens: Sequence[int]) -> str:
        """The text of a sample, without the token that ended it."""
        ended = tokens and tokens[-1] in set(self.stops)
        return self.decode(tokens[:-1] if ended else tokens)

    def judge(self, samples: Sequence[tuple[Row, str, str]]) -> list[Judged]:
        """Raises TrainingError where none of them could be graded: nothing can be learnt from a broken grader."""
        judged = self.reward(samples)
        check_graded(judged)
        return judged


def check_graded(judged: Sequence[Judged]) -> None:
    """Raises TrainingError, with the most frequent cause, where no sample has a reward."""
    if any(sample.reward is not None for sample in judged):
        return
    causes = Counter(sample.why for sample in judged if sample.why).most_common(1)
    cause = f" ({causes[0][0].rstrip('.')})" if causes else ""
    raise TrainingError(
        f"None of the samples could be graded; training stopped{cause}.",
        hint="Checkpoints are kept: fix the cause, then run the same command to resume.",
    )
