# SPDX-License-Identifier: Apache-2.0
import math
import random
import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.base.errors import ConfigError, DataError, UnknownNameError
from newskills.base.judgement import parse_judgement
from newskills.base.protocols import Metric
from newskills.base.records import Row
from newskills.metrics import METRICS, make_metric
from newskills.metrics.counting.base import ScoreMetric

ANSWERS = st.sampled_from([None, "1", "2", "3"])


@st.composite
def problems(draw: st.DrawFn) -> list[list[Row]]:
    n = draw(st.integers(1, 5))
    record = st.fixed_dictionaries(
        {
            "symbolic_correct": st.booleans(),
            "predicted_answer": ANSWERS,
            "reward_model_score": st.integers(0, 3).map(float),
            "num_generated_tokens": st.integers(1, 9),
        }
    )
    return draw(st.lists(st.lists(record, min_size=n, max_size=n), min_size=1, max_size=5))


def metrics_of(data: list[list[Row]], name: str = "math", **options: Any) -> Metric:
    metric = make_metric(name, **options)
    for predictions in data:
        metric.update(predictions)
    return metric


def percent(values: Sequence[float]) -> Any:
    return pytest.approx(100 * sum(values) / len(values), abs=1e-9)


def scores_of(predictions: list[Row], k: int) -> list[int]:
    return [int(p["symbolic_correct"]) for p in predictions[:k]]


def brute_majority(predictions: list[Row], k: int) -> float:
    pairs = Counter(
        (p["predicted_answer"], p["symbolic_correct"])
        for p in predictions[:k]
        if p["predicted_answer"] is not None
    )
    if not pairs:
        return 0.0
    top = [score for (_, score), count in pairs.items() if count == max(pairs.values())]
    return sum(top) / len(top)


def brute_best(predictions: list[Row], k: int) -> float:
    answered = [p for p in predictions[:k] if p["predicted_answer"] is not None]
    return float(max(answered, key=lambda p: p["reward_model_score"])["symbolic_correct"]) if answered else 0.0


def brute_reward_majority(predictions: list[Row], k: int) -> float:
    rewards, scores = defaultdict(float), defaultdict(list)  # type: ignore[var-annotated]
    for p in predictions[:k]:
        if p["predicted_answer"] is not None:
            rewards[p["predicted_answer"]] += p["reward_model_score"]
            scores[p["predicted_answer"]].append(p["symbolic_correct"])
    return statistics.fmean(scores[max(rewards, key=rewards.get)]) if rewards else 0.0


@given(problems())
def test_every_mode_against_its_definition(data: list[list[Row]]) -> None:
    modes = metrics_of(data).metrics()
    n = len(data[0])
    assert len(modes) == n + 2 * (n - 1) + 2 * n
    for k in range(1, n + 1):
        draws = [[any(draw) for draw in combinations(scores_of(p, n), k)] for p in data]
        assert modes[f"pass@{k}"]["symbolic_correct"] == percent([statistics.fmean(d) for d in draws])
        missing = [all(s["predicted_answer"] is None for s in p[:k]) for p in data]
        assert modes[f"pass@{k}"]["no_answer"] == percent(missing)
        for mode, definition in (("rm_best", brute_best), ("rm_majority", brute_reward_majority)):
            assert modes[f"{mode}@{k}"]["symbolic_correct"] == percent([definition(p, k) for p in data])
        if k > 1:
            check_several(modes, data, k)
            assert modes[f"majority@{k}"]["no_answer"] == percent(missing)
    tokens = [statistics.fmean(s["num_generated_tokens"] for s in p) for p in data]
    assert all(abs(mode["avg_tokens"] - statistics.fmean(tokens)) < 1 for mode in modes.values())


def check_several(modes: dict[str, Row], data: list[list[Row]], k: int) -> None:
    assert modes[f"majority@{k}"]["symbolic_correct"] == percent([brute_majority(p, k) for p in data])
    average = modes[f"pass@1[avg-of-{k}]"]
    assert average["symbolic_correct"] == percent([statistics.fmean(scores_of(p, k)) for p in data])
    assert average["no_answer"] == percent([sum(s["predicted_answer"] is None for s in p[:k]) / k for p in data])
    runs = [statistics.fmean(scores_of(p, k)[i] for p in data) for i in range(k)]
    assert average["symbolic_correct_statistics"] == {
        "avg": pytest.approx(statistics.fmean(runs)),
        "std_dev_across_runs": pytest.approx(statistics.stdev(runs)),
        "avg_sample_std_dev": pytest.approx(statistics.fmean(statistics.stdev(scores_of(p, k)) for p in data)),
        "std_err_across_runs": pytest.approx(statistics.stdev(runs) / math.sqrt(k)),
    }


