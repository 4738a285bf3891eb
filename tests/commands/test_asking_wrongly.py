# SPDX-License-Identifier: Apache-2.0
"""Names and numbers that cannot be meant: told before anything is done, with what to type instead."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.commands.running import ns, write
from tests.conftest import FakeServerFactory
from tests.server import Fault, Script

from newskills.base.records import Row

ROW: Row = {"id": "1", "problem": "1 + 1?", "expected_answer": "2", "generation": "2", "symbolic_correct": True}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    write(tmp_path / "out/eval-results/gsm8k/output.jsonl", [ROW])
    write(tmp_path / "alone.jsonl", [ROW])
    return tmp_path


def test_a_misspelt_benchmark_has_no_metrics(results: Path) -> None:
    for file in ("alone.jsonl", "out/eval-results/gsm8k/output.jsonl"):
        done = ns(f"ns compute_metrics --prediction_jsonl_files {file} --benchmark gsm8l", cwd=results)
        assert done.returncode == 2
        assert "Unknown benchmark 'gsm8l'; did you mean 'gsm8k'" in done.stderr
        assert "--metric_type" in done.stderr
    for more in ("--benchmark gsm8k", "--benchmark gsm8l --metric_type math"):
        assert ns(f"ns compute_metrics --prediction_jsonl_files alone.jsonl {more}", cwd=results).returncode == 0


def test_own_benchmarks_are_known_by_their_folder(results: Path) -> None:
    write(results / "own/output.jsonl", [ROW])
    done = ns("ns compute_metrics --prediction_jsonl_files own/output.jsonl --benchmark own", cwd=results)
    assert done.returncode == 0, done.stderr


def test_no_rows_are_no_unknown_benchmark(results: Path) -> None:
    for line in (
        "ns summarize_results out --max_samples 0",
        "ns summarize_results out --benchmarks gsm8k --max_samples 0",
        "ns compute_metrics --prediction_jsonl_files alone.jsonl --benchmark gsm8k --max_samples 0",
    ):
        done = ns(line, cwd=results)
        assert done.returncode == 2
        assert "there are no rows to score" in done.stderr
        assert "Unknown" not in done.stderr
    misspelt = ns("ns summarize_results out --benchmarks gsm8l", cwd=results)
    assert "did you mean 'gsm8k'" in misspelt.stderr


@pytest.mark.parametrize("command", ["eval --benchmarks=answer-judge", "generate --input_file=alone.jsonl"])
def test_taking_no_row_is_refused(results: Path, command: str) -> None:
    env = {"NEWSKILLS_DATA_DIR": str(results / "data")}
    assert ns("ns prepare_data answer-judge", cwd=results, env=env).returncode == 0
    line = f"ns {command} --server_type=vllm --model=fake --server_address=http://127.0.0.1:9 --output_dir=new"
    done = ns(f"{line} ++prompt_config=generic/math ++max_samples=0", cwd=results, env=env)
    assert done.returncode == 2
    assert "max_samples is 0" in done.stderr
    assert not (results / "new").exists()


def test_after_an_unknown_model_the_same_command_is_not_advised(
    results: Path, fake_server: FakeServerFactory
) -> None:
    missing = Fault(kind="status", status=404, message="The model `fake` does not exist.", code="model_not_found")
    server = fake_server(Script(faults=(missing,)), process=True)
    line = "ns generate --input_file=alone.jsonl --server_type=vllm --model=fake --output_dir=new"
    done = ns(f"{line} --server_address={server.url} ++prompt_config=generic/math", cwd=results)
    assert done.returncode != 0
    assert "Resume with" not in done.stderr
    assert "Run the command again with a model that this server has." in done.stderr
