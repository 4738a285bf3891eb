# SPDX-License-Identifier: Apache-2.0
"""KOR-Bench: each rule has a comparison of its own, and nothing that a model wrote is executed."""

from __future__ import annotations

import pytest
from tests.graders.plain import plain_grader

from newskills.base.records import Row
from newskills.graders.gold import gold_reply


def outcome(identity: str, rule: str, gold: str, reply: str) -> str:
    record = {"id": identity, "rule_id": rule, "expected_answer": gold, "generation": reply}
    return plain_grader("new_rules", {}).grade(record).outcome


@pytest.mark.parametrize(
    ("identity", "rule", "gold", "reply", "wanted"),
    [
        ("kor-operation-15", "2", "4or-12", "[[-12 or 4]]", "correct"),
        ("kor-operation-15", "2", "4or-12", "[[4]]", "wrong"),
        ("kor-operation-77", "8", "\\sqrt{11}", "[[\\sqrt{11} or 3]]", "wrong"),
        ("kor-operation-77", "8", "2\\sqrt{11}", "[[\\sqrt{44}]]", "correct"),
        ("kor-operation-178", "18", "{x∣x≤0 or x≥1}", "[[x≥1 or x≤0]]", "correct"),
        ("kor-operation-181", "18", "{1,2,4}", "[[{4,2,1}]]", "correct"),
        ("kor-puzzle-81", "9", "6+2*3-2=10", "[[6 + 2 × 3 - 2 = 10]]", "correct"),
        ("kor-puzzle-81", "9", "6+2*3-2=10", "[[6+2*3+2=14]]", "wrong"),
        ("kor-puzzle-91", "10", "6*8/(9-7)", "[[8*6/(9-7)]]", "correct"),
        ("kor-puzzle-91", "10", "6*8/(9-7)", "[[6*8-(9+7)]]", "wrong"),
        ("kor-puzzle-91", "10", "6*8/(9-7)", "[[6**8**9**7]]", "wrong"),
        ("kor-puzzle-91", "10", "6*8/(9-7)", "[[exit(6879)]]", "wrong"),
        ("kor-logic-141", "15", "[c1;c2]φ", "so it is [[[c1;c2]φ]]", "correct"),
        ("kor-logic-41", "5", "I,O];[+,-];[-,+", "[[I,O];[-,+];[+,-]]", "wrong"),
        ("kor-cipher-1", "1", "N", "It is N.\n\\boxed{N}", "correct"),
        ("kor-cipher-1", "1", "N", "[[n]]", "wrong"),
        ("kor-cipher-1", "1", "N", "", "no_answer"),
        ("kor-puzzle-31", "4", "appel pepla", "[[p]]", "wrong"),
        ("kor-puzzle-31", "4", "appel pepla", "[[pepla]]", "correct"),
        ("kor-puzzle-31", "4", "Appel pepla", "[[appelpepla]]", "wrong"),
        ("kor-puzzle-11", "2", "appel,", "[[123]]", "wrong"),
        ("kor-puzzle-151", "16", "+-*", "[[.]]", "wrong"),
        ("kor-puzzle-151", "16", "+-*", "[[+ - *]]", "correct"),
        ("kor-operation-181", "18", "∅", "[[{}]]", "wrong"),
        ("kor-operation-231", "24", "∅", "[[none]]", "wrong"),
        ("kor-operation-231", "24", "∅", "[[∅]]", "correct"),
        ("kor-puzzle-176", "18", "[1 2],[3 4]", "[[1,2,3,4]]", "correct"),
        ("kor-puzzle-176", "18", "[1 2],[3 4]", "[[1,2,4,3]]", "wrong"),
        ("kor-puzzle-41", "5", "abc,de", "[[de,abc]]", "correct"),
        ("kor-puzzle-41", "5", "abc,de", "[[de,abd]]", "wrong"),
        ("kor-operation-221", "23", "(3,4)", "[[3, 4]]", "correct"),
        ("kor-operation-221", "23", "(3,4)", "[[4, 3]]", "wrong"),
        ("kor-puzzle-81", "9", "8/2-1=3", "[[8 ÷ 2 - 1 = 3]]", "correct"),
        ("kor-puzzle-81", "9", "8/2-1=3", "[[8/2-2=3]]", "wrong"),
        ("other", "1", "N", "[[N]]", "unscored"),
    ],
)
def test_rules(identity: str, rule: str, gold: str, reply: str, wanted: str) -> None:
    assert outcome(identity, rule, gold, reply) == wanted


@pytest.mark.parametrize(
    ("identity", "rule", "gold"),
    [("kor-puzzle-31", "4", "appel pepla"), ("kor-puzzle-32", "4", " pale peal plea")],
)
def test_one_of_several_right_words_is_the_right_reply(identity: str, rule: str, gold: str) -> None:
    record: Row = {"id": identity, "rule_id": rule, "expected_answer": gold}
    right = gold_reply(plain_grader("new_rules", {}), record)
    assert right == {"generation": f"[[{gold.split()[0]}]]"}
    assert outcome(identity, rule, gold, right["generation"]) == "correct"
