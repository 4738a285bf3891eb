# SPDX-License-Identifier: Apache-2.0
"""F1 of stems, by kind of question; figures worked out by hand."""

from __future__ import annotations

import pytest

from newskills.graders.reading.memories import MemoryGrader, memory_score
from newskills.graders.reading.stems import stem_word


@pytest.mark.parametrize(
    ("answer", "gold", "kind", "value"),
    [
        ("She adopted foxes", "adopting a fox", "single-hop", 0.8),
        ("two foxes", "cats", "single-hop", 0.0),
        ("7 May, 2023", "7 May 2023", "temporal", 1.0),
        ("swimming, reading", "painting, swimming", "multi-hop", 0.5),
        ("painting and swimming", "painting, swimming", "multi-hop", 2 / 3),
        ("Likely yes", "Likely yes; he flies", "commonsense", 1.0),
        ("It is not mentioned.", "No information available", "adversarial", 1.0),
        ("two foxes", "No information available", "adversarial", 0.0),
    ],
)
def test_values(answer: str, gold: str, kind: str, value: float) -> None:
    assert memory_score(answer, gold, kind) == pytest.approx(value)


def test_outcomes() -> None:
    row = {"expected_answer": "two foxes", "question_type": "single-hop"}
    grader = MemoryGrader()
    replies = {"Two foxes.": "correct", "foxes": "wrong", "": "no_answer", "<think>two foxes": "no_answer"}
    for reply, outcome in replies.items():
        assert grader.grade({**row, "generation": reply}).outcome == outcome
    assert grader.grade({"generation": "x"}).outcome == "unscored"


@pytest.mark.parametrize(
    ("word", "root"),
    [
        ("caresses", "caress"), ("ponies", "poni"), ("agreed", "agre"), ("plastered", "plaster"), ("motoring", "motor"),
        ("conflated", "conflat"), ("falling", "fall"), ("filing", "file"), ("happy", "happi"), ("says", "say"),
        ("vietnamization", "vietnam"), ("rationally", "ration"), ("electricity", "electr"), ("adjustment", "adjust"),
        ("controller", "control"), ("dying", "die"), ("ties", "tie"), ("x", "x"),
    ],
)  # fmt: skip
def test_stems(word: str, root: str) -> None:
    assert stem_word(word) == root
