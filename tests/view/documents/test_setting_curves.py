# SPDX-License-Identifier: Apache-2.0
"""Scores over the number by which runs differ, in reports; none where something else differs."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.view.results import benchmark, record

from newskills.view.documents.document import Figure, Grid, Heading
from newskills.view.documents.report import ReportOptions, report_blocks


def runs(folder: Path, settings: list[dict[str, Any]]) -> list[str]:
    """Write a run for each of `settings`, with ever more correct answers; return the captions of their curve."""
    for number, own in enumerate(settings):
        rows = [record(n, outcome="correct" if n < 2 * number else "wrong") for n in range(8)]
        benchmark(folder / f"run{number}", "sums", [rows])
        state = folder / f"run{number}" / "eval-results" / "sums" / "output.jsonl.run.json"
        values = json.loads(state.read_text())
        values["settings"] |= {"server.model": "m", **own}
        state.write_text(json.dumps(values))
    blocks = report_blocks([folder], ReportOptions(spread=False))
    captions = []
    for before, block in pairwise(blocks):
        if isinstance(before, Heading) and before.text == "Scores over a setting":
            assert isinstance(block, Grid)
            captions += [figure.caption for figure in block.figures if isinstance(figure, Figure)]
    return captions


def budgets(*values: int | str, **more: Any) -> list[dict[str, Any]]:
    return [
        {"inference.thinking_budget": value, "inference.tokens_to_generate": 16 if value == "none" else 64, **more}
        for value in values
    ]


def test_scores_over_the_budget_of_thinking(tmp_path: Path) -> None:
    assert runs(tmp_path, budgets(256, "none", 64)) == ["sums, 0: 25.0, 64: 50.0, 256: 0.0."]


@pytest.mark.parametrize(
    "settings",
    [
        budgets(64, 256),
        budgets(64, 64, 64),
        [{**own, "prompt": f"other {n}"} for n, own in enumerate(budgets(16, 64, 256))],
    ],
)
def test_no_curve_where_nothing_or_something_else_differs(tmp_path: Path, settings: list[dict[str, Any]]) -> None:
    assert runs(tmp_path, settings) == []
