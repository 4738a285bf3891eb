# SPDX-License-Identifier: Apache-2.0
"""What a user of GRPO should know on the way: rollouts that are lost, steps that teach nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from statistics import fmean

from newskills.train.loops.folder import TrainingLog
from newskills.train.loops.groups import Group

FLAT_STEPS = 20
"""So many steps in a row whose groups all have equal rewards are told: nothing is learnt."""


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


def flat_remark(folder: TrainingLog, step: int) -> str:
    """Return what to change where the last `FLAT_STEPS` steps have taught nothing, else an empty text.

    It is told once in so many steps.
    """
    if step == 0 or step % FLAT_STEPS:
        return ""
    used, correct = (dict(folder.scores(name)) for name in ("groups_used", "correct"))
    last = range(step - FLAT_STEPS + 1, step + 1)
    if any(used.get(number, 1.0) for number in last):
        return ""
    share = fmean(correct.get(number, 0.0) for number in last)
    change = "harder problems" if share > 0.5 else "easier problems, or solved ones first (ns sft)"
    return (
        f"In the last {FLAT_STEPS} steps all rewards of each group were equal ({share:.0%} correct), so nothing was "
        f"learnt. Train on {change}; a larger ++group_size, a higher ++temperature and ++resample=2 also help."
    )
