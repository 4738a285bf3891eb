# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest
from tests.graders.plain import plain_grader

from newskills.base.pool.loop import PoolOptions
from newskills.base.pool.workers import WorkerPool
from newskills.base.protocols import Grader
from newskills.base.records import Failure, Score
from newskills.graders.gold import gold_reply
from newskills_math import verdict
from newskills_math.values import symbolic


def grade(record: dict[str, Any], **config: Any) -> Score:
    return plain_grader("math", config).grade(record)


def test_a_right_and_a_wrong_answer() -> None:
    right = grade({"generation": r"\boxed{0.5}", "expected_answer": r"\frac{1}{2}"})
    assert right == Score(
        outcome="correct",
        fields={"predicted_answer": "0.5", "symbolic_correct": True},
        grader="math@14",
        why="exact (box)",
    )
    wrong = grade({"generation": r"\boxed{0.4}", "expected_answer": r"\frac{1}{2}"})
    assert (wrong.outcome, wrong.fields["symbolic_correct"], wrong.cause) == ("wrong", False, "model")


@pytest.mark.parametrize(
    ("record", "cause"),
    [
        ({"generation": "I do not know"}, "model"),
        ({"generation": ""}, "model"),
        ({"generation": None}, "model"),
        ({"generation": "<think>on and on"}, "truncation"),
        ({"generation": r"\boxed{\frac{1"}, "truncation"),
        ({"generation": "on and on", "finish_reason": "length"}, "truncation"),
        ({"predicted_answer": None}, "model"),
    ],
)
def test_no_answer(record: dict[str, Any], cause: str) -> None:
    score = grade({**record, "expected_answer": "5"})
    assert (score.outcome, score.cause) == ("no_answer", cause)
    assert score.fields == {"predicted_answer": None, "symbolic_correct": False}


@pytest.mark.parametrize("record", [{}, {"expected_answer": None}, {"expected_answer": " "}])
def test_a_record_without_gold_is_the_fault_of_the_data(record: dict[str, Any]) -> None:
    score = grade({"generation": r"\boxed{5}", **record})
    assert (score.outcome, score.cause, score.fields["symbolic_correct"]) == ("unscored", "data", None)


def test_the_field_is_used_where_there_is_no_generation_or_on_demand() -> None:
    assert grade({"predicted_answer": "5", "expected_answer": 5}).outcome == "correct"
    record = {"generation": r"\boxed{4}", "predicted_answer": "5", "expected_answer": "5"}
    assert grade(record).outcome == "wrong"
    assert grade(record, use_predicted_answer_key=True).outcome == "correct"


def test_modulo() -> None:
    record = {"generation": r"\boxed{1005}", "expected_answer": "5"}
    assert grade(record).outcome == "wrong"
    assert grade(record, take_modulo=1000).outcome == "correct"
    assert grade({**record, "generation": r"\boxed{1/2}"}, take_modulo=1000).outcome == "wrong"


@pytest.mark.parametrize(
    "generation",
    [r"\boxed{5} or \boxed{6}", r"\boxed{5 \text{ or } 6}", r"\boxed{0,1,2,3,4,5,6,7,8,9}", r"\boxed{\pm 5}"],
)
def test_hedging_is_wrong(generation: str) -> None:
    assert grade({"generation": generation, "expected_answer": "5"}).outcome == "wrong"


def test_undecided_without_the_library_is_unscored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symbolic, "import_library", lambda: None)
    verdict._decide_cached.cache_clear()
    score = grade({"generation": r"\boxed{\int_0^1 x\,dx}", "expected_answer": r"\frac{1}{2}"})
    verdict._decide_cached.cache_clear()
    assert (score.outcome, score.cause, score.fields["symbolic_correct"]) == ("unscored", "grader", None)
    assert "pip install 'newskills[math]'" in score.why


@pytest.mark.parametrize(
    ("pred", "gold"),
    [("52_8", "52_9"), ("1，2，3", "1，2"), ("0.00000000000000000001", "0.000000000000000000001")],
)
def test_what_the_library_overlooks_is_checked_after_it(pred: str, gold: str) -> None:
    assert symbolic.decide_symbolically(pred, gold, 15)[0] is False


