# SPDX-License-Identifier: Apache-2.0
"""Questions that are answered with web searches."""

from __future__ import annotations

from pathlib import Path

import pytest

from newskills.base.store import read_rows
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import prepare
from newskills.benchmarks.fetch import FetchOptions
from newskills.graders import make_grader


@pytest.mark.mirror
def test_real_questions(mirror: Path, tmp_path: Path) -> None:
    benchmark = get_benchmark("bfcl_v4.web_search_base")
    done = prepare(benchmark, data_dir=tmp_path, options=FetchOptions(mirror=str(mirror), offline=True))
    rows = list(read_rows(done.splits[0].path))
    grader = make_grader("bfcl", {})
    assert len(rows) == 100
    for row in rows:
        assert [message["role"] for message in row["messages"]] == ["system", "user"]
        right = f"I searched.\nAnswer: {row['ground_truth'][0]}"
        assert grader.grade({**row, "generation": right}).outcome == "correct"
        assert grader.grade({**row, "generation": "Answer: unknown"}).outcome == "wrong"
