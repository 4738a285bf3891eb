# SPDX-License-Identifier: Apache-2.0
"""`ns eval --generation_type`, `--generation_module`: benchmarks answered otherwise than in their own ways."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.commands.clusters import BENCHMARK, SUMS
from tests.commands.running import ns, rows_of, write
from tests.conftest import FakeServerFactory
from tests.server import Answer, Script

SOLVER = """
from newskills.base.records import Attempt

class Fixed:
    def __init__(self, parts):
        self.chat = parts.chat

    def request(self, sample):
        return self.chat.request(sample)

    async def solve(self, sample, request, kit):
        return Attempt(sample_id=sample.id, key=request.key(), fields={"generation": "\\\\boxed{0}"})

def SOLVER(parts):
    return Fixed(parts)
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "sums.py").write_text(BENCHMARK)
    (tmp_path / "mine.py").write_text(SOLVER)
    write(tmp_path / "ready/own-sums/test.jsonl", SUMS)
    return tmp_path


def line(url: str, more: str) -> str:
    return (
        f"ns eval --server_type=vllm --server_address={url} --model=m --benchmarks=./sums.py --data_dir=ready "
        f"--output_dir=out {more}"
    )


def test_a_vote_instead_of_one_answer(here: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=Answer(text=r"\boxed{0}")))
    keys = "++solver_config.samples=3 ++inference.temperature=0.7 ++max_samples=2"
    done = ns(line(server.base_url, f"--generation_type=majority {keys}"), cwd=here)
    assert done.returncode == 0, done.stderr
    assert len([record for record in server.records if "messages" in (record.body or {})]) == 6
    (row, _) = rows_of(here / "out/eval-results/own-sums/output.jsonl")
    assert row["predicted_answer"] == "0"


def test_a_solver_of_one_s_own(here: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script())
    done = ns(line(server.base_url, "--generation_module=mine.py ++max_samples=3"), cwd=here)
    assert done.returncode == 0, done.stderr
    assert not [record for record in server.records if "messages" in (record.body or {})]
    rows = rows_of(here / "out/eval-results/own-sums/output.jsonl")
    assert {row["generation"] for row in rows} == {r"\boxed{0}"}


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("--generation_type=majority --generation_module=mine.py", "exclude each other"),
        ("--generation_type=chat", "--generation_type"),
        ("--generation_module=nemo_skills.inference.eval.bfcl", "Its subsets are solved in several ways"),
        ("--generation_module=gone.py", "gone.py"),
    ],
)
def test_what_cannot_answer(here: Path, more: str, why: str) -> None:
    done = ns(line("http://127.0.0.1:9", more), cwd=here)
    assert done.returncode == 2
    assert why in " ".join(done.stderr.split())
