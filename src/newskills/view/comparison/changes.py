# SPDX-License-Identifier: Apache-2.0
"""What it means that a problem changed between two runs: one definition for the terminal, reports and pages.

A problem changed where the mean score of its samples differs. With one sample of each problem that is a verdict; with
several it is the share of right ones, and says nothing of any single sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

ChangeKind = Literal["verdict", "share", "score"]
CHANGE_WORDS: Mapping[ChangeKind, tuple[str, str]] = {
    "verdict": ("wrong → right", "right → wrong"),
    "share": ("right more often", "right less often"),
    "score": ("higher score", "lower score"),
}
"""What a gain and a loss are called."""


def kind_of_change(samples: int, *, graded: bool) -> ChangeKind:
    """Return the kind of change to count. `samples`: of a problem, on the side that has more; `graded`: scores may lie
    between right and wrong."""
    if graded:
        return "score"
    if samples > 1:
        return "share"
    return "verdict"


def change_text(kind: ChangeKind, before: Sequence[float], after: Sequence[float]) -> str:
    """Return `1/4 → 3/4` for the scores of a problem's samples, `wrong → right`, or `0.25 → 0.5`."""
    means = [sum(scores) / len(scores) for scores in (before, after)]
    if kind == "verdict":
        return CHANGE_WORDS[kind][means[1] < means[0]]
    if kind == "share":
        return " → ".join(f"{sum(scores):.0f}/{len(scores)}" for scores in (before, after))
    return " → ".join(f"{mean:.3g}" for mean in means)
