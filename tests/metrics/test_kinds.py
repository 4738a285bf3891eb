# SPDX-License-Identifier: Apache-2.0
"""Metrics that are no plain average: verdicts and their ratios, refusals, biases, HotpotQA's filtered modes."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from tests.graders.plain import plain_grader

from newskills.base.protocols import Metric
from newskills.base.records import Row
from newskills.metrics import make_metric
from newskills.metrics.verdicts import RatioTerm, ratio_of_sums


def filled(name: str, *problems: list[Row]) -> Metric:
    metric = make_metric(name)
    for problem in problems:
        metric.update(problem)
    return metric


def values(metric: Metric, mode: str = "pass@1") -> dict[str, float]:
    return {name: number.value for name, number in metric.numbers()[mode].items()}


def facts(verdict: str | None, outcome: str | None = None) -> list[Row]:
    return [{"verdict": verdict, "judgement": "…", **({"outcome": outcome} if outcome else {})}]


def test_simpleqa_scores() -> None:
    metric = filled("simpleqa", *[facts("correct")] * 3, *[facts("incorrect")] * 1, *[facts("not_attempted")] * 4)
    found = values(metric)
    assert found["correct"] == pytest.approx(37.5)
    assert found["incorrect"] == pytest.approx(12.5)
    assert found["not_attempted"] == pytest.approx(50)
    assert found["accuracy_given_attempted"] == pytest.approx(75)
    assert found["f1"] == pytest.approx(100 * 2 * 0.375 * 0.75 / (0.375 + 0.75))
    assert metric.metrics()["pass@1"]["f1"] == found["f1"]


def test_verdicts_are_read_from_texts_of_others() -> None:
    metric = filled("simpleqa", [{"judgement": "CORRECT"}], [{"judgement": "B"}], [{"judgement": "no idea"}])
    assert values(metric)["correct"] == pytest.approx(50), "the third is lost, not wrong"
    assert metric.numbers()["pass@1"]["correct"].unscored == 1
    assert metric.ledger().unscored == 1


def test_nothing_attempted_has_no_accuracy() -> None:
    found = values(filled("simpleqa", facts("not_attempted")))
    assert found["f1"] == 0.0
    assert "accuracy_given_attempted" not in found


def test_omniscience_index() -> None:
    verdicts = ["correct"] * 4 + ["incorrect"] * 2 + ["partially_correct"] + ["abstained"] * 3
    found = values(filled("omniscience", *map(facts, verdicts)))
    assert found["judge_correct"] == pytest.approx(40)
    assert found["judge_abstained"] == pytest.approx(30)
    assert found["judge_omni_index"] == pytest.approx(100 * (4 - 2) / 10)
    assert found["judge_omni_hallucination"] == pytest.approx(100 * 2 / 6)


def test_ratios_over_several_samples() -> None:
    metric = filled("simpleqa", facts("correct") + facts("incorrect"), facts("not_attempted") * 2)
    average = values(metric, "pass@1[avg-of-2]")
    assert average["correct"] == pytest.approx(25)
    assert average["accuracy_given_attempted"] == pytest.approx(50)
    assert "f1" not in values(metric, "pass@2"), "a best of several is no share"


def test_intervals_of_ratios_hold_what_they_promise() -> None:
    generator = random.Random(1)
    parts = (RatioTerm("correct", 2, 2), RatioTerm("incorrect", 0, 2), RatioTerm("none", 0, 1))
    truth = 100 * 2 * 0.4 / (2 * 0.4 + 2 * 0.3 + 0.3)
    hits = 0
    for _ in range(400):
        drawn = generator.choices(("correct", "incorrect", "none"), (0.4, 0.3, 0.3), k=200)
        number = ratio_of_sums({name: drawn.count(name) / 200 for name in set(drawn)}, parts, 200)
        assert number is not None
        hits += number.low <= truth <= number.high
    assert 0.91 <= hits / 400 <= 0.985


def refusal(label: str, verdict: str | None) -> list[Row]:
    return [{"label": label, "verdict": verdict, "outcome": "unscored" if verdict is None else "correct"}]


def test_refusals_by_what_should_be_refused() -> None:
    metric = filled(
        "refusal",
        refusal("unsafe", "refused"),
        refusal("unsafe", "partly_refused"),
        refusal("unsafe", "complied"),
        refusal("unsafe", "complied"),
        refusal("safe", "complied"),
        refusal("safe", "refused"),
        refusal("safe", "complied"),
    )
    numbers = metric.numbers()["pass@1"]
    assert numbers["refusal_rate"].value == pytest.approx(50)
    assert numbers["over_refusal_rate"].value == pytest.approx(100 / 3)
    assert (numbers["refusal_rate"].n, numbers["over_refusal_rate"].n) == (4, 3)
    assert numbers["refusal_rate"].unscored == 0, "problems of the other kind are not lost"


def test_lost_refusals_are_counted() -> None:
    metric = filled("refusal", refusal("safe", "complied"), refusal("safe", None))
    numbers = metric.numbers()["pass@1"]
    assert numbers["over_refusal_rate"].value == 0.0
    assert numbers["over_refusal_rate"].unscored == 1


def bbq(condition: str, predicted: str | None, expected: str) -> list[Row]:
    """A is the stereotype, B its opposite, C unknown."""
    correct = predicted == expected
    row: Row = {
        "context_condition": condition,
        "predicted_answer": predicted,
        "symbolic_correct": correct,
        "stereotyped_answer": "A",
        "unknown_answer": "C",
        "outcome": "correct" if correct else "wrong" if predicted else "no_answer",
    }
    return [row]


def test_bias_scores() -> None:
    metric = filled(
        "bbq",
        *[bbq("disambig", "A", "A")] * 3,
        bbq("disambig", "B", "B"),
        bbq("disambig", "C", "B"),
        bbq("ambig", "A", "C"),
        bbq("ambig", "C", "C"),
        bbq("ambig", "C", "C"),
        bbq("ambig", None, "C"),
    )
    found = values(metric)
    assert found["accuracy_disambiguated"] == pytest.approx(80)
    assert found["accuracy_ambiguous"] == pytest.approx(50)
    assert found["bias_disambiguated"] == pytest.approx(100 * (2 * 3 / 4 - 1))
    assert found["bias_ambiguous"] == pytest.approx(100 / 3)


def hotpot(em: float, reliable: bool, **more: Any) -> list[Row]:
    return [{"answer_em": em, "answer_f1": em, "is_correct": bool(em), "reliable": reliable, **more}]


def test_filtered_modes() -> None:
    metric = filled("hotpotqa", hotpot(1.0, True), hotpot(0.0, False), hotpot(1.0, True), hotpot(0.0, True))
    assert values(metric)["answer_em"] == pytest.approx(50)
    assert values(metric, "filtered_pass@1")["answer_em"] == pytest.approx(200 / 3)
    assert metric.metrics()["filtered_pass@1"]["num_entries"] == 3
    assert metric.shown() == ("pass@1", "filtered_pass@1")
    assert "sp_em" not in values(metric)
    alone = filled("hotpotqa_closedbook", hotpot(1.0, False))
    assert list(alone.numbers()) == ["pass@1"]


def test_short_answers_and_lost_ones() -> None:
    metric = filled("short_answer", [{"em": 1.0, "f1": 1.0}], [{"em": 0.0, "f1": 0.5}], [{"outcome": "unscored"}])
    assert values(metric)["em"] == pytest.approx(50)
    assert values(metric)["f1"] == pytest.approx(75)
    assert math.isclose(values(filled("short_answer", [{"anls": 0.75}]))["anls"], 75)


@pytest.mark.parametrize(
    "name", ["simpleqa", "omniscience", "refusal", "bbq", "hotpotqa", "short_answer", "loglikelihood"]
)
def test_too_long_generations_count_as_wrong(name: str) -> None:
    metric = make_metric(name)
    rows: dict[str, Row] = {
        "refusal": {"label": "unsafe", "verdict": "refused", "outcome": "correct"},
        "bbq": bbq("ambig", "C", "C")[0],
        "hotpotqa": hotpot(1.0, True)[0],
        "short_answer": {"em": 1.0, "outcome": "correct"},
        "loglikelihood": {"acc": True, "continuations": [" a", " b"], "outcome": "correct"},
    }
    row = rows.get(name, {"verdict": "correct", "judgement": "A", "outcome": "correct"})
    metric.update([metric.incorrect(row)])
    assert metric.ledger().correct == 0


def test_harm_and_refusals_of_forbidden_requests() -> None:
    graded = [("1.b 1\n2.b 1\n3.b 1", 0.0), ("1.b 0\n2.b 5\n3.b 5", 1.0), ("1.b 0\n2.b 3\n3.b 2", 0.375)]
    metric = make_metric("strongreject")
    for text, harm in graded:
        score = plain_grader("strongreject", {}).grade({"judgement": text})
        assert score.fields["strongreject_score"] == harm
        metric.update([{**score.fields, "outcome": score.outcome, "outcome_cause": score.cause}])
    found = values(metric)
    assert found["strongreject_score"] == pytest.approx(100 * 1.375 / 3)
    assert found["refusal_rate"] == pytest.approx(100 / 3)
    assert metric.ledger().correct == 1
    assert metric.metrics()["pass@1"]["strongreject_score"] == found["strongreject_score"]
    cut = filled("strongreject", [metric.incorrect({"strongreject_score": 0.0, "refused": True})])
    assert (values(cut)["strongreject_score"], values(cut)["refusal_rate"]) == (100, 0), "the worst that there is"


def test_two_continuations_are_several() -> None:
    likely: Row = {"acc": False, "acc_norm": True, "continuations": [" a", " b"], "outcome": "wrong"}
    assert values(filled("loglikelihood", [likely])) == {"acc": 0, "acc_norm": 100}
    alone: Row = {
        "acc": True,
        "acc_norm": True,
        "continuations": [" a"],
        "outcome": "correct",
        "loglikelihood": -2.0,
    }
    assert values(filled("loglikelihood", [alone])) == {"acc": 100, "perplexity": pytest.approx(math.exp(2))}
