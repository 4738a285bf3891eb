# SPDX-License-Identifier: Apache-2.0
"""One answer out of many samples of one problem: self-consistency (https://arxiv.org/abs/2203.11171)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from newskills.graders.math.normalise import key, tidy
from newskills.graders.math.values.exact import plain


class Votes(Struct, kw_only=True):
    """`winner`: index of the first sample with the winning answer; None where none has one.

    counts  answer (as it was first written) → votes, the most frequent first
    """

    winner: int | None = None
    counts: dict[str, int] = {}


def same_text(left: str, right: str) -> bool:
    """Whether both are the same characters."""
    return left == right


def same_answer(left: str, right: str) -> bool:
    """Whether the math grader's quick steps take both for the same: equal numbers, or one normal form.

    The slower steps of the grader need a process with a deadline and have no place among many votes.
    """
    a, b = tidy(left), tidy(right)
    p, q = plain(a), plain(b)
    if p is not None and q is not None:
        return p.value == q.value and p.percent == q.percent
    return a == b or key(a) == key(b)


def majority(answers: Sequence[str | None], same: Callable[[str, str], bool] = same_text) -> Votes:
    """The most frequent answer up to `same`, an equivalence; of equally frequent ones the first that was given."""
    classes = sorted(classes_of(answers, same).items(), key=lambda answer_class: -len(answer_class[1]))
    return Votes(
        winner=classes[0][1][0] if classes else None,
        counts={answer: len(members) for answer, members in classes},
    )


def classes_of(
    answers: Sequence[str | None], same: Callable[[str, str], bool] = same_text
) -> dict[str, list[int]]:
    """Answer (as it was first written) → indices of all that are the `same`, in the order of their first votes."""
    classes: dict[str, list[int]] = {}
    for index, answer in enumerate(answers):
        if answer is None:
            continue
        members = next(
            (members for representative, members in classes.items() if same(representative, answer)), None
        )
        if members is None:
            classes[answer] = [index]
        else:
            members.append(index)
    return classes
