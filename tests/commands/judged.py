# SPDX-License-Identifier: Apache-2.0
"""A benchmark whose answers a model judges, and judges with every kind of manners."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.commands.running import ns
from tests.server import Answer, Fault, Script

WORDS = {f"Add {n} and {n}.": f"it is not {2 * n}" for n in range(10)}
"""Answers that are no texts of the expected ones."""
VERDICTS = {"Add 4 and": "No", "Add 7 and": "perhaps"}
BENCHMARK = """
from newskills.base.benchmark import Benchmark, Judge

def rows(split):
    for n in range(10):
        yield {"id": f"s{n}", "problem": f"Add {n} and {n}.", "expected_answer": str(2 * n)}

def make_tasks(exp, expname, benchmark):
    # as in NeMo-Skills, whose pipeline is not here
    return []

BENCHMARK = Benchmark(
    name="judged-sums", category="math-natural", title="Sums", generate_rows=rows, prompt="generic/math",
    grader="math", metric="math", judge=Judge(),
)
"""


def answering(**more: object) -> Script:
    return Script(answer=Answer(kind="table", table=WORDS), **more)


def judging(*faults: Fault, **more: object) -> Script:
    answer = Answer(kind="table", table=VERDICTS, template="Reasoning: …\nJudgement: %s", text="Judgement: Yes")
    return Script(answer=answer, faults=faults, **more)


def prepare(folder: Path) -> Path:
    (folder / "sums.py").write_text(BENCHMARK)
    done = ns("ns prepare_data ./sums.py --data_dir data", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


def line(answers: str, judge: str, *options: str, benchmarks: str = "./sums.py") -> str:
    """`answers`, `judge`: addresses of the servers."""
    return " ".join(
        [
            f"ns eval --server_type=vllm --model=fake --server_address={answers} --output_dir=out --data_dir=data",
            f"--judge_server_type=vllm --judge_model=judge --judge_server_address={judge}",
            f"--benchmarks={benchmarks}",
            *options,
        ]
    )


def start(words: str, folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "newskills", *words.split()[1:]],
        cwd=folder,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
