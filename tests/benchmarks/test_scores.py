# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import ast
import importlib.util
import random
from pathlib import Path
from typing import Any

import pytest

from newskills.benchmarks import expand_benchmarks, get_group
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
    found = {benchmark.name: benchmark for benchmark in expand_benchmarks("aai")}
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


def test_both_parts_of_mmmu_pro_weigh_the_same() -> None:
    group = get_group("mmmu-pro-overall")
    assert group is not None
    assert group.score is not None
    parts = {
        "mmmu-pro": {"pass@1": {"symbolic_correct": 40.0, "num_entries": 10}},
        "mmmu-pro-standard": {"pass@1[avg-of-4]": {"symbolic_correct": 60.0, "num_entries": 1730}},
    }
    assert group.score(parts) == {"overall": 50.0, "vision": 40.0, "standard": 60.0}


def leaderboard_sums() -> dict[str, Any]:
    """The sums of the leaderboard's own library; its module itself imports the clients of all models."""
    spec = importlib.util.find_spec("bfcl_eval")
    if spec is None or spec.origin is None:
        pytest.skip("needs bfcl-eval")
    path = Path(spec.origin).parent / "eval_checker" / "eval_runner_helper.py"
    wanted = {
        "calculate_unweighted_accuracy", "calculate_weighted_accuracy", "calculate_percentage_weighted_accuracy",
    }  # fmt: skip
    tree = ast.parse(path.read_text())
    tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in wanted]
    found: dict[str, Any] = {}
    exec(compile(tree, str(path), "exec"), found)  # three functions of an installed library
    assert wanted <= found.keys()
    return found


def test_the_score_of_the_function_calling_leaderboard() -> None:
    group = get_group("bfcl_v4")
    assert group is not None
    assert group.score is not None
    counts = {benchmark.name: benchmark.items["test"] for benchmark in expand_benchmarks("bfcl_v4")}
    assert len(counts) == len(group.members) == 22
    chance = random.Random(3)
    values = {name: chance.random() for name in group.members}
    ours = group.score(
        {
            name: {"pass@1": {"num_entries": counts[name], "accuracy": 100 * value}}
            for name, value in values.items()
        }
    )
    sums = leaderboard_sums()

    def of(*names: str) -> list[dict[str, Any]]:
        return [
            {"accuracy": value, "display_accuracy": value, "total_count": counts[f"bfcl_v4.{name}"]}
            for name in names
            for value in [values[f"bfcl_v4.{name}"]]
        ]

    mean_of, weighted_of = sums["calculate_unweighted_accuracy"], sums["calculate_weighted_accuracy"]
    simple = mean_of(of("simple_python", "simple_java", "simple_javascript"))
    non_live = mean_of([simple, *of("multiple", "parallel", "parallel_multiple")])
    live = weighted_of(of("live_simple", "live_multiple", "live_parallel", "live_parallel_multiple"))
    turns = mean_of(of(*(name.partition(".")[2] for name in group.members if ".multi_turn" in name)))
    searched = mean_of(of("web_search_base", "web_search_no_snippet"))
    agents = mean_of([searched, mean_of(of("memory_kv", "memory_vector", "memory_rec_sum"))])
    restraint = mean_of(of("irrelevance", "live_irrelevance"))
    overall = sums["calculate_percentage_weighted_accuracy"](
        [non_live, live, restraint, turns, agents], [10, 10, 10, 30, 40]
    )
    assert ours["overall_accuracy"] == pytest.approx(100 * overall["accuracy"])
    assert ours["overall_agentic"] == pytest.approx(100 * agents["accuracy"])
    assert ours["overall_live"] == pytest.approx(100 * live["accuracy"])
    assert ours["overall_non_live"] == pytest.approx(100 * non_live["accuracy"])
