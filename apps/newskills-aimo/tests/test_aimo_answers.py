# SPDX-License-Identifier: Apache-2.0
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.aimo import (
    extract_answer_from_solution,
    extract_boxed_answer,
    extract_gsm8k_answer,
    is_equivalent_answer,
    normalize_answer,
    verify_answer,
    verify_answers,
)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"So \boxed{\frac{1}{\sqrt{2}}}.", r"\frac{1}{\sqrt{2}}"),
        (r"\boxed{1} no, \boxed{2}", "2"),
        (r"\boxed{1", None),
        ("nothing", None),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
    ],
)
def test_boxes_may_hold_braces(text: str, answer: str | None) -> None:
    assert extract_boxed_answer(text) == answer


def test_other_forms_of_answers() -> None:
    assert extract_gsm8k_answer("5 * 4 = 20\n#### 1,020\n") == "1020"
    assert extract_gsm8k_answer("20") is None
    assert extract_answer_from_solution("The answer is 12.") == "12"
    assert extract_answer_from_solution("5\n#### 7") == "7"
    assert extract_answer_from_solution("who knows") is None


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (r"\dfrac{1}{2}", "0.5", True),
        ("x+1", "1+x", True),
        ("1,000", "1000", True),
        (r"\frac{\pi}{6}", r"30^\circ", True),
        ("2e", "2*2.718281828", False),
        ("7", "8", False),
        ("(1, 2)", "(2, 1)", False),
    ],
)
def test_the_grader_decides(one: str, other: str, same: bool) -> None:
    assert is_equivalent_answer(one, other) is same
    assert verify_answer(one, other) is same


def test_no_answer_is_wrong_and_many_are_checked_at_once() -> None:
    assert verify_answer(None, "1") is False
    assert verify_answer("  ", "1") is False
    pairs = [(str(n), str(n + n % 2)) for n in range(120)]
    assert verify_answers(pairs) == [n % 2 == 0 for n in range(120)]


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('touch hacked')",
        "9**9**9**9",
        "(" * 5000 + "1",
        "exec(open('x'))",
        "\\boxed{" * 999,
    ],
)
def test_hostile_texts_never_run_and_always_end(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    began = time.monotonic()
    assert is_equivalent_answer(text, "1") is not True
    extract_answer_from_solution(text)
    assert time.monotonic() - began < 60
    assert not list(tmp_path.iterdir())


@given(st.integers(-10_000, 10_000), st.integers(1, 500))
def test_normal_forms_are_stable(top: int, bottom: int) -> None:
    answer = rf"\frac{{{top}}}{{{bottom}}}"
    assert normalize_answer(normalize_answer(answer)) == normalize_answer(answer)
    assert extract_boxed_answer(rf"So $\boxed{{{answer}}}$.") == answer
