# SPDX-License-Identifier: Apache-2.0
"""Reinforcement learning with a leave-one-out baseline (RLOO, https://arxiv.org/abs/2402.14740).

The loop is that of GRPO (`newskills.train.loops.grpo`) with another advantage and another mean: the advantage of a
sample is its reward − the mean of the others of its group, and the loss is a mean over samples of −advantage · log p.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from newskills.train.loops.groups import left_out_advantages
from newskills.train.loops.grpo import GrpoConfig
from newskills.train.loops.samples import Rollout


class RlooConfig(GrpoConfig, frozen=True, kw_only=True):
    """As `GrpoConfig`; `scale_by_std` and `baseline` have no effect."""

    name: ClassVar[str] = "rloo"
    title: ClassVar[str] = "RLOO"

    def advantages(self, rewards: Sequence[float | None], rollouts: Sequence[Rollout] = ()) -> list[float]:
        return left_out_advantages(rewards)

    def divisor(self, tokens: int, samples: int) -> int:
        return max(1, samples)
