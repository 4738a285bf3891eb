# SPDX-License-Identifier: Apache-2.0
"""One answer out of many samples of one problem: self-consistency (https://arxiv.org/abs/2203.11171)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from newskills.graders.voting.groups import group_votes


class Votes(Struct, kw_only=True):
    """`winner`: index of the first sample with the winning answer; None where none has one.

    counts  answer (as it was first written) → votes, the most frequent first
    """

    winner: int | None = None
    counts: dict[str, int] = {}


def same_text(left: str, right: str) -> bool:
    """Return whether both are the same characters."""
    return left == right


def elect_majority(answers: Sequence[str | None], same: Callable[[str, str], bool] = same_text) -> Votes:
    """Elect the most frequent answer up to `same`; of equally frequent ones the first that was given."""
    classes = sorted(classes_of(answers, same).items(), key=lambda answer_class: -len(answer_class[1]))
    return Votes(
        winner=classes[0][1][0] if classes else None,
        counts={answer: len(members) for answer, members in classes},
    )


def classes_of(
    answers: Sequence[str | None], same: Callable[[str, str], bool] = same_text
) -> dict[str, list[int]]:
    """Return answer (as it was first written) → indices of all that are the `same`, in the order of their first
    votes."""
    members_by_group: dict[str, list[int]] = {}
    for index, group in enumerate(group_votes(answers, same)):
        if group is not None:
            members_by_group.setdefault(group, []).append(index)
    return {str(answers[members[0]]): members for members in members_by_group.values()}
