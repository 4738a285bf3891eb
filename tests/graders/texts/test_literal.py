# SPDX-License-Identifier: Apache-2.0
"""Values of Python: which texts are the same one."""

from __future__ import annotations

import pytest
from tests.graders.plain import plain_grader

from newskills.base.errors import ConfigError


def outcome(gold: str | None, reply: str) -> str:
    return plain_grader("literal", {}).grade({"expected_answer": gold, "generation": reply}).outcome


@pytest.mark.parametrize(
    ("gold", "same", "other"),
    [
        ("'Ab'", '"Ab"', "'ab'"),
        ("'a.'", "'a.'", "'a'"),
        ("'a b'", "[ANSWER]'a b'[/ANSWER]", "[ANSWER]'a  b'[/ANSWER]"),
        ("[1, 2]", "Answer: [1,2]", "Answer: [2, 1]"),
        ("(1, 2)", "```python\n(1, 2)\n```", "```python\n[1, 2]\n```"),
        ("{1, 2}", "It returns:\n{2, 1}", "It returns:\n{1}"),
        ("{'a': None}", "**Answer:** `{'a': None}`", "**Answer:** `{'a': 0}`"),
        ("True", "assert f('a == b') == True", "assert f('a == b') == False"),
        ("'x==y'", "'x==y'", "'y'"),
        ("1", "[ANSWER]f(0) == 1 # done[/ANSWER]", "[ANSWER]f(0) == '1'[/ANSWER]"),
        ("-1.5", "-1.50", "1.5"),
        ("''", "''", "' '"),
        ("set()", "set()", "{}"),
    ],
)
def test_the_same_value_and_another(gold: str, same: str, other: str) -> None:
    assert outcome(gold, same) == "correct"
    assert outcome(gold, other) == "wrong"


@pytest.mark.parametrize(
    "reply", ["__import__('os').getpid()", "f(1)", "'a' * 3", "[" * 30_000, "(" * 150, "9" * 19_000, "a"]
)
def test_nothing_is_executed(reply: str) -> None:
    assert outcome("'aaa'", reply) == "wrong"


def test_without_an_answer_or_a_right_one() -> None:
    assert outcome("1", "") == "no_answer"
    assert outcome("1", "<think>1") == "no_answer"
    assert outcome(None, "1") == "unscored"
    with pytest.raises(ConfigError, match="not a literal"):
        outcome("garden", "garden")


def test_strict_exactness_minds_case() -> None:
    record = {"expected_answer": "Paris", "generation": "paris"}
    assert plain_grader("exact", {}).grade(record).outcome == "correct"
    strict = plain_grader("exact", {"loose": False, "ignore_case": False})
    assert strict.grade(record).outcome == "wrong"
    assert strict.grade({**record, "generation": "Paris"}).outcome == "correct"
