# SPDX-License-Identifier: Apache-2.0
"""ARC-AGI: two attempts at each test grid of a task, as ARC Prize scores them (arXiv:2412.04604)."""

from __future__ import annotations

import importlib
import json
import random
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from newskills.metrics import make_metric
from tests.agreement.compare import WHOLE, Comparison, Verdict
from tests.graders.plain import plain_grader

Grid = list[list[int]]
_TASKS = 24
_METADATA = {
    "model": "",
    "provider": "",
    "start_timestamp": "2026-01-01T00:00:00",
    "end_timestamp": "2026-01-01T00:00:01",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": ""}}],
    "kwargs": {},
    "usage": {
        "prompt_tokens": 0,
        "completion_tokens": 0,
        "total_tokens": 0,
        "completion_tokens_details": {
            "reasoning_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    },
    "cost": {"prompt_cost": 0.0, "completion_cost": 0.0, "total_cost": 0.0},
}


def rows() -> Iterator[Row]:
    draw = random.Random("arc")
    for number in range(_TASKS):
        grids = []
        for _ in range(1 + number % 3):
            width, height = draw.randint(1, 5), draw.randint(2, 5)
            grids.append([[draw.randint(0, 9) for _ in range(width)] for _ in range(height)])
        yield {"task": f"{len(grids)} grids", "expected_answer": grids}


def forms(row: Row) -> Mapping[str, Sequence[Sequence[str]]]:
    """Attempts, each a text for every grid."""
    golds = row["expected_answer"]
    right, wrong = [json.dumps(grid) for grid in golds], [json.dumps(_changed(grid)) for grid in golds]
    return {
        "right, wrong": [right, wrong],
        "wrong, right": [wrong, right],
        "wrong twice": [wrong, wrong],
        "first right, then the others": [right[:1] + wrong[1:], wrong[:1] + right[1:]],
        "first right only": [right[:1] + wrong[1:], wrong],
        "in a fence": [[f"```json\n{text}\n```" for text in right], wrong],
        "after another grid": [[f"[[1, 2]] is the example.\nSo it is {text}." for text in right], wrong],
        "indented": [[json.dumps(grid, indent=1) for grid in golds], wrong],
        "columns for rows": [_texts([list(map(list, zip(*grid, strict=True))) for grid in golds]), wrong],
        "a row less": [_texts([grid[:-1] for grid in golds]), wrong],
        "a row more": [_texts([[*grid, grid[-1]] for grid in golds]), wrong],
        "rows reversed": [_texts([grid[::-1] for grid in golds]), wrong],
        "colours plus one": [
            _texts([[[(cell + 1) % 10 for cell in line] for line in grid] for grid in golds]),
            wrong,
        ],
        "all empty": [_texts([[[0] * len(grid[0])] * len(grid) for grid in golds]), wrong],
        "right, and a remark": [[f"{text}\nEvery row has {len(golds[0][0])} cells." for text in right], wrong],
    }


def _texts(grids: Sequence[Grid]) -> list[str]:
    return [json.dumps(grid) for grid in grids]


def _changed(grid: Grid) -> Grid:
    return [[(grid[0][0] + 1) % 10, *grid[0][1:]], *grid[1:]]


def original(folder: Path) -> Verdict:
    """Needs pydantic."""
    sys.path.insert(0, str(folder / "src"))
    schemas = importlib.import_module("arc_agi_benchmarking.schemas")
    score = importlib.import_module("arc_agi_benchmarking.scoring.scoring").ARCScorer.score_task

    def verdict(row: Row, reply: Any) -> float:
        golds = row["expected_answer"]
        pairs = [{"input": [[0]], "output": grid} for grid in golds]
        tried = [
            {
                f"attempt_{number}": {"answer": texts[place], "metadata": {**_METADATA, "pair_index": place}}
                for number, texts in enumerate(reply, 1)
            }
            for place in range(len(golds))
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = schemas.BenchmarkedTaskResults(test_pairs=tried)
            return float(score(schemas.ARCTask.from_dict({"train": [], "test": pairs}), results).score)

    return verdict


def ours(row: Row, reply: Any) -> float:
    """One reply has all grids of an attempt."""
    metric, samples = make_metric("arc"), []
    for texts in reply:
        score = plain_grader("grid_match", {}).grade({**row, "generation": "\n\n".join(texts)})
        samples.append({**score.fields, "outcome": score.outcome})
    metric.update(samples)
    return metric.numbers()[f"pass@{len(reply)}"]["arc_score"].value / 100


COMPARISON = Comparison(
    name="arc",
    benchmarks=("arc-agi-1", "arc-agi-2"),
    scorer="ARC Prize `ARCScorer`",
    compared=WHOLE,
    repository="arcprize/arc-agi-benchmarking",
    rows=rows,
    forms=forms,
    original=original,
    ours=ours,
    known=dict.fromkeys(
        ("2 grids/after another grid", "3 grids/after another grid"),
        "the original asks for one grid at a time; of a reply with more grids than the task has, ours takes the last",
    ),
)
