# SPDX-License-Identifier: Apache-2.0
"""`ns eval --until`: stops early, says so, goes on without it."""

import json
from pathlib import Path

import pytest
from tests.commands.running import ns, rows_of
from tests.conftest import FakeServerFactory
from tests.server import Answer, FakeServer, FakeServerProcess, Fault, Script
from tests.server.script import Latency

from newskills.run.planning.until import random_order

ROWS = 600
BENCHMARK = f"""
from newskills.base.benchmark import Benchmark

def rows(split):
    for n in range({ROWS}):
        yield {{"id": f"s{{n}}", "problem": f"Add {{n}} and {{n}}.", "expected_answer": str(2 * n)}}

BENCHMARK = Benchmark(
    name="own-sums", category="math-natural", title="Sums", generate_rows=rows, prompt="generic/math",
    grader="math", metric="math", samples=0,
)
"""


def solved(share: float) -> Script:
    """A model that solves the first problems of the file, and none of the others.

    So slow that verdicts come before the last replies, also on a loaded machine.
    """
    right = {f"Add {n} and {n}.": str(2 * n) for n in range(round(share * ROWS))}
    return Script(answer=Answer(kind="table", table=right, text="I do not know."), latency=Latency(fixed=0.1))


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "sums.py").write_text(BENCHMARK)
    done = ns("ns prepare_data ./sums.py --data_dir data", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return tmp_path


def line(server: FakeServer | FakeServerProcess, *options: str, out: str = "out", seeds: str = "") -> str:
    address = f"--server_type=vllm --model=fake --server_address={server.url} --output_dir={out}"
    return f"ns eval --benchmarks ./sums.py{seeds} {address} --data_dir data " + " ".join(options)


def folder_of(here: Path, out: str = "out") -> Path:
    return here / out / "eval-results/own-sums"


def test_it_stops_says_so_and_goes_on_without_the_rule(here: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(solved(0.5))
    until = line(server, "--until 'ci<10'")
    done = ns(until, cwd=here)
    assert done.returncode == 0, done.stderr
    folder = folder_of(here)
    metrics = json.loads((folder / "metrics.json").read_text())["own-sums"]["pass@1"]
    record = metrics["until"]
    assert record["met"]
    assert record["of"] == ROWS
    assert 150 < record["rows"] < 400
    assert record["method"].startswith("anytime-valid")
    low, high = metrics["symbolic_correct_interval"]
    assert (low, high) == pytest.approx((record["low"], record["high"]), abs=0.01)
    assert 0 < (high - low) / 2 < 10
    assert low < 50 < high
    number = json.loads((folder / "metrics_extended.json").read_text())["own-sums"]["numbers"]["pass@1"]
    assert number["symbolic_correct"]["method"] == "anytime"
    assert f"was met after {record['rows']} of 600 problems" in done.stdout

    counted = [row["id"] for row in rows_of(folder / "output.jsonl")]
    assert counted == [f"s{n}" for n in sorted(random_order(ROWS)[: record["rows"]])]
    asked = len(server.records)
    assert record["rows"] <= asked <= 1.2 * record["rows"]
    assert not (folder / "output.jsonl.done").exists()
    assert json.loads((folder / "output.jsonl.run.json").read_text())["status"] == "stopped_early"

    again = ns(until, cwd=here)
    assert again.returncode == 0, again.stderr
    assert len(server.records) == asked
    assert json.loads((folder / "metrics.json").read_text())["own-sums"]["pass@1"]["until"] == record

    rest = ns(line(server), cwd=here)
    assert rest.returncode == 0, rest.stderr
    assert len(server.records) == ROWS
    whole = json.loads((folder / "metrics.json").read_text())["own-sums"]["pass@1"]
    assert whole["num_entries"] == ROWS
    assert whole["symbolic_correct"] == 50
    assert "until" not in whole
    assert len(rows_of(folder / "output.jsonl")) == ROWS
    assert (folder / "output.jsonl.done").exists()


def test_decided_against_another_run_with_seeds(here: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(solved(0.4))
    assert ns(line(server, out="base"), cwd=here).returncode == 0
    server.script = solved(0.7)
    done = ns(line(server, "--until 'decided vs base'", "++max_concurrent_requests=8", seeds=":2"), cwd=here)
    assert done.returncode == 0, done.stderr
    assert "better, by" in done.stdout
    metrics = json.loads((folder_of(here) / "metrics.json").read_text())["own-sums"]["pass@1[avg-of-2]"]
    record = metrics["until"]
    assert record["decision"] == "better"
    assert record["low"] > 0
    assert record["rows"] < 200
    assert metrics["num_entries"] == record["rows"]
    compared = ns("ns compare base out", cwd=here)
    assert "stopped early" in compared.stdout + compared.stderr


def test_no_difference_is_never_decided(here: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(solved(0.4))
    assert ns(line(server, out="base"), cwd=here).returncode == 0
    done = ns(line(server, "--until 'decided vs base'"), cwd=here)
    assert done.returncode == 0, done.stderr
    assert "was not met by all 600 problems: not decided" in done.stdout
    record = json.loads((folder_of(here) / "until.json").read_text())
    assert not record["met"]
    assert record["rows"] == ROWS
    assert record["value"] == 0


@pytest.mark.parametrize(("seeds", "samples"), [("", 1), (":3", 3)])
def test_a_few_random_problems_and_no_request_more(
    here: Path, fake_server: FakeServerFactory, seeds: str, samples: int
) -> None:
    server = fake_server(solved(0.5))
    done = ns(line(server, "--until rows=20", seeds=seeds), cwd=here)
    assert done.returncode == 0, done.stderr
    assert len(server.records) == 20 * samples
    for file in folder_of(here).glob("output*.jsonl"):
        assert {row["id"] for row in rows_of(file)} == {f"s{n}" for n in random_order(ROWS)[:20]}
    assert "was met after 20 of 600 problems" in done.stdout
    assert ns(line(server, "--until rows=20", seeds=seeds), cwd=here).returncode == 0
    assert len(server.records) == 20 * samples
    assert ns(line(server, "--until rows=30", seeds=seeds), cwd=here).returncode == 0
    assert len(server.records) == 30 * samples


def test_a_failed_request_is_asked_again_by_the_next_run_and_replaced_by_no_other(
    here: Path, fake_server: FakeServerFactory
) -> None:
    first = random_order(ROWS)[0]
    refused = Fault(kind="status", status=400, marker=f"Add {first} and {first}.")
    server = fake_server(Script(answer=solved(0.5).answer, faults=[refused]))
    done = ns(line(server, "--until rows=20"), cwd=here)
    assert done.returncode == 1, done.stderr
    assert "1 of 600 rows got no answer" in done.stderr
    assert len({request.prompt for request in server.records}) == 20
    server.script = solved(0.5)
    assert ns(line(server, "--until rows=20"), cwd=here).returncode == 0
    assert len({request.prompt for request in server.records}) == 20


def test_a_promise_that_other_seeds_break_is_refused(here: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(solved(0.5))
    assert ns(line(server, seeds=":1"), cwd=here).returncode == 0
    done = ns(line(server, "--until rows=20", seeds=":2"), cwd=here)
    assert done.returncode == 2
    assert "1 of 2 seeds are finished, with all 600 problems" in done.stderr
    assert len(server.records) == ROWS


def test_a_rule_that_cannot_be_met_says_so_before_and_after(here: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(solved(0.5))
    done = ns(line(server, "--until 'ci<2'"), cwd=here)
    assert done.returncode == 0, done.stderr
    assert "may not be met: at a score of 50 % all 600 problems give ±7.0 points" in done.stderr
    assert "was not met by all 600 problems" in done.stdout
    assert "±7.0" in done.stdout


def test_a_probe_asks_as_many_as_it_says(here: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(solved(0.5))
    address = f"--server_type=vllm --model=fake --server_address={server.url} --data_dir data"
    done = ns(f"ns plan_eval --benchmarks ./sums.py:4 {address} --delta 5", cwd=here)
    assert done.returncode == 0, done.stderr
    assert "probe of 20 problems" in done.stderr
    assert len(server.records) == 80


def test_killed_on_the_way_it_goes_on(here: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=solved(0.5).answer, faults=[Fault(kind="status", status=401, after=60)]))
    until = line(server, "--until 'ci<10'", "++max_concurrent_requests=4")
    assert ns(until, cwd=here).returncode == 1
    server.script = solved(0.5)
    done = ns(until, cwd=here)
    assert done.returncode == 0, done.stderr
    assert json.loads((folder_of(here) / "until.json").read_text())["met"]
    assert len({request.prompt for request in server.records}) < 400


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--until 'ci=3'", "is not a rule"),
        ("--until 'decided vs nowhere'", "nowhere"),
        ("--until 'ci<3' --num_chunks 2", "cannot be cut into chunks"),
        ("--until 'ci<3' --single_node_mode=sequential", "sequential"),
        ("--until 'ci<3' --judge_all --judge_model=x --judge_server_type=openai", "judged afterwards"),
    ],
)
def test_what_cannot_be_is_refused(here: Path, fake_server: FakeServerFactory, options: str, said: str) -> None:
    server = fake_server()
    done = ns(line(server, options), cwd=here)
    assert done.returncode == 2
    assert said in done.stderr
    assert not server.records


def test_the_order_has_nothing_to_do_with_the_file() -> None:
    order = random_order(1000)
    assert sorted(order) == list(range(1000))
    assert order == random_order(1000)
    assert 400 < sum(order[:200]) / 200 < 600
