# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from newskills.benchmarks import expand, get_group
from newskills.benchmarks.scores import entries, headline, mean, weighted

ONE = {"pass@1": {"num_entries": 10, "accuracy": 50.0}}
MANY = {
    "pass@2": {"num_entries": 30, "accuracy": 99.0},
    "pass@1[avg-of-2]": {"num_entries": 30, "accuracy": 60.0},
    "pass@1[avg-of-10]": {"num_entries": 30, "accuracy": 70.0},
}


def test_the_headline_is_the_longest_average() -> None:
    assert headline(ONE, "accuracy") == 50.0
    assert headline(MANY, "accuracy") == 70.0
    with pytest.raises(KeyError):
        headline(ONE, "bleu")


def test_means() -> None:
    assert mean([1.0, 2.0]) == 1.5
    assert (entries(ONE), entries(MANY)) == (10, 30)
    assert weighted([ONE, MANY], "accuracy") == 65.0
    with pytest.raises(ValueError, match="nothing"):
        mean([])
    with pytest.raises(ValueError, match="nothing"):
        weighted([], "accuracy")


def test_the_index_of_eight_benchmarks() -> None:
    group = get_group("aai")
    assert group is not None
    assert group.score is not None
    found = {benchmark.name: benchmark for benchmark in expand("aai")}
    assert found["aai.aime25"].samples == 10
    assert all(benchmark.defaults["inference.temperature"] == 0.0 for benchmark in found.values())
    assert all(benchmark.split in benchmark.splits() for benchmark in found.values())
    names = ("symbolic_correct", "judge_correct", "subtask_accuracy", "accuracy", "average_score")
    values = dict(zip(group.members, (10.0, 20.0, 30.0, 40.0, 50.0, 70.0, 80.0, 100.0), strict=True))
    modes = {
        member: {"pass@1": dict.fromkeys(names, 0.0), "pass@1[avg-of-3]": dict.fromkeys(names, value)}
        for member, value in values.items()
    }
    score = group.score(modes)
    assert (score["overall_score"], score["math_score"], score["code_score"]) == (50.0, 40.0, 60.0)
