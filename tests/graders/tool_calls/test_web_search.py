# SPDX-License-Identifier: Apache-2.0
"""Questions that are answered with web searches, or from memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.graders.plain import plain_grader

from newskills.base.records import Row
from newskills.base.store import read_rows
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import prepare
from newskills.benchmarks.downloads.fetch import FetchOptions

COUNTS = {
    "web_search_base": 100,
    "web_search_no_snippet": 100,
    "memory_kv": 155,
    "memory_vector": 155,
    "memory_rec_sum": 155,
}


@pytest.mark.mirror
@pytest.mark.parametrize("category", COUNTS)
def test_real_questions(mirror: Path, tmp_path: Path, category: str) -> None:
    benchmark = get_benchmark(f"bfcl_v4.{category}")
    done = prepare(benchmark, data_dir=tmp_path, options=FetchOptions(mirror=str(mirror), offline=True))
    rows = list(read_rows(done.splits[0].path))
    grader = plain_grader("bfcl", {})
    assert len(rows) == COUNTS[category]
    for row in rows:
        assert [message["role"] for message in row["messages"]] == ["system", "user"]
        right = f"I searched.\nAnswer: {row['ground_truth'][0]}"
        assert grader.grade({**row, "generation": right}).outcome == "correct"
        assert grader.grade({**row, "generation": "Answer: unknown"}).outcome == "wrong"
    if category.startswith("memory"):
        assert len({row["id"] for row in rows if row["id"].startswith(f"bfcl_{category}"[5:])}) == 155
        assert {row["scenario"]: len(row["sessions"]) for row in rows} == {
            "customer": 10, "finance": 7, "healthcare": 5, "notetaker": 5, "student": 10,
        }  # fmt: skip
        assert {len(row["tools"]) for row in rows} == {
            {"memory_kv": 15, "memory_vector": 12, "memory_rec_sum": 5}[category]
        }
    else:
        assert all(row["num_hops"] >= 1 for row in rows)


SAID: Row = {"role": "assistant", "content": "Perhaps Rome?", "tool_calls": [{"id": "c"}]}
RECORD: Row = {"id": "q", "check": "answer", "ground_truth": ["Rome"], "generation": "Perhaps Rome?\nIt is Oslo."}


def test_only_the_last_message_counts() -> None:
    grader = plain_grader("bfcl", {})
    assert grader.grade(
        {**RECORD, "conversation": [SAID, {"role": "assistant", "content": "It is Oslo."}]}
    ).outcome == ("wrong")
    assert grader.grade({**RECORD, "conversation": [SAID, {"role": "tool", "content": "Rome"}]}).outcome == "wrong"
    last = {"role": "assistant", "content": "It is Rome."}
    assert grader.grade({**RECORD, "conversation": [SAID, last]}).outcome == "correct"


@pytest.mark.parametrize(
    ("text", "right"),
    [("It was April 1, 2024.", True), ("on april 1 2024", True), ("April 12024", True), ("April 11 2024", False)],
)
def test_it_decides_as_the_leaderboard_does(text: str, right: bool) -> None:
    checker = pytest.importorskip("bfcl_eval.eval_checker.agentic_eval.agentic_checker", reason="needs bfcl-eval")
    answers = ["April 1, 2024", "April 12024"]
    ours = plain_grader("bfcl", {}).grade({**RECORD, "ground_truth": answers, "generation": text})
    assert (ours.outcome == "correct") == right == checker.agentic_checker(text, answers)["valid"]