def test_it_is_a_grader() -> None:
    assert isinstance(plain_grader("math", {}), Grader)


def test_in_a_pool_a_hanging_expression_is_a_timeout_and_not_wrong() -> None:
    config = {
        "name": "math",
        "config": {"extract_from_boxed": False, "extract_regex": r"(a+)+$"},
    }
    options = PoolOptions(processes=1, cpu_seconds=1.0)
    with WorkerPool("newskills.graders.worker:make", config, result_type=Score, options=options) as pool:
        hang = pool.submit({"generation": "a" * 60 + "b", "expected_answer": "5"})
        fine = pool.submit({"generation": "aaa", "expected_answer": "aaa"})
        stuck, score = hang.result(timeout=300), fine.result(timeout=300)
    assert isinstance(stuck, Failure)
    assert stuck.cause == "timeout"
    assert isinstance(score, Score)
    assert score.outcome == "correct"


@pytest.mark.parametrize(
    ("answer", "gold", "correct"),
    [
        ("50.1", "50.7", True),
        ("48.2", "50.7", True),
        ("48.1", "50.7", False),
        ("-50.7", "50.7", False),
        (r"1.5\times 10^{-3}", "0.00149", True),
        (r"1.5\times 10^{-2}", "0.00149", False),
        (r"\frac{3\pi}{2}", "4.7", True),
        (r"P \approx 51\ \mathrm{atm}", "50.7", True),
        (r"5.1\ \mathrm{km}", r"5000\ \mathrm{m}", True),
        (r"5.1\ \mathrm{km}", r"5.1\ \mathrm{s}", False),
        (r"5.1\ \mathrm{mm}", r"5.0\ \mathrm{m}", False),
        ("0.01", "0", False),
        ("51 or 80", "50.7", False),
        ("x", "50.7", False),
        ("9" * 500, "50.7", False),
        (r"\infty", "50.7", False),
    ],
)
def test_a_tolerance_for_measured_values(answer: str, gold: str, correct: bool) -> None:
    record = {"generation": rf"\boxed{{{answer}}}", "expected_answer": gold}
    assert grade(record, relative_tolerance=0.05).fields["symbolic_correct"] is correct
    assert grade({"generation": r"\boxed{51}", "expected_answer": "50.7"}).outcome == "wrong"


@pytest.mark.parametrize(
    ("answer", "gold", "correct"),
    [
        ("14053029.67", "14053029.666666666", True),
        ("14053029.6", "14053029.666666666", False),
        ("9867631", "9867630", False),
        ("0.005", "0.0016791648", False),
        ("0.00168", "0.0016791648", True),
        ("0", "0.0016791648", False),
    ],
)
def test_rounding_to_two_decimals(answer: str, gold: str, correct: bool) -> None:
    record = {"generation": rf"\boxed{{{answer}}}", "expected_answer": gold}
    assert grade(record, absolute_tolerance=0.005).fields["symbolic_correct"] is correct


@pytest.mark.parametrize(
    "gold", [r"f^{-1}(x)=\frac{5+4 x}{5}", r"$f^{-1}(x)=\frac{5+4 x}{5}$", r"$h^{-1}(x)=-2 x^{5}+2$"]
)
def test_an_inverse_function_with_and_without_dollars(gold: str) -> None:
    plain = gold.replace("$", "")
    for answer in (plain, f"${plain}$", plain + "."):
        assert grade({"generation": rf"\boxed{{{answer}}}", "expected_answer": gold}).outcome == "correct"
    assert grade({"generation": r"\boxed{f^{-1}(x)=x}", "expected_answer": gold}).outcome == "wrong"


def test_the_right_reply_is_said_as_the_settings_want_it() -> None:
    record = {"expected_answer": "4"}
    told: dict[str, Any] = {"extract_from_boxed": False}
    assert gold_reply(plain_grader("math", {}), record) == {"generation": r"\boxed{4}"}
    assert gold_reply(plain_grader("math", told), record) == {"generation": "The final answer is 4"}
    assert gold_reply(plain_grader("math", told | {"extract_regex": "so (.+)$"}), record) is None
    assert gold_reply(plain_grader("math", {}), {}) is None