@given(problems(), st.randoms())
def test_pass_at_k_rises_with_k_and_does_not_know_the_order_of_seeds(
    data: list[list[Row]], random: random.Random
) -> None:
    def passes(shuffled: list[list[Row]]) -> list[float]:
        modes = metrics_of(shuffled).metrics()
        return [modes[f"pass@{k}"]["symbolic_correct"] for k in range(1, len(data[0]) + 1)]

    found = passes(data)
    assert found == sorted(found)
    order = random.sample(range(len(data[0])), len(data[0]))
    assert passes([[p[i] for i in order] for p in data]) == pytest.approx(found)


@given(problems(), st.data())
def test_an_unscored_sample_is_as_if_it_had_never_been_asked_for(
    data: list[list[Row]], draw: st.DataObject
) -> None:
    lost = {
        "outcome": "unscored",
        "outcome_cause": "provider",
        "symbolic_correct": False,
        "predicted_answer": None,
    }
    at = draw.draw(st.integers(0, len(data[0])))
    found = metrics_of([[*p[:at], p[0] | lost, *p[at:]] for p in data])
    without = metrics_of(data).metrics()
    for mode in [mode for mode in without if "avg" not in mode]:
        for key in ("symbolic_correct", "no_answer"):
            assert found.metrics()[mode][key] == pytest.approx(without[mode][key])
    n = len(data[0]) + 1
    assert "symbolic_correct" not in found.metrics()[f"pass@{n}"]
    assert found.metrics()["pass@1"]["unscored"] == pytest.approx(100 / n)
    assert found.numbers()["pass@1"]["symbolic_correct"].unscored == len(data)
    assert found.ledger().causes["provider"] == found.ledger().unscored == found.ledger().lost == len(data)


def record(correct: bool | None, answer: str = "1", **more: Any) -> dict[str, Any]:
    return {"symbolic_correct": correct, "predicted_answer": answer, **more}


def test_a_problem_with_too_few_scored_samples_is_left_out_of_pass_but_not_of_averages() -> None:
    metric = metrics_of(
        [[record(True), record(None, outcome="unscored", outcome_cause="timeout")], [record(False)] * 2]
    )
    numbers = metric.numbers()
    assert (numbers["pass@2"]["symbolic_correct"].value, numbers["pass@2"]["symbolic_correct"].n) == (0.0, 1)
    assert numbers["pass@1"]["symbolic_correct"].value == 50.0
    average = numbers["pass@1[avg-of-2]"]["symbolic_correct"]
    assert (average.value, average.n, average.unscored) == (50.0, 2, 1)
    assert metric.metrics()["pass@1"]["unscored"] == 25.0


def test_records_without_an_outcome_tell_by_their_fields_how_they_ended() -> None:
    ledger = metrics_of(
        [
            [record(True)],
            [record(False)],
            [record(False, None)],
            [record(False, None, finish_reason="length")],
            [record(False, None, error="server", generation="", num_generated_tokens=0)],
            [record(None)],
            [record(True, error="of the data set", num_generated_tokens=5)],
            [record(True, judgement="I am not sure.")],
            [record(True, outcome="an outcome of the data set")],
        ]
    ).ledger()
    assert (ledger.correct, ledger.wrong, ledger.no_answer, ledger.unscored) == (3, 1, 2, 3)
    assert ledger.causes == {"model": 2, "truncation": 1, "provider": 1, "grader": 1, "judge": 1}


def test_what_the_engine_wrote_comes_first() -> None:
    ledger = metrics_of(
        [
            [record(True, outcome="correct")],
            [record(False, outcome="wrong", outcome_cause="model")],
            [record(False, "0", outcome="no_answer", outcome_cause="truncation")],
            [record(None, None, outcome="unscored", outcome_cause="sandbox")],
        ]
    )
    assert ledger.ledger().causes == {"model": 1, "truncation": 1, "sandbox": 1}
    assert ledger.metrics()["pass@1"]["no_answer"] == pytest.approx(100 / 3)


