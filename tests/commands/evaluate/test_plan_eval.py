# SPDX-License-Identifier: Apache-2.0
import json
import random
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import ns
from tests.conftest import FakeServerFactory
from tests.server import Answer, Script
from tests.view.comparison.runs import record, write_run

import newskills
from newskills.base.errors import ConfigError, DataError

BENCHMARK = """
from newskills.base.benchmark import Benchmark

def rows(split):
    for n in range(300):
        yield {"id": f"s{n}", "problem": f"Add {n} and {n}.", "expected_answer": str(n % 3)}

BENCHMARK = Benchmark(
    name="own-sums", category="math-natural", title="Sums", generate_rows=rows, prompt="generic/math",
    grader="math", metric="math", samples=0,
)
"""


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    draw = random.Random(5)
    chances = [draw.random() for _ in range(20)]
    for name, gain in (("base", 0.0), ("tuned", 0.1)):
        rows = {s: [record(i, draw.random() < p + gain) for i, p in enumerate(chances)] for s in range(4)}
        run = write_run(tmp_path / name, rows, facts={"data": {"sha256": "d" * 64, "rows": 1319}})
        for path in run.rglob("*.run.json"):
            state = json.loads(path.read_text())
            state |= {"input_tokens": 2000, "output_tokens": 8000, "cost": 0.02, "started": 100.0, "ended": 160.0}
            path.write_text(json.dumps(state))
    return tmp_path


def test_a_plan_from_a_probe_of_twenty_problems(runs: Path) -> None:
    shown = ns("ns plan_eval base --delta 2", cwd=runs)
    assert shown.returncode == 0, shown.stderr
    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert "The benchmark has 1,319 problems" in shown.stdout
    (plan,) = json.loads(ns("ns plan_eval base --delta 2 --seeds 1,8 --json", cwd=runs).stdout)
    one, eight = plan["rows"]
    assert (one["samples"], eight["samples"]) == (1, 8)
    assert one["problems"] > eight["problems"] > one["problems"] / 8
    assert one["tokens"] == pytest.approx(one["problems"] * 500)
    assert one["seconds"] == pytest.approx(one["problems"] * 3)
    assert one["money"] == pytest.approx(one["problems"] * 0.001)
    assert one["available"] == (one["problems"] <= 1319)


def test_two_runs_prices_and_unpaired(runs: Path) -> None:
    folders = [str(runs / name) for name in ("base", "tuned")]
    (paired,) = newskills.plan_eval(runs=folders, delta=3.0, prices="1,2", seeds="4")
    (apart,) = newskills.plan_eval(runs=folders, delta=3.0, paired=False, seeds="4")
    assert paired.rows[0].money == pytest.approx(paired.rows[0].problems * 4 * (100 + 2 * 400) / 1e6)
    assert apart.rows[0].problems > paired.rows[0].problems
    assert "two runs over 20 problems" in paired.basis


def test_one_discordant_pair_of_200_does_not_promise_much(tmp_path: Path) -> None:
    folders = [
        str(write_run(tmp_path / name, {None: [record(i, i >= lost) for i in range(200)]}))
        for name, lost in (("base", 1), ("tuned", 0))
    ]
    (plan,) = newskills.plan_eval(runs=folders, delta=1.0, seeds="1")
    assert plan.rows[0].problems >= 785
    assert "1 of them differ, so at most 2.3 % do" in plan.basis
    shown = ns("ns plan_eval base tuned --delta 1", cwd=tmp_path).stdout
    assert "exact McNemar for one sample" in " ".join(shown.split())


def test_without_a_run(runs: Path) -> None:
    shown = ns("ns plan_eval --accuracy 60 --delta 2 --no_paired --seeds 1", cwd=runs)
    assert "9,421" in shown.stdout
    assert "give a run, or --benchmarks and --model for a probe" in " ".join(shown.stdout.split())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"delta": 2.0}, "either folders of results or --accuracy"),
        ({"delta": 2.0, "benchmarks": "gsm8k"}, "--benchmarks and --model for a probe"),
        ({"delta": 2.0, "accuracy": 60.0, "seeds": "0"}, "whole numbers from 1"),
        ({"delta": 2.0, "accuracy": 60.0, "prices": "1"}, "two numbers are expected"),
    ],
)
def test_what_makes_no_sense(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        newskills.plan_eval(**options)


def test_nothing_to_plan_from(runs: Path) -> None:
    (runs / "empty").mkdir()
    with pytest.raises(DataError, match="has no results"):
        newskills.plan_eval(runs=[str(runs / "empty")], delta=2.0)
    write_run(runs / "single", {None: [record(0, True)]})
    with pytest.raises(DataError, match="nothing to plan from"):
        newskills.plan_eval(runs=[str(runs / "single")], delta=2.0)
    single = write_run(runs / "plain", {None: [record(i, i % 2 == 0) for i in range(10)]})
    (plan,) = newskills.plan_eval(runs=[str(single)], delta=5.0)
    assert "half of which is taken to be chance" in plan.basis
    assert plan.rows[0].tokens is None


@pytest.fixture
def own_sums(tmp_path: Path) -> Path:
    (tmp_path / "sums.py").write_text(BENCHMARK)
    done = ns("ns prepare_data ./sums.py --data_dir data", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return tmp_path


def test_a_probe_of_its_own_where_there_is_no_run(own_sums: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=Answer(kind="random", template=r"\\boxed{%s}", modulus=3)))
    line = (
        "ns plan_eval --delta 5 --benchmarks ./sums.py:2 --model fake --server_type vllm --data_dir data --seeds 1,4 "
        f"--server_address {server.url} ++max_concurrent_requests=4 --prices 1000,2000"
    )
    shown = ns(line, cwd=own_sums)
    assert shown.returncode == 0, shown.stderr
    assert "own-sums: to detect a difference of 5 points" in shown.stdout
    assert "The benchmark has 300 problems" in shown.stdout
    assert "one run over 20 problems" in shown.stdout
    asked = len(server.records)
    assert asked == 40
    (plan,) = json.loads(ns(line + " --json", cwd=own_sums).stdout)
    assert len(server.records) == asked
    state = json.loads(next((own_sums / "results/probe").rglob("output-rs0.jsonl.run.json")).read_text())
    assert plan["cost"]["output_tokens"] == pytest.approx(state["output_tokens"] / state["done"], rel=0.3)
    one, four = plan["rows"]
    assert one["money"] > 0
    assert one["seconds"] > 0
    assert one["problems"] > four["problems"]
