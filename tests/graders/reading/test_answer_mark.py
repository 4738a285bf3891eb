# SPDX-License-Identifier: Apache-2.0
"""Marks at the end of a reply."""

from __future__ import annotations

import pytest

from newskills.graders.judges.answer_mark import MarkGrader


@pytest.mark.parametrize(
    ("reply", "rating"),
    [
        ("Rating: 7", 7),
        ("It is right.\nRating: 10.", 10),
        ("**Rating: 3**", 3),
        ("Rating: \\boxed{8}", 8),
        ("<think>2</think>Rating: 4", 4),
        ("Rating: 11", None),
        ("Rating: 0", None),
        ("7 of its sentences are true", None),
        ("", None),
    ],
)
def test_the_last_number_counts(reply: str, rating: int | None) -> None:
    score = MarkGrader().grade({"is_right": True, "generation": reply})
    assert score.fields["rating"] == rating
    assert score.outcome == ("no_answer" if rating is None else "correct" if rating > 5 else "wrong")


def test_a_wrong_answer_deserves_a_low_mark() -> None:
    outcomes = [MarkGrader().grade({"is_right": False, "generation": f"Rating: {n}"}).outcome for n in (5, 6)]
    assert outcomes == ["correct", "wrong"]
    assert MarkGrader().grade({"generation": "Rating: 5"}).outcome == "unscored"