def test_rules_and_judge_together() -> None:
    data = [
        [record(True, judgement="Judgement: Yes")],
        [record(True, judgement="Judgement: No")],
        [record(False, judgement="Judgement: Yes")],
        [record(False, judgement="hm")],
        [record(True, judgement="hm", outcome="unscored", outcome_cause="judge")],
    ]
    modes = metrics_of(data).metrics()["pass@1"]
    assert modes["symbolic_correct"] == pytest.approx(60)
    assert modes["judge_correct"] == pytest.approx(200 / 3)
    assert modes["both_correct"] == pytest.approx(25)
    assert modes["any_correct"] == pytest.approx(100)
    assert modes["unscored"] == pytest.approx(40)
    assert modes["judge_invalid"] == pytest.approx(40)
    assert modes["judge_agreement"] == pytest.approx(100 / 3)
    assert not {"judge_invalid", "judge_agreement"} & set(metrics_of([[record(True)]]).metrics()["pass@1"])


def test_one_sample_a_problem_has_a_wilson_interval_and_several_are_clustered() -> None:
    single = metrics_of([[record(True)], [record(False)]]).numbers()["pass@1"]["symbolic_correct"]
    assert (single.value, single.n, single.method) == (50.0, 2, "wilson")
    assert (single.low, single.high) == pytest.approx((9.45, 90.55), abs=0.01)
    several = metrics_of([[record(True), record(False)], [record(False)] * 2] * 5)
    number = several.numbers()["pass@1[avg-of-2]"]["symbolic_correct"]
    assert (number.value, number.n, number.method) == (25.0, 10, "cluster")
    assert several.metrics()["pass@1[avg-of-2]"]["symbolic_correct_interval"] == [number.low, number.high]


def test_common_columns() -> None:
    data = [
        [
            record(True, num_generated_tokens=10, generation_start_time=100.5, generation_end_time=101.0),
            record(True, num_generated_tokens=21, generation_start_time=103.0, generation_end_time=131.25),
        ],
        [record(True, num_generated_tokens=4, num_reasoning_tokens=3, num_answer_tokens=1)] * 2,
    ]
    metric = metrics_of(data)
    average = metric.metrics()["pass@1[avg-of-2]"]
    assert (average["num_entries"], average["avg_tokens"], average["gen_seconds"]) == (2, 9, 30)
    assert average["reasoning_tokens_statistics"]["avg"] == 3.0
    assert "reasoning_tokens" not in average
    assert metric.shown() == ("pass@1[avg-of-2]", "majority@2", "pass@2")
    assert metrics_of([[record(True)]]).shown() == ("pass@1",)
    assert metrics_of([[record(True, reward_model_score=1)] * 2]).shown()[2:4] == ("rm_best@2", "rm_majority@2")


@pytest.mark.parametrize(
    ("tokens", "mean"),
    [
        ([[7, 1, 1], [7, 7, 2], [4, 2, 5]], 4),
        ([[1, 1, 2], [2, 3, 3], [1, 1, 4], [1, 1, 1]], 1),
        ([[10**15, 10**15 + 1, 10**15 + 2]], 10**15 + 1),
    ],
)
def test_a_whole_mean_of_tokens_is_not_one_less(tokens: list[list[int]], mean: int) -> None:
    data = [[{"symbolic_correct": True, "num_generated_tokens": n} for n in row] for row in tokens]
    assert metrics_of(data).metrics()["pass@1"]["avg_tokens"] == mean


@given(st.lists(st.lists(st.integers(1, 9), min_size=3, max_size=3), min_size=1, max_size=9))
def test_the_mean_of_tokens_is_exact(tokens: list[list[int]]) -> None:
    data = [[{"symbolic_correct": True, "num_generated_tokens": n} for n in row] for row in tokens]
    mean = sum(map(sum, tokens)) // (3 * len(tokens))
    assert metrics_of(data).metrics()["pass@1"]["avg_tokens"] == mean


def test_whole_seconds_are_not_one_less() -> None:
    row = {"symbolic_correct": True, "generation_start_time": 1.1, "generation_end_time": 4.1}
    assert metrics_of([[row]]).metrics()["pass@1"]["gen_seconds"] == 3


def test_points_of_contests_are_summed_exactly() -> None:
    answer = {"name": "a", "is_correct": False, "test_case_results": {n: {"score": 0.1} for n in "0123456789"}}
    assert metrics_of([[answer]], "ioi").metrics()["pass@1"]["total_score"] == 1.0


def test_failed_requests_do_not_shorten_answers() -> None:
    lost = {"outcome": "unscored", "outcome_cause": "provider", "num_generated_tokens": 0}
    data = [[record(True, num_generated_tokens=10), lost], [lost, lost]]
    assert metrics_of(data).metrics()["pass@1"]["avg_tokens"] == 10


