# SPDX-License-Identifier: Apache-2.0
"""Rows as people have them, at every door where a person's own rows come in."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from tests.base.reading.row_forms import FORMS, json_lines
from tests.commands.running import ns, rows_of
from tests.conftest import FakeServerFactory
from tests.night import by_day
from tests.server import Answer, Script

ROWS = [{"id": f"sum-{n}", "problem": f"What is {n} + {n}?", "expected_answer": str(2 * n)} for n in range(12)]
ANSWERED = [{**row, "generation": f"It is \\boxed{{{row['expected_answer']}}}."} for row in ROWS]
TABLE = Script(answer=Answer(kind="table", table={row["problem"]: row["expected_answer"] for row in ROWS}))
OWN = 'METRICS_TYPE = "math"\nGENERATION_ARGS = "++prompt_config=generic/math ++eval_type=math"\n'


def make(folder: Path, name: str, rows: list[dict[str, str]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(FORMS[name](rows))
    return folder / name


@pytest.mark.parametrize("name", by_day(FORMS, [*FORMS][::3]))
def test_generate_stops_and_resumes_on_every_form(
    tmp_path: Path, fake_server: FakeServerFactory, name: str
) -> None:
    server = fake_server(TABLE)
    source = make(tmp_path, name, ROWS)
    line = (
        f"ns generate --server_type=vllm --model=fake --server_address={server.base_url} --output_dir=out "
        f"--input_file={source} ++prompt_config=generic/math ++eval_type=math ++max_concurrent_requests=1"
    )
    first = ns(line, "++max_total_tokens=20", cwd=tmp_path)
    assert first.returncode == 4, first.stderr
    asked = len(server.records)
    assert 0 < asked < 12
    second = ns(line, cwd=tmp_path)
    assert second.returncode == 0, second.stderr
    records = rows_of(tmp_path / "out/output.jsonl")
    assert [{key: record[key] for key in ROWS[0]} for record in records] == ROWS
    assert all(record["symbolic_correct"] is True for record in records)
    assert len(server.records) == 12
    assert ns(line, cwd=tmp_path).returncode == 0
    assert len(server.records) == 12


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl.gz"])
def test_rows_that_were_added_are_asked_alone(tmp_path: Path, fake_server: FakeServerFactory, name: str) -> None:
    server = fake_server(TABLE)
    source = make(tmp_path, name, ROWS[:9])
    line = (
        f"ns generate --server_type=vllm --model=fake --server_address={server.base_url} --output_dir=out "
        f"--input_file={source} ++prompt_config=generic/math --num_chunks=2"
    )
    assert ns(line.replace(" --num_chunks=2", ""), cwd=tmp_path).returncode == 0
    make(tmp_path, name, ROWS)
    done = ns(line.replace(" --num_chunks=2", ""), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(server.records) == 12
    assert [row["id"] for row in rows_of(tmp_path / "out/output.jsonl")] == [row["id"] for row in ROWS]
    chunked = ns(line.replace("=out ", "=chunks "), cwd=tmp_path)
    assert chunked.returncode == 0, chunked.stderr
    assert [row["id"] for row in rows_of(tmp_path / "chunks/output.jsonl")] == [row["id"] for row in ROWS]


@pytest.mark.parametrize("name", FORMS)
def test_grade_reads_every_form(tmp_path: Path, name: str) -> None:
    source = make(tmp_path, name, ANSWERED)
    done = ns(f"ns grade --grader=math --input_files {source} --output_file=graded.jsonl", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [row["symbolic_correct"] for row in rows_of(tmp_path / "graded.jsonl")] == [True] * 12
    dry = ns(f"ns grade --grader=math --input_files {source} --dry_run", cwd=tmp_path)
    assert "12 rows" in dry.stdout


@pytest.mark.parametrize("suffix", [".jsonl.gz", ".jsonl.zst", ".json", ".csv", ".tsv", ".parquet"])
def test_an_own_benchmark_may_have_any_form(tmp_path: Path, fake_server: FakeServerFactory, suffix: str) -> None:
    server = fake_server(TABLE)
    folder = tmp_path / "benches/sums"
    make(folder, next(name for name in FORMS if name.endswith(suffix)), ROWS).rename(folder / f"test{suffix}")
    (folder / "__init__.py").write_text(OWN)
    done = ns(
        f"ns eval --benchmarks=sums --server_type=vllm --model=fake --server_address={server.base_url} "
        "--output_dir=out",
        cwd=tmp_path,
        env={"NEWSKILLS_EXTRA_DATASETS": str(tmp_path / "benches")},
    )
    assert done.returncode == 0, done.stderr
    assert len(rows_of(tmp_path / "out/eval-results/sums/output.jsonl")) == 12
    metrics = json.loads((tmp_path / "out/eval-results/sums/metrics.json").read_text())
    assert metrics["sums"]["pass@1"]["symbolic_correct"] == 100.0


def test_a_damaged_input_is_one_sentence(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(TABLE)
    (tmp_path / "in.jsonl.gz").write_bytes(gzip.compress(json_lines(ROWS))[:-12])
    answered = [{**row, "generation": "4"} for row in ROWS]
    (tmp_path / "answered-in.jsonl.gz").write_bytes(gzip.compress(json_lines(answered))[:-12])
    for command in (
        f"ns generate --server_type=vllm --model=fake --server_address={server.base_url} --output_dir=out "
        "--input_file=in.jsonl.gz ++prompt_config=generic/math",
        "ns grade --grader=math --input_files answered-in.jsonl.gz",
    ):
        done = ns(command, cwd=tmp_path)
        assert done.returncode == 2
        assert "in.jsonl.gz, line " in done.stderr
        assert "gzip data" in done.stderr
        assert "Traceback" not in done.stderr
    assert server.records == []


def test_grade_reads_packed_rows_from_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text(json.dumps(ANSWERED))
    done = ns("ns grade --grader=math", cwd=tmp_path, stdin=(tmp_path / "in.json").read_text())
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 12
