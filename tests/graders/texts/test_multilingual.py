# SPDX-License-Identifier: Apache-2.0
"""Right answers in the right language."""

from __future__ import annotations

import pytest
from tests.graders.plain import plain_grader

GERMAN = "Zuerst addieren wir die beiden Zahlen, dann teilen wir das Ergebnis durch zwei. Also ist die Antwort "
CHINESE = "首先把两个数加起来，然后把结果除以二，所以最后的答案是"


@pytest.mark.parametrize(
    ("target", "generation", "spoken"),
    [
        ("de", GERMAN + "\\boxed{5}", True),
        ("DE", GERMAN + "\\boxed{5}", True),
        ("fr", GERMAN + "\\boxed{5}", False),
        ("zh", CHINESE + "\\boxed{5}", True),
        ("zh", GERMAN + "\\boxed{5}", False),
        ("sw", "\\boxed{5}", True),
        ("de", f"<think>{CHINESE}</think>{GERMAN}\\boxed{{5}}", True),
        ("zh", f"<think>{CHINESE}</think>{GERMAN}\\boxed{{5}}", False),
        ("de", f"<think>{GERMAN}", False),
        ("de", f"{GERMAN} $x \\text{{where the value of x is the number of the apples}}$ \\boxed{{5}}", True),
    ],
)
def test_language_of_the_reply(target: str, generation: str, spoken: bool) -> None:
    record = {"generation": generation, "expected_answer": "5", "target_language": target}
    score = plain_grader("math_multilingual", {}).grade(record)
    assert score.fields["language_correct"] is spoken
    assert score.fields["symbolic_correct"] is ("\\boxed" in generation)


def test_no_language_is_asked_for() -> None:
    score = plain_grader("math_multilingual", {}).grade({"generation": "\\boxed{5}", "expected_answer": "5"})
    assert (score.outcome, score.fields["language_correct"]) == ("correct", None)


def test_letters() -> None:
    record = {"generation": f"{GERMAN}\nAntwort: B", "expected_answer": "B", "target_language": "de"}
    score = plain_grader("multichoice_multilingual", {}).grade(record)
    assert (score.outcome, score.fields["language_correct"]) == ("correct", True)
    assert score.grader.startswith("multichoice_multilingual@3, multichoice@")


@pytest.mark.parametrize(
    ("answer", "outcome"), [("C", "correct"), ("6", "correct"), ("(C)", "correct"), ("7", "wrong"), ("B", "wrong")]
)
def test_accepted_answers_of_the_math_grader(answer: str, outcome: str) -> None:
    record = {"generation": f"\\boxed{{{answer}}}", "expected_answer": "6", "accepted_answers": ["C"]}
    assert plain_grader("math", {}).grade(record).outcome == outcome
