# SPDX-License-Identifier: Apache-2.0
"""Of several benchmarks some fail, or cannot run here: told before any request, or beside the tables of the rest."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.commands import judged
from tests.commands.clusters import BENCHMARK, Place, answers
from tests.commands.running import ns
from tests.conftest import FakeServerFactory
from tests.run.support import make_unit, run
from tests.server import Fault, Script

from newskills.base.errors import ConfigError


def test_a_table_is_shown_for_those_that_ran(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    place = Place(tmp_path)
    (tmp_path / "more.py").write_text(
        BENCHMARK.replace("own-sums", "more-sums").replace("Add {n} and", "Shun {n} and")
    )
    assert place.ns("ns prepare_data ./more.py").returncode == 0
    usual = answers()
    fault = Fault(kind="status", status=400, message="not this one", marker="Shun 3")
    server = fake_server(Script(answer=usual.answer, faults=(fault,)), process=True)
    line = "ns eval --benchmarks=./sums.py,./more.py:2 --server_type=vllm --model=fake --output_dir=out"
    done = place.ns(f"{line} --server_address={server.url}")
    assert done.returncode == 1
    assert "own-sums" in done.stdout
    assert "100.00%" in done.stdout
    assert "not in the table, because it is not finished: more-sums" in done.stdout
    assert set(json.loads((tmp_path / "out/metrics.json").read_text())) == {"own-sums"}
    assert "more-sums-rs0: 1 of 10 rows got no answer" in done.stderr


@pytest.mark.parametrize(
    ("solver", "lacking", "install"),
    [
        ("conversation_calls", "bfcl_eval", "pip install --no-deps bfcl-eval"),
        ("memory_calls", "sentence_transformers", "pip install"),
    ],
)
def test_what_a_solver_lacks_is_told_before_the_first_request(
    tmp_path: Path,
    fake_server: FakeServerFactory,
    monkeypatch: pytest.MonkeyPatch,
    solver: str,
    lacking: str,
    install: str,
) -> None:
    monkeypatch.setitem(sys.modules, lacking, None)
    server = fake_server(answers())
    rows = [{"problem": f"Add {n}.", "tools": [], "setting": "", "sessions": []} for n in range(3)]
    (tmp_path / "input.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    config = {"memory": "vector"} if solver == "memory_calls" else {}
    usual = make_unit(tmp_path, server.base_url)
    other = make_unit(
        tmp_path,
        server.base_url,
        solver=solver,
        solver_config=config,
        output_file=str(tmp_path / "other" / "output.jsonl"),
    )
    with pytest.raises(ConfigError, match=install):
        run(usual, other)
    assert server.records == []
    assert not usual.merged.exists()


LIKELY = """
from newskills.base.benchmark import Benchmark

def rows(split):
    for n in range(30):
        yield {"id": f"l{n}", "context": f"{n} and", "continuations": [" one", " two"], "expected_answer": 0}

BENCHMARK = Benchmark(
    name="a-likely", category="reasoning", title="Likely", generate_rows=rows, prompt="generic/continuation",
    solver="loglikelihood", grader="loglikelihood", metric="loglikelihood",
)
"""


@pytest.mark.parametrize("echo", ["refused", "ignored"])
def test_what_the_server_cannot_do_is_found_before_the_first_row_and_hides_nothing(
    tmp_path: Path, fake_server: FakeServerFactory, echo: str
) -> None:
    place = Place(tmp_path)
    (tmp_path / "likely.py").write_text(LIKELY)
    (tmp_path / "judged.py").write_text(judged.BENCHMARK)
    assert place.ns("ns prepare_data ./likely.py ./judged.py").returncode == 0
    server = fake_server(Script(answer=answers().answer, echo=echo))
    judge = fake_server(judged.judging())
    done = place.ns(
        "ns eval --benchmarks=./likely.py,./sums.py,./judged.py --server_type=vllm --model=fake --output_dir=out "
        f"--server_address={server.url} --judge_server_type=vllm --judge_model=judge "
        f"--judge_server_address={judge.url} --accept_lost=20"
    )
    assert done.returncode == 1
    assert set(json.loads((tmp_path / "out/metrics.json").read_text())) == {"own-sums", "judged-sums"}
    assert not [record for record in server.records if " one" in record.prompt], "no row was asked"
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("Not finished: a-likely. a-likely: ")
    assert "echo" in last


def test_a_benchmark_whose_requests_are_all_refused_stops_alone(
    tmp_path: Path, fake_server: FakeServerFactory
) -> None:
    place = Place(tmp_path)
    (tmp_path / "more.py").write_text(
        BENCHMARK.replace("own-sums", "a-sums").replace("Add {n} and", "Shun {n} and").replace("10", "200")
    )
    assert place.ns("ns prepare_data ./more.py").returncode == 0
    fault = Fault(kind="status", status=400, message="not these", marker="Shun")
    server = fake_server(Script(answer=answers().answer, faults=(fault,)))
    done = place.ns(
        "ns eval --benchmarks=./more.py,./sums.py --server_type=vllm --model=fake --output_dir=out "
        f"--server_address={server.url} ++max_concurrent_requests=4"
    )
    assert done.returncode == 1
    assert set(json.loads((tmp_path / "out/metrics.json").read_text())) == {"own-sums"}
    assert "Not finished: a-sums. a-sums: the server refused each of the first 8 requests" in done.stderr
    assert len([record for record in server.records if "Shun" in record.prompt]) <= 16


def test_records_of_one_benchmark_that_are_broken_keep_no_other_from_its_numbers(tmp_path: Path) -> None:
    for name, text in (("fine", '{"id": 1, "symbolic_correct": true}\n'), ("broken", "{nothing\n")):
        (tmp_path / "eval-results" / name).mkdir(parents=True)
        (tmp_path / "eval-results" / name / "output.jsonl").write_text(text)
    done = ns(f"ns summarize_results {tmp_path} --metric_type=math", cwd=tmp_path)
    assert done.returncode == 2, done.stdout
    assert set(json.loads((tmp_path / "metrics.json").read_text())) == {"fine"}
    assert "broken has no numbers:" in done.stderr.strip().splitlines()[-1]
