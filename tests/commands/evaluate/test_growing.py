# SPDX-License-Identifier: Apache-2.0
"""Finished runs that get more seeds, or more rows: nothing that is there is asked again."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from tests.commands.running import ns, rows_of, write
from tests.conftest import FakeServerFactory
from tests.server import Answer, FakeServer, FakeServerProcess, Script

ROWS = [{"id": f"s{n}", "problem": f"Add {n} and {n}.", "expected_answer": str(2 * n)} for n in range(14)]
SCRIPT = Script(answer=Answer(kind="table", table={row["problem"]: row["expected_answer"] for row in ROWS}))
BENCHMARK = """
from newskills.base.benchmark import Benchmark

BENCHMARK = Benchmark(
    name="own-sums", category="math-natural", title="Sums", prompt="generic/math", grader="math", metric="math",
    generate_rows=lambda split: ({"id": f"s{n}", "problem": f"Add {n} and {n}.", "expected_answer": str(2 * n)}
        for n in range(10)),
)
"""


def asked(server: FakeServer | FakeServerProcess) -> Counter[int]:
    """Seed → requests."""
    return Counter(record.body["seed"] for record in server.records)


@pytest.mark.slow
def test_an_evaluation_gets_more_seeds_and_then_more_rows(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    (tmp_path / "sums.py").write_text(BENCHMARK)
    assert ns("ns prepare_data ./sums.py --data_dir data", cwd=tmp_path).returncode == 0
    server = fake_server(SCRIPT)
    line = (
        f"ns eval --server_type=vllm --model=fake --server_address={server.url} --output_dir=out --data_dir data"
    )
    folder = tmp_path / "out/eval-results/own-sums"

    def evaluate(seeds: int) -> dict[str, float]:
        done = ns(f"{line} --benchmarks ./sums.py:{seeds}", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        modes = json.loads((folder / "metrics.json").read_text())["own-sums"]
        return modes[f"majority@{seeds}"]

    assert evaluate(2)["num_entries"] == 10
    first = (folder / "output-rs0.jsonl").read_bytes()
    assert evaluate(4)["num_entries"] == 10
    assert asked(server) == dict.fromkeys(range(4), 10)
    assert (folder / "output-rs0.jsonl").read_bytes() == first
    (tmp_path / "sums.py").write_text(BENCHMARK.replace("range(10)", "range(14)"))
    assert ns("ns prepare_data ./sums.py --data_dir data", cwd=tmp_path).returncode == 0
    grown = evaluate(4)
    assert (grown["num_entries"], grown["symbolic_correct"]) == (14, 100.0)
    assert asked(server) == dict.fromkeys(range(4), 14)
    assert (folder / "output-rs0.jsonl").read_bytes().startswith(first)


def test_a_generation_gets_more_seeds_and_then_more_rows(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    write(tmp_path / "in.jsonl", ROWS[:3])
    server = fake_server(SCRIPT)
    line = (
        f"ns generate --server_type=vllm --model=fake --server_address={server.url} --input_file=in.jsonl "
        "--output_dir=out ++prompt_config=generic/math --postprocess_cmd 'echo x >> after'"
    )
    assert ns(f"{line} --num_random_seeds=2", cwd=tmp_path).returncode == 0
    assert ns(f"{line} --num_random_seeds=3", cwd=tmp_path).returncode == 0
    assert asked(server) == dict.fromkeys(range(3), 3)
    before = len((tmp_path / "after").read_text())
    write(tmp_path / "in.jsonl", ROWS[:5])
    done = ns(f"{line} --num_random_seeds=3", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "3 of 3 answers are kept, 2 rows are generated" in " ".join(done.stderr.split())
    assert asked(server) == dict.fromkeys(range(3), 5)
    assert [row["id"] for row in rows_of(tmp_path / "out/output-rs2.jsonl")] == [row["id"] for row in ROWS[:5]]
    assert len((tmp_path / "after").read_text()) > before
    write(tmp_path / "in.jsonl", ROWS[:4])
    less = ns(f"{line} --num_random_seeds=3", cwd=tmp_path)
    assert less.returncode != 0
    assert "now has 4 rows, but" in " ".join(less.stderr.split())
