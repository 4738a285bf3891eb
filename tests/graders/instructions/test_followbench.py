# SPDX-License-Identifier: Apache-2.0
"""FollowBench: rules on the reply, and the judge's list of levels; the authors' own verdicts are in tests/official."""

from __future__ import annotations

from typing import Any

import pytest
from tests.graders.plain import plain_grader

from newskills.base.records import Score
from newskills.graders.instructions.followbench import is_satisfied, listed_verdicts, rule_of


def grade(**record: Any) -> Score:
    return plain_grader("followbench", {}).grade({"level": 1, **record})


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        ("Name: Rome", "correct"),
        (" Name: Rome", "wrong"),
        ("<think>Rome?</think>\nName: Rome\n", "correct"),
        ("<think>Name: Rome", "wrong"),
        ("", "wrong"),
    ],
)
def test_rules_read_the_reply_behind_its_thinking(reply: str, outcome: str) -> None:
    """Blanks around it count, but for those behind the thinking."""
    assert grade(rule="E2E", expected_answer="Name: Rome", generation=reply).outcome == outcome


@pytest.mark.parametrize(
    ("rule", "text", "target", "kept"),
    [
        ("WIKIEVENTS", "b", "a\nb", True),
        ("WIKIEVENTS", "b\nc", "a\nb", False),
        ("CONLL2003", "Rome", "['Rome', 'Bonn']", True),
        ("CONLL2003", "Rom", "['Rome', 'Bonn']", False),
        ("self_made_space", "it is north of it", "north", True),
        ("BBH_logical", "(A), no: (B)", "(B)", True),
        ("BBH_logical", "(B), no: (A)", "(B)", False),
        ("BBH_logical", "none", "(B)", False),
        ("gsm_8k", "$5 and $12", "$12", True),
        ("example", "Q: x A: y", "{instruction}\nQ: x A: {answer}", True),
        ("example", "Q: z A: y", "{instruction}\nQ: x A: {answer}", False),
    ],
)
def test_targets(rule: str, text: str, target: str, kept: bool) -> None:
    assert is_satisfied(rule, 1, text, target) is kept


@pytest.mark.parametrize(
    ("text", "level", "verdicts"),
    [
        ("So it is.\nYES", 1, [True]),
        ("YES?\nNO", 1, [False]),
        ("perhaps", 1, None),
        ("So:\n['YES', 'NO', 'YES']", 3, [True, False, True]),
        ("['YES', 'NO']", 3, None),
        ("['YES', 'maybe']", 2, None),
        ("<think>['YES', 'NO']", 2, None),
        (None, 1, None),
    ],
)
def test_lists_of_the_judge(text: str | None, level: int, verdicts: list[bool] | None) -> None:
    assert listed_verdicts(text, level) == verdicts
    score = grade(level=level, judgement=text)
    wanted = None if verdicts is None else sum(verdicts) / level
    assert (score.fields["constraints"], score.fields["soft_satisfied"]) == (verdicts, wanted)
    assert score.outcome == {None: "unscored", 1.0: "correct"}.get(wanted, "wrong")


def test_which_rule_decides() -> None:
    assert rule_of("example", 3, "x") == "example"
    assert rule_of("format", 22, "x") == "format-22"
    assert rule_of("format", 9_999, "E2E") == ""
    assert (rule_of("content", 1, "E2E"), rule_of("content", 1, "x")) == ("E2E", "")
