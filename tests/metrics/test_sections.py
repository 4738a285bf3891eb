# SPDX-License-Identifier: Apache-2.0
"""Headlines over sections, against figures worked out by hand."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from typing import Any

import pytest

from newskills.base.records import Row
from newskills.base.stats import Z95
from newskills.metrics import make_metric
from newskills.metrics.counting.corpus import jackknife_number, sections_jackknife


def filled(name: str, *problems: list[Row], **options: Any) -> dict[str, dict[str, float]]:
    metric = make_metric(name, **options)
    for problem in problems:
        metric.update(problem)
    return {
        mode: {key: number.value for key, number in numbers.items()} for mode, numbers in metric.numbers().items()
    }


def sample(section: str, value: float | bool | None, **more: Any) -> Row:
    return {"subset_for_metrics": section, "symbolic_correct": value, "predicted_answer": "x", **more}


def test_the_mean_of_sections_is_not_that_of_samples() -> None:
    values = [("a", True), ("a", True), ("a", False), ("a", False), ("b", True)]
    numbers = filled("macro", *[[sample(*value)] for value in values])["pass@1"]
    assert numbers["macro_accuracy"] == pytest.approx(75.0), "(50 + 100) / 2"
    assert numbers["accuracy"] == pytest.approx(60.0)


def test_several_seeds_are_averaged_and_lost_samples_left_out() -> None:
    lost: Row = {"subset_for_metrics": "b", "outcome": "unscored", "outcome_cause": "provider", "error": "timeout"}
    numbers = filled(
        "macro",
        [sample("a", True), sample("a", False)],
        [sample("b", True), lost],
        [sample("b", False), sample("b", False)],
    )
    assert numbers["pass@1[avg-of-2]"]["macro_accuracy"] == pytest.approx(37.5), "seed 0: (100+50)/2, seed 1: 0"


def test_sections_have_a_mean_of_any_of_several_attempts_and_of_votes() -> None:
    lost: Row = {"subset_for_metrics": "b", "outcome": "unscored", "outcome_cause": "provider", "error": "timeout"}
    numbers = filled(
        "macro",
        [sample("a", True), sample("a", False), sample("a", False)],
        [sample("a", False, predicted_answer="y"), sample("a", True), sample("a", True)],
        [sample("b", False), sample("b", False), sample("b", False)],
        [sample("b", True), sample("b", True), lost],
    )
    assert numbers["pass@3"]["macro_accuracy"] == pytest.approx(50.0), "(100 + 0) / 2: one of b has two samples"
    assert numbers["pass@2"]["macro_accuracy"] == pytest.approx(100 * ((2 / 3 + 1) / 2 + (0 + 1) / 2) / 2)
    assert numbers["majority@3"]["macro_accuracy"] == pytest.approx(100 * ((0 + 1) / 2 + 0) / 2)
    assert numbers["pass@1"]["macro_accuracy"] == numbers["pass@1[avg-of-3]"]["macro_accuracy"]


def test_a_section_has_another_field_where_that_is_said() -> None:
    rows = [[{"kind": kind, "is_correct": value}] for kind, value in (("x", 1.0), ("y", 0.5), ("y", 0.0))]
    assert filled("macro", *rows, section_key="kind")["pass@1"]["macro_accuracy"] == pytest.approx(62.5)


def test_the_outcome_counts_where_no_field_says_more() -> None:
    rows: list[list[Row]] = [[{"subset_for_metrics": "a", "outcome": name}] for name in ("correct", "no_answer")]
    assert filled("macro", *rows)["pass@1"]["macro_accuracy"] == pytest.approx(50.0)


def test_samples_without_an_answer_are_shown_unless_told_otherwise() -> None:
    rows = [[sample("a", True)], [sample("a", False, predicted_answer=None)]]
    assert filled("macro", *rows)["pass@1"]["no_answer"] == pytest.approx(50.0)
    assert "no_answer" not in filled("macro", *rows, no_answer=False)["pass@1"]


def test_one_section_has_the_interval_of_the_plain_jackknife() -> None:
    values = [1.0, 0.0, 1.0, 1.0, 0.0]
    plain = jackknife_number([(value, 1.0) for value in values], lambda sums: sums[0] / sums[1])
    grouped = sections_jackknife(
        Counter(("all", (value, 1.0)) for value in values), lambda sums: sums["all"][0] / sums["all"][1]
    )
    assert plain is not None
    assert grouped is not None
    assert (grouped.value, grouped.n) == (plain.value, plain.n)
    assert grouped.low == pytest.approx(plain.low)


def test_a_single_sample_has_no_interval() -> None:
    number = sections_jackknife({("a", (1.0, 1.0)): 1}, lambda sums: sums["a"][0] if sums else None)
    assert number is not None
    assert number.value == 1.0
    assert math.isinf(number.low)


def test_a_section_with_a_single_sample_alone_has_no_interval() -> None:
    metric = make_metric("macro")
    metric.update([sample("a", True)])
    number = metric.numbers()["pass@1"]["macro_accuracy"]
    assert number.value == 100.0
    assert math.isinf(number.low)


def test_nothing_has_no_number() -> None:
    assert sections_jackknife({}, lambda sums: 0.0) is None


def test_processbench_is_the_mean_of_the_sources_f1() -> None:
    def step(source: str, label: int, right: bool) -> list[Row]:
        return [sample(source, right, expected_answer=str(label))]

    records = [
        *[step("gsm8k", 2, right) for right in (True, True, True, False)],  # 75%
        *[step("gsm8k", -1, right) for right in (True, False)],  # 50%: F1 60
        *[step("math", 0, False), step("math", -1, True)],  # F1 0
    ]
    numbers = filled("processbench", *records)["pass@1"]
    assert numbers["f1"] == pytest.approx(30.0)
    assert numbers["error_accuracy"] == pytest.approx(37.5), "(75 + 0) / 2"
    assert numbers["correct_accuracy"] == pytest.approx(75.0), "(50 + 100) / 2"
    assert numbers["accuracy"] == pytest.approx(100 * 5 / 8)


def test_processbench_has_no_f1_without_both_kinds() -> None:
    numbers = filled("processbench", [sample("gsm8k", True, expected_answer="-1")])["pass@1"]
    assert "f1" not in numbers
    assert numbers["correct_accuracy"] == 100.0


def test_rewardbench_weighs_subsets_and_then_sections_alike() -> None:
    def pair(subset: str, right: bool | None) -> list[Row]:
        outcome = "no_answer" if right is None else "correct" if right else "wrong"
        return [sample(subset, bool(right), outcome=outcome)]

    records = [
        *[pair("alpacaeval-easy", True), pair("mt-bench-med", False)],  # (100 · 1 + 40 · 0) / 140
        *[pair("donotanswer", None), pair("donotanswer", True)],  # (0.5 + 1) / 2
        *[pair("math-prm", True), pair("hep-go", False)],  # 984 / (984 + 164)
    ]
    numbers = filled("rewardbench", *records)["pass@1"]
    assert numbers["chat"] == pytest.approx(100 * 100 / 140)
    assert numbers["safety"] == pytest.approx(75.0)
    assert numbers["reasoning"] == pytest.approx(100 * 984 / 1148)
    assert "chat_hard" not in numbers
    assert numbers["score"] == pytest.approx((10000 / 140 + 75 + 98400 / 1148) / 3)


def test_rewardbench2_counts_a_reply_without_a_choice_as_a_guess() -> None:
    records = [[sample("Math", False, outcome="no_answer")], [sample("Safety", True, outcome="correct")]]
    assert filled("rewardbench2", *records)["pass@1"]["macro_accuracy"] == pytest.approx(62.5)


def mark(kind: str, question: int, is_right: bool, rating: float | None) -> list[Row]:
    return [{"tie_kind": kind, "question_id": str(question), "is_right": is_right, "rating": rating}]


def test_the_score_of_ties() -> None:
    records = [
        *[mark("tied", 1, True, 9), mark("tied", 1, True, 8), mark("tied", 1, False, 3)],  # gap 5, spread 1
        *[mark("ref", 1, True, 9), mark("ref", 1, False, 8)],  # gap 1
        *[mark("tied", 2, True, 7), mark("tied", 2, True, 7), mark("tied", 2, False, None)],  # gap 8, spread 0
        *[mark("ref", 2, True, 2), mark("ref", 2, False, 5)],  # gap -3
    ]
    expected = 0.30 * 1 + 0.30 * 0.5 + 0.20 * 1 + 0.20 * 0 + 0.01 * (math.tanh(1 / 1 - 1) - 1) / 2
    assert filled("rewardbench2-ties", *records)["pass@1"]["ties_score"] == pytest.approx(100 * expected)


@pytest.mark.parametrize("questions", [1, 2, 3])
def test_the_interval_of_ties_leaves_out_one_question_at_a_time(questions: int) -> None:
    def marks(question: int) -> list[list[Row]]:
        tied = [("tied", True, 9), ("tied", True, 9 - question), ("tied", False, 2 * question)]
        single = [("ref", True, 6), ("ref", False, question + 3)]
        return [mark(kind, question, right, rating) for kind, right, rating in (*tied, *single)]

    def score(numbers: list[int]) -> float:
        return filled("rewardbench2-ties", *(row for n in numbers for row in marks(n)))["pass@1"]["ties_score"]

    metric = make_metric("rewardbench2-ties")
    everything = list(range(1, questions + 1))
    for problem in (row for n in everything for row in marks(n)):
        metric.update(problem)
    number = metric.numbers()["pass@1"]["ties_score"]
    assert (number.value, number.n) == (pytest.approx(score(everything)), questions)
    if questions == 1:
        assert (number.low, number.high) == (-math.inf, math.inf)
        return
    others = [score([n for n in everything if n != left_out]) for left_out in everything]
    half = Z95 * math.sqrt((questions - 1) * statistics.pvariance(others))
    assert (number.low, number.high) == pytest.approx((number.value - half, number.value + half))


def test_a_question_counts_when_every_order_is_right() -> None:
    values = [
        ("1", True),
        ("1", True),
        ("2", True),
        ("2", False),
        ("3", True),
        ("3", None),
        ("4", False),
        ("4", None),
    ]
    rows: list[list[Row]] = [[{"question_id": name, "symbolic_correct": value}] for name, value in values]
    numbers = filled("circular", *rows)["pass@1"]
    assert numbers["circular_accuracy"] == pytest.approx(100 / 3), "1 of 1, 2 and 4; 3 is not known"
    assert numbers["accuracy"] == pytest.approx(100 * 4 / 6)


def test_balanced_accuracy_weighs_right_answers_alike() -> None:
    values = [("a", "A", True), ("a", "A", True), ("a", "A", True), ("a", "B", False), ("b", "A", True)]
    rows = [[sample(section, right, expected_answer=gold)] for section, gold, right in values]
    numbers = filled("balanced", *rows)["pass@1"]
    assert numbers["balanced_accuracy"] == pytest.approx((50 + 100) / 2)
    assert numbers["accuracy"] == pytest.approx(80.0)


def test_wildbench_stretches_marks_and_weighs_groups_of_tasks() -> None:
    """Marks 9 (coding, weight 1.25) and 5 (creative twice, 0.5): (80 · 1.25 + 0 · 0.5) / 1.75."""
    metric = make_metric("wildbench")
    for mark, groups in ((9, ["coding"]), (5, ["creative", "creative"]), (None, ["coding"])):
        outcome = "unscored" if mark is None else "correct"
        row = {"generation": "x", "ratings": {"all": mark}, "task_groups": groups, "outcome": outcome}
        assert row.keys() <= metric.fields.keys(), "what is read of a record"
        metric.update([row])
    numbers = metric.numbers()["pass@1"]
    figures = {name: round(numbers[name].value, 3) for name in ("wb_score", "wb_task_score", "rating")}
    assert figures == {"wb_score": 40.0, "wb_task_score": 57.143, "rating": 7.0}
    assert "no_answer" not in numbers


def test_answers_have_means_of_languages_without_those_put_aside() -> None:
    def answer(language: str, em: float, f1: float) -> list[Row]:
        return [{"subset_for_metrics": language, "em": em, "f1": f1, "predicted_answer": "x"}]

    answers = (
        *(answer("arabic", 1.0, 1.0), answer("arabic", 0.0, 0.5), answer("finnish", 0.0, 0.25)),
        answer("english", 1.0, 1.0),
    )
    numbers = filled("short_answer_sections", *answers, aside=["english"])["pass@1"]
    assert numbers["macro_f1"] == pytest.approx(50.0), "(75 + 25) / 2"
    assert numbers["macro_em"] == pytest.approx(25.0)
    assert numbers["f1"] == pytest.approx(100 * 2.75 / 4)
    only_english = filled("short_answer_sections", answer("english", 1.0, 1.0), aside=["english"])["pass@1"]
    assert only_english.keys() == {"em", "f1", "no_answer"}


def test_pairs_and_figures_are_right_as_a_whole_and_nothing_may_be_said_of_no_figure() -> None:
    def question(pair: str, figure: str | None, correct: bool, hard: bool = False, outcome: str = "") -> list[Row]:
        ending = {"outcome": outcome, "outcome_cause": "model"} if outcome else {}
        fields = {
            "pair_id": pair,
            "figure_id": figure,
            "is_hard": hard,
            "predicted_answer": None if outcome else "A",
        }
        return [{**fields, "symbolic_correct": correct, **ending}]

    questions = (
        *(question("1", None, False, outcome="no_answer"), question("1", "a", True, hard=True)),
        *(question("2", None, False), question("2", "a", False, hard=True), question("3", "b", True)),
    )
    numbers = filled("hallusionbench", *questions)["pass@1"]
    assert numbers["pair_accuracy"] == pytest.approx(200 / 3), "1 and 3"
    assert numbers["figure_accuracy"] == pytest.approx(50), "b"
    assert numbers["easy_accuracy"] == pytest.approx(200 / 3)
    assert numbers["hard_accuracy"] == pytest.approx(50)
    assert numbers["accuracy"] == pytest.approx(60)


def test_pages_without_a_measure_are_left_out_of_its_mean() -> None:
    pages: list[list[Row]] = [
        [{"text_edit": text, "table_teds": likeness}] for text, likeness in ((0.5, None), (0, 1))
    ]
    numbers = filled("document", *pages, [{"outcome": "unscored", "outcome_cause": "harness"}])["pass@1"]
    assert numbers == {"text_edit": 25.0, "overall_edit": 25.0, "table_teds": 100.0}
