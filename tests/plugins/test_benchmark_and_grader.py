# SPDX-License-Identifier: Apache-2.0
"""A benchmark and a grader of another distribution, by the commands that use ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import ns, rows_of, write
from tests.plugins.installed import variables

ROWS = [
    {"id": "a", "generation": "Paris is it", "expected_answer": "Paris"},
    {"id": "b", "generation": "Rome", "expected_answer": "Paris"},
    {"id": "c", "generation": "", "expected_answer": "Paris"},
]


@pytest.fixture
def env(tmp_path: Path, example: Path) -> dict[str, str]:
    return {**variables(example), "NEWSKILLS_DATA_DIR": str(tmp_path / "data")}


def test_the_benchmark_is_listed_prepared_and_evaluated(
    tmp_path: Path, env: dict[str, str], fake_server: Any
) -> None:
    listed = ns("ns list benchmarks", cwd=tmp_path, env=env)
    assert any(line.split()[:1] == ["example-sums"] for line in listed.stdout.splitlines())
    assert ns("ns prepare_data example-sums", cwd=tmp_path, env=env).returncode == 0
    server = fake_server(answer=lambda body: r"It is \boxed{4}.")
    line = (
        f"ns eval --benchmarks=example-sums:2 --server_type=vllm --server_address={server.base_url} --model=fake"
    )
    done = ns(line, "--output_dir=results", cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    metrics = json.loads((tmp_path / "results/eval-results/example-sums/metrics.json").read_text())
    assert metrics["example-sums"]["pass@1[avg-of-2]"]["symbolic_correct"] == 50.0
    records = rows_of(tmp_path / "results/eval-results/example-sums/output-rs0.jsonl")
    assert [(record["expected_answer"], record["outcome"]) for record in records] == [
        ("4", "correct"),
        ("42", "wrong"),
    ]


def test_doctor_lists_what_is_plugged_in(tmp_path: Path, env: dict[str, str]) -> None:
    done = ns("ns doctor", cwd=tmp_path, env=env)
    shown = " ".join(done.stdout.split())
    for plug_in in (
        "benchmarks: example-sums",
        "graders: first-word",
        "models: openrouter",
        "agents: one-patch",
        "engines: podman-hpc",
        "executors: queue",
    ):
        assert plug_in in shown, shown


def test_the_grader_grades(tmp_path: Path, env: dict[str, str]) -> None:
    write(tmp_path / "answers.jsonl", ROWS)
    line = "ns grade --grader=first-word --input_files=answers.jsonl --output_file=graded.jsonl"
    done = ns(line, cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    graded = rows_of(tmp_path / "graded.jsonl")
    assert [row["outcome"] for row in graded] == ["correct", "wrong", "no_answer"]
    assert {row["grader"] for row in graded} == {"first-word@1"}
