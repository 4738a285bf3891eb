# SPDX-License-Identifier: Apache-2.0
"""Curves of trainings: loss, reward, accuracy on held-out problems, length, learning rate over steps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.base.store import open_for_reading
from newskills.view.documents.charts import SMALL_SIZE, Series, line_chart
from newskills.view.documents.document import Block, Figure, Grid, Heading

METRICS_LINES = "metrics.jsonl"
TRAINING_CURVES = (
    ("loss", ("loss",)),
    ("reward", ("reward", "eval_reward")),
    ("share of correct answers", ("correct", "eval_correct")),
    ("KL", ("kl",)),
    ("tokens of an answer", ("completion_tokens",)),
    ("learning rate", ("learning_rate",)),
)
"""Name of a plot → the metrics that it shows."""
_MAX_DEPTH = 3

_decoder = msgspec.json.Decoder(Row)


def training_blocks(folder: Path) -> Iterator[Block]:
    """Yield plots of every training below `folder`; nothing where there is none."""
    patterns = ["/".join(["*"] * depth + [METRICS_LINES]) for depth in range(_MAX_DEPTH + 1)]
    for path in sorted(path for pattern in patterns for path in folder.glob(pattern)):
        rows = list(read_steps(path))
        if len(rows) < 2:
            continue
        yield Heading(f"Training: {path.parent.relative_to(folder)}")
        figures = []
        for name, metrics in TRAINING_CURVES:
            series = [Series(metric, _curve_points(rows, metric)) for metric in metrics]
            drawn = [item for item in series if item.points]
            if drawn:
                last = ", ".join(f"{item.label} {item.points[-1][1]:.4g}" for item in drawn)
                figures.append(
                    Figure(line_chart(drawn, "step", name, SMALL_SIZE), f"{name}: at the last step {last}.")
                )
        yield Grid(figures)


def read_steps(path: Path) -> Iterator[Row]:
    """Yield lines with a step; what cannot be read, as the last line of a training that goes on, is left out."""
    try:
        with open_for_reading(path) as file:
            for line in file:
                try:
                    row = _decoder.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError):
                    continue
                if isinstance(row.get("step"), int):
                    yield row
    except DataError:
        return


def _curve_points(rows: list[Row], metric: str) -> list[tuple[float, float]]:
    return [
        (float(row["step"]), float(value)) for row in rows if isinstance(value := row.get(metric), int | float)
    ]
