# SPDX-License-Identifier: Apache-2.0
"""Results that lost rows after they were finished, here and on clusters."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.commands.clusters import Place, answers
from tests.commands.running import rows_of
from tests.conftest import FakeServerFactory


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    place.config("mine", "executor: none")
    return place


def cut(path: Path, lines: int) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:lines]))


def test_half_a_result_is_never_scored(place: Place, fake_server: FakeServerFactory) -> None:
    server = fake_server(answers(), process=True)
    line = "ns eval --benchmarks=./sums.py --server_type=vllm --model=fake --output_dir=out"
    line = f"{line} --server_address={server.url}"
    assert place.ns(line).returncode == 0
    output = place.folder / "out/eval-results/own-sums/output.jsonl"
    cut(output, 6)
    for words in (
        "ns summarize_results out",
        f"ns compute_metrics --benchmark math-500 --prediction_jsonl_files {output}",
    ):
        refused = place.ns(words)
        assert refused.returncode != 0
        assert "finished with 10 rows and now has 6: 4 are missing: rows 7-10 of the input" in refused.stderr
        assert "ns eval --benchmarks=./sums.py" in refused.stderr
    fixed = place.ns(line)
    assert fixed.returncode == 0, fixed.stderr
    assert "4 of 10 rows were lost" in fixed.stderr
    assert len(server.records) == 14
    assert place.ns("ns summarize_results out").returncode == 0
    assert json.loads((place.folder / "out/metrics.json").read_text())["own-sums"]["pass@1"]["num_entries"] == 10


@pytest.mark.nightly
def test_jobs_are_submitted_for_what_is_missing_only(place: Place, fake_server: FakeServerFactory) -> None:
    server = fake_server(answers(), process=True)
    line = "ns eval --cluster=mine --benchmarks=./sums.py:2 --server_type=vllm --model=fake --output_dir=out"
    line = f"{line} --server_address={server.url} --num_chunks=2 --num_jobs=-1"
    assert place.ns(line).returncode == 0
    folder = place.folder / "out/eval-results/own-sums"
    cut(folder / "output-rs1.jsonl", 7)
    again = place.ns(line)
    assert again.returncode == 0, again.stderr
    assert len(server.records) == 20 + 3
    assert [len(rows_of(folder / f"output-rs{seed}.jsonl")) for seed in range(2)] == [10, 10]
    assert "nothing to do" in place.ns(line).stderr
