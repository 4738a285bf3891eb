# SPDX-License-Identifier: Apache-2.0
"""Benchmarks that a judge decides, prepared from the real files: both prompts fit every row."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from newskills.base.records import Row
from newskills.base.store import read_rows
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import load_rows, prepare_many
from newskills.benchmarks.downloads.fetch import FetchOptions
from newskills.prompts.renderer import load_prompt

pytestmark = pytest.mark.mirror
COUNTS = {"truthfulqa": 817, "usamo25": 6, "imo-proofbench": 60}


@pytest.fixture(scope="module")
def prepared(mirror: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Row]]:
    folder = tmp_path_factory.mktemp("prepared")
    benchmarks = [get_benchmark(name) for name in COUNTS]
    results = prepare_many(benchmarks, data_dir=folder, options=FetchOptions(mirror=str(mirror), offline=True))
    assert not [result for result in results if isinstance(result, Exception)]
    return {b.name: list(read_rows(load_rows(b, b.split, folder))) for b in benchmarks}


@pytest.mark.parametrize("name", COUNTS)
def test_prompts_of_model_and_judge_fit_every_row(prepared: dict[str, list[Row]], name: str) -> None:
    benchmark, rows = get_benchmark(name), prepared[name]
    assert len(rows) == len({row["id"] for row in rows}) == COUNTS[name]
    assert benchmark.judge is not None
    asked, judged = load_prompt(benchmark.prompt), load_prompt(benchmark.judge.prompt)
    for row in rows:
        assert asked.messages(row)[-1].content
        text = str(judged.messages({**row, "generation": "MY ANSWER"})[-1].content)
        assert "MY ANSWER" in text
        assert "MY ANSWER" not in str(asked.messages(row)[-1].content)


def test_truthfulqa(prepared: dict[str, list[Row]]) -> None:
    rows = prepared["truthfulqa"]
    assert rows[0]["correct_answers"].splitlines()[:2] == ["- Nothing happens", "- You eat watermelon seeds"]
    assert all(row["correct_answers"] and row["incorrect_answers"] for row in rows)
    assert Counter(row["type"] for row in rows) == {"Adversarial": 437, "Non-Adversarial": 380}


def test_marking_schemes(prepared: dict[str, list[Row]]) -> None:
    assert [row["id"] for row in prepared["usamo25"]] == [f"usamo25-{n}" for n in range(1, 7)]
    first = prepared["usamo25"][0]
    assert first["problem"].startswith("Let $k$ and $d$ be positive integers.")
    assert first["rubric"].startswith("- Initial closed form expression for each digit (1 of 7): Uses")
    assert first["reference_solution"].startswith("We claim one such $N$")
    assert Counter(row["subset_for_metrics"] for row in prepared["imo-proofbench"]) == {
        "basic": 30,
        "advanced": 30,
    }
    assert all(row["rubric"] and row["reference_solution"] for name in COUNTS if name != "truthfulqa"
               for row in prepared[name])  # fmt: skip
