# SPDX-License-Identifier: Apache-2.0
"""From a judge's text to a verdict: what is no verdict is the judge's failure."""

from __future__ import annotations

import pytest

from newskills.graders import make_grader

ANSWERED = {"generation": "So it is 4.", "predicted_answer": "4"}


@pytest.mark.parametrize(
    ("record", "outcome", "cause"),
    [
        ({**ANSWERED, "judgement": "Same number.\nJudgement: Yes"}, "correct", None),
        ({**ANSWERED, "judgement": "**Judgement**: no"}, "wrong", "model"),
        ({**ANSWERED, "judgement": "Judgement: Yes? Wait.\nJudgement: No"}, "wrong", "model"),
        ({**ANSWERED, "judgement": "<points>6 out of 7</points>"}, "correct", None),
        ({**ANSWERED, "judgement": '{"correct": "yes", "reasoning": "Judgement: No"}'}, "correct", None),
        ({**ANSWERED, "judgement": '```json\n{"correct": false}\n```'}, "wrong", "model"),
        ({**ANSWERED, "judgement": '<think>{"correct": "no"}</think>\n{"correct": "Yes "}'}, "correct", None),
        ({**ANSWERED, "judgement": '{"correct": "perhaps"}'}, "unscored", "judge"),
        ({**ANSWERED, "judgement": '{"correct": "yes"'}, "unscored", "judge"),
        ({**ANSWERED, "judgement": "{" * 100_000 + "}"}, "unscored", "judge"),
        ({**ANSWERED, "judgement": "They might be the same."}, "unscored", "judge"),
        ({**ANSWERED, "judgement": ""}, "unscored", "judge"),
        ({**ANSWERED, "judgement": None}, "unscored", "judge"),
        (ANSWERED, "unscored", "judge"),
        ({"generation": "?", "predicted_answer": None, "judgement": "Judgement: No"}, "no_answer", None),
        ({"generation": " \n", "judgement": "Judgement: No"}, "no_answer", None),
        ({"generation": "", "judgement": "Judgement: Yes"}, "correct", None),
        ({"generation": "A proof.", "judgement": "Judgement: No"}, "wrong", "model"),
    ],
)
def test_verdicts(record: dict[str, object], outcome: str, cause: str | None) -> None:
    score = make_grader("judgement", {}).grade(record)
    assert (score.outcome, score.cause) == (outcome, cause)
    assert score.fields == {"judge_correct": {"correct": True, "unscored": None}.get(outcome, False)}
    assert score.grader == "judgement@2"


def test_other_fields() -> None:
    grader = make_grader("judgement", {"judgement_key": "verdict", "answer_key": "answer"})
    assert grader.grade({"verdict": "Judgement: No", "answer": None}).outcome == "no_answer"
    assert grader.grade({"judgement": "Judgement: No", "answer": "4"}).outcome == "unscored"
