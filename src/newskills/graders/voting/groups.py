# SPDX-License-Identifier: Apache-2.0
"""Answers that say the same vote together, however each of them is written."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence

MAX_COMPARISONS = 5_000
"""Of one vote; a hundred different answers need fewer."""
CPU_SECONDS = 1.0
"""Of one vote, beyond which answers are no longer compared; ordinary ones take a hundredth of it."""


def group_votes(answers: Sequence[str | None], same: Callable[[str, str], bool]) -> list[str | None]:
    """Return for each answer the text that stands for its group, None for no answer.

    The groups are the same in whatever order the answers come: frequent texts are placed first, and a text joins the
    first group of which all members are the `same` as it. So no group holds two answers that are known to differ,
    though `same` may link them by a third (`5 cm`, `5`, `5 kg`). Answers that are left when the limits of the vote are
    spent stay alone.
    """
    counts = Counter(answer for answer in answers if answer is not None)
    groups: list[list[str]] = []
    budget = _Budget()
    for text in sorted(counts, key=lambda text: (-counts[text], len(text), text)):
        group = next(
            (group for group in groups if all(budget.are_same_answers(text, member, same) for member in group)),
            None,
        )
        if group is None:
            groups.append([text])
        else:
            group.append(text)
    group_of = {text: group[0] for group in groups for text in group}
    return [None if answer is None else group_of[answer] for answer in answers]


class _Budget:
    """What the comparisons of one vote may still cost."""

    def __init__(self) -> None:
        self._left = MAX_COMPARISONS
        self._end = time.thread_time() + CPU_SECONDS

    def are_same_answers(self, left: str, right: str, same: Callable[[str, str], bool]) -> bool:
        """Return whether both are the same; False where that can no longer be found out."""
        if self._left <= 0 or time.thread_time() > self._end:
            return False
        self._left -= 1
        return same(left, right)
