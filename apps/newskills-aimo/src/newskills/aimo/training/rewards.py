# SPDX-License-Identifier: Apache-2.0
"""Rewards of completions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from newskills.base.errors import GraderError
from newskills.run.rewarding.reward import has_box
from newskills_aimo.recipe.answers import verify_answers

Verifier = Callable[[str, str], bool | None]
"""(completion, ground truth) → whether it is right; None where that cannot be told."""


class MathRewardFunction:
    """Rewards of completions, as the stage gives them: by the math grader unless a verifier is handed in.

    None for what the grader could not judge: trainers of TRL leave it out of its group.
    """

    __name__ = "math_correctness_reward"

    def __init__(
        self,
        answer_verifier: Verifier | None = None,
        correct_reward: float = 1.0,
        incorrect_reward: float = -0.5,
        format_reward: float = 0.1,
        length_penalty: float = 0.0,
    ) -> None:
        self.answer_verifier = answer_verifier
        self.correct_reward, self.incorrect_reward = correct_reward, incorrect_reward
        self.format_reward, self.length_penalty = format_reward, length_penalty

    def __call__(
        self, prompts: Sequence[str], completions: Sequence[str], answer: Sequence[str], **_: Any
    ) -> list[float | None]:
        pairs = list(zip(completions, answer, strict=True))
        verifier = self.answer_verifier
        if verifier is None:
            right = verify_answers(pairs)
        else:
            right = [_checked_verdict(verifier, *pair) for pair in pairs]
        return [self._reward_of(text, right=verdict) for verdict, text in zip(right, completions, strict=True)]

    def _reward_of(self, text: str, *, right: bool | None) -> float | None:
        if right is None:
            return None
        reward = self.correct_reward if right else self.incorrect_reward
        if has_box(text):
            reward += self.format_reward
        return reward - self.length_penalty * max(0.0, len(text) / 1000 - 2)


def _checked_verdict(verifier: Verifier, text: str, truth: str) -> bool | None:
    """Return the verdict of `verifier`. Raises GraderError for NaN, which Python takes for true."""
    verdict = verifier(text, truth)
    if verdict is not None and math.isnan(verdict):
        raise GraderError(
            f"The verifier gave {verdict} for the answer to '{truth}'.", hint="Return true or false."
        )
    return verdict
