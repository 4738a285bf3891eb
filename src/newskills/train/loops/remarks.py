# SPDX-License-Identifier: Apache-2.0
"""What a user of GRPO should know on the way: rollouts that are lost, steps that teach nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from statistics import fmean

from newskills.train.loops.folder import TrainingLog
from newskills.train.loops.groups import Group

FLAT_STEPS = 20
FEW = 0.05
"""So many steps of whose groups a smaller share has rewards that differ are told: hardly anything is learnt."""


class LossRemark:
    """Tells once in a run why rollouts are lost; the metrics count them."""

    def __init__(self, remark: Callable[[str], None]) -> None:
        self._remark, self._remarked = remark, False

    def tell(self, groups: Sequence[Group]) -> None:
        rollouts = [rollout for group in groups for rollout in group.rollouts]
        causes = Counter(rollout.lost for rollout in rollouts if rollout.lost)
        if causes and not self._remarked:
            self._remarked = True
            why = causes.most_common(1)[0][0].rstrip(".")
            self._remark(
                f"{causes.total()} of {len(rollouts)} rollouts were lost and are left out ({why}); "
                "`lost` in metrics.jsonl counts them."
            )


def spread_share(folder: TrainingLog) -> float:
    """Return the share of groups of the last `FLAT_STEPS` steps whose rewards differ; 1 where none is measured."""
    return fmean([share for _, share in folder.scores("spread")][-FLAT_STEPS:] or [1.0])


def flat_remark(folder: TrainingLog, step: int) -> str:
    """Return what to change where the last `FLAT_STEPS` steps have taught hardly anything, else an empty text.

    It is told once in so many steps.
    """
    if step == 0 or step % FLAT_STEPS or (spread := spread_share(folder)) >= FEW:
        return ""
    share = fmean([value for _, value in folder.scores("correct")][-FLAT_STEPS:] or [0.0])
    equal, learnt = "all rewards of each group were equal", "nothing"
    if spread:
        equal, learnt = f"the rewards of only {spread:.1%} of the groups differed", "almost nothing"
    change = (
        "easier problems, or fine-tune until a tenth of the samples is right (ns sft: ++epochs, ++learning_rate)"
    )
    if share > 0.5:
        change = "harder problems"
    return (
        f"In the last {FLAT_STEPS} steps {equal} ({share:.0%} correct), so {learnt} was learnt. "
        f"Train on {change}; a larger ++group_size, a higher ++temperature and ++resample=2 also help."
    )
