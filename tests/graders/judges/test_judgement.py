# SPDX-License-Identifier: Apache-2.0
"""From a judge's text to a verdict: what is no verdict is the judge's failure."""

from __future__ import annotations

import re

import pytest
from tests.graders.plain import plain_grader

from newskills.base.judgement import parse_judgement

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
        ({**ANSWERED, "judgement": "**Yes.**"}, "correct", None),
        ({**ANSWERED, "judgement": '{"explanation": "It is.", "criteria_met": false}'}, "wrong", "model"),
        ({**ANSWERED, "judgement": "The number is 0.\nJudgement: **1**"}, "correct", None),
        ({**ANSWERED, "judgement": "Judgement: 0."}, "wrong", "model"),
        ({**ANSWERED, "judgement": 'Explanation: the same year.\n"Decision:" "TRUE"'}, "correct", None),
        ({**ANSWERED, "judgement": "**Decision:** FALSE"}, "wrong", "model"),
        ({**ANSWERED, "judgement": 'I shall give a "Decision:" ("TRUE" or "FALSE")'}, "unscored", "judge"),
        ({**ANSWERED, "judgement": "1"}, "unscored", "judge"),
        ({**ANSWERED, "judgement": "Judgement: 10"}, "unscored", "judge"),
        ({**ANSWERED, "judgement": "Judgement: 1/7"}, "unscored", "judge"),
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
    score = plain_grader("judgement", {}).grade(record)
    assert (score.outcome, score.cause) == (outcome, cause)
    assert score.fields == {"judge_correct": {"correct": True, "unscored": None}.get(outcome, False)}
    assert score.grader == "judgement@9"


def test_other_fields() -> None:
    grader = plain_grader("judgement", {"judgement_key": "verdict", "answer_key": "answer"})
    assert grader.grade({"verdict": "Judgement: No", "answer": None}).outcome == "no_answer"
    assert grader.grade({"judgement": "Judgement: No", "answer": "4"}).outcome == "unscored"


YES = r"""
Judgement: Yes | Judgment: yes | **Judgement: Yes** | **Judgement**: **YES** | ### Judgement | Judgement - Yes
My judgement is: Yes. | Judgement is Yes | Judgement：Yes | Judgement = yes | Judgement: [Yes] | Judgement: `Yes`
Judgement: $\boxed{\text{Yes}}$ | Judgement: No? Wait. Judgement: Yes | <think>Judgement: No</think>Judgement: Yes
\boxed{Correct} | \boxed{\textbf{correct}} | [Correct] | <points>7 out of 7</points> | <points>6/7</points>
"""
NO = {"yes": "no", "correct": "Incorrect", "7 out": "5 out", "6/": "0/"}
OPPOSITE = re.compile("|".join(NO), re.IGNORECASE)
NEITHER = """
Judgement: Yes or No | Judgement: Yes/No | Judgement: Nothing | Judgement: Not sure | Judgement: Yesterday
Write 'Judgement: Yes' or 'Judgement: No'. | <think>Judgement: Yes | <think>Judgement: Yes</think>Hard to say
Yes, they are the same. | They are. | \\boxed{not correct}
"""


def cases(block: str) -> list[str]:
    texts = [text for line in block.strip().splitlines() for text in line.split(" | ")]
    return [text + "\n\n**Yes**" if text.startswith("#") else text for text in texts]


@pytest.mark.parametrize("text", cases(YES))
def test_forms_of_yes_and_no(text: str) -> None:
    assert parse_judgement(text) is True
    opposite = OPPOSITE.sub(lambda match: NO[match[0].lower()], text.replace("Judgement: No", "Judgement: Maybe"))
    assert parse_judgement(opposite) is False


@pytest.mark.parametrize("text", cases(NEITHER))
def test_neither_yes_nor_no(text: str) -> None:
    assert parse_judgement(text) is None


@pytest.mark.parametrize("filler", ["judgement ", "judgement:", "\\boxed{", "judgement: yes or ", "\n", "*"])
def test_judgements_cost_linear_time(filler: str) -> None:
    assert parse_judgement("judgement" + filler * 60_000) in (None, True)