def test_nothing_scored_at_all() -> None:
    metric = metrics_of([[{"outcome": "unscored", "outcome_cause": "provider"}] * 2])
    modes = metric.metrics()
    assert list(modes) == ["pass@1", "pass@2", "pass@1[avg-of-2]"]
    assert all(row == {"num_entries": 1, "unscored": 100.0} for row in modes.values())
    assert metric.ledger().lost == 2


def test_the_incorrect_sample() -> None:
    metric = make_metric("multichoice")
    wrong = metric.incorrect(record(True, judgement="Judgement: Yes", num_generated_tokens=7))
    assert wrong["num_generated_tokens"] == 7
    modes = metrics_of([[wrong]]).metrics()["pass@1"]
    assert (modes["any_correct"], modes["no_answer"]) == (0.0, 100.0)
    assert metric.incorrect({}).keys().isdisjoint({"symbolic_correct", "judgement"})


def test_options() -> None:
    data = [[record(True, text="a"), record(False, text="a")]]
    modes = metrics_of(data, compute_no_answer=False, answer_key="text").metrics()
    assert modes["majority@2"]["symbolic_correct"] == 50.0
    assert "no_answer" not in modes["pass@1"]
    with pytest.raises(ConfigError, match="no option 'anser_key'; did you mean 'answer_key'"):
        make_metric("math", anser_key="x")


def test_problems_need_equally_many_samples() -> None:
    metric = metrics_of([[record(True)] * 2])
    with pytest.raises(DataError, match="Problem seven has 1 predictions, earlier ones have 2"):
        metric.update([record(True, id="seven")])


class Mine(ScoreMetric):
    score_fields = {"mine": float}  # noqa: RUF012
    headline = ("mine",)

    def scores(self, record: Row) -> dict[str, Any]:
        return {"mine": record["mine"]}

    def incorrect(self, prediction: Row) -> Row:
        return prediction | {"mine": 0.0}


def test_metrics_by_name() -> None:
    assert {"evalplus", "generic", "math", "multichoice"} <= set(METRICS.names())
    assert all(isinstance(make_metric(name), Metric) for name in METRICS.names())
    assert isinstance(make_metric(f"{__file__}::Mine"), Metric)
    with pytest.raises(UnknownNameError, match="did you mean 'math'"):
        make_metric("mathh")


def test_partial_credit_passes_by_its_best() -> None:
    modes = metrics_of(
        [[{"mine": 0.25}, {"mine": 0.5}], [{"mine": 0.5}, {"mine": 0.0}]], f"{__file__}::Mine"
    ).metrics()
    assert [modes[m]["mine"] for m in ("pass@1", "pass@2", "pass@1[avg-of-2]")] == pytest.approx([37.5, 50, 31.25])
    assert "majority@2" not in modes


def test_generic() -> None:
    data = [[{"is_correct": True}], [{"is_correct": False, "symbolic_correct": True}], [{"symbolic_correct": 0.5}]]
    assert metrics_of(data, "generic").metrics()["pass@1"]["accuracy"] == pytest.approx(50)
    outcomes = [[{"outcome": outcome}] for outcome in ("correct", "wrong", "no_answer", "unscored")]
    found = metrics_of(outcomes, "generic")
    assert found.metrics()["pass@1"]["accuracy"] == pytest.approx(100 / 3)
    assert found.ledger().unscored == 1
    wrong = make_metric("generic").incorrect({"is_correct": True, "num_generated_tokens": 9})
    assert metrics_of([[wrong]], "generic").metrics()["pass@1"]["accuracy"] == 0.0


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("Reasoning: they differ.\nJudgement: No", False),
        ("**Judgement:** Yes", True),
        ("judgement:\n\n**yes**.", True),
        ("Judgement: No. On reflection, Judgement: Yes", True),
        (r"so \boxed{Correct}", True),
        (r"\boxed{\text{Incorrect}}", False),
        ("<points>6 out of 7</points>", True),
        ("<points>5 out of 7</points>", False),
        ("Judgement: Nonsense", None),
        ("Judgement: unclear", None),
        ("", None),
        (None, None),
        (17, None),
    ],
)
def test_judgements(text: str | int | None, verdict: bool | None) -> None:
    assert parse_judgement(text) is verdict


def test_a_hostile_judgement_takes_linear_time() -> None:
    assert parse_judgement("judgement" + "*:" * 500_000 + "\\boxed {" * 100_000) is None
