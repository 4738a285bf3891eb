# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from newskills.base.store import read_rows
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import prepare
from newskills.benchmarks.downloads.fetch import FetchOptions

pytestmark = pytest.mark.mirror


def test_hard_prompts_and_their_baseline(mirror: Path, tmp_path: Path) -> None:
    options = FetchOptions(mirror=str(mirror), offline=True)
    made = prepare(get_benchmark("arena-hard-v2"), data_dir=tmp_path, splits=["hard_prompt"], options=options)
    rows = list(read_rows(made.splits[0].path))
    assert len(rows) == len({row["id"] for row in rows}) == 500
    assert made.splits[0].notices == ["not verified against the live source"], "the default split was not"
    assert {row["category"] for row in rows} == {"hard_prompt"}
    assert all(row["baseline_answer"].strip() and row["question"].strip() for row in rows)


def test_references_of_conversations(mirror: Path, tmp_path: Path) -> None:
    options = FetchOptions(mirror=str(mirror), offline=True)
    made = prepare(get_benchmark("mt-bench"), data_dir=tmp_path, options=options)
    rows = list(read_rows(made.splits[0].path))
    assert all(len(row["turns"]) == 2 for row in rows)
    known = Counter(row["category"] for row in rows if row["turn_references"])
    assert known.items() >= {"math": 10, "reasoning": 10, "coding": 10}.items()
