# SPDX-License-Identifier: Apache-2.0
"""Runs of `bench.reinforce` as a table in Markdown and as a picture in SVG."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, variance

import msgspec
from msgspec import Struct

from newskills.base.paired import PairedDifference, paired_difference
from newskills.base.records import Row
from newskills.base.stats import Z95

RIGHT = "eval_correct"
WIDTH, HEIGHT, LEFT, TOP, ACROSS = 260, 170, 40, 30, 3
COLOURS = {"cpu": "#1f6feb", "trl": "#d1701d"}
NAMES = {"cpu": "ns grpo", "trl": "TRL"}
SIGNIFICANT = 0.05


class Cell(Struct, frozen=True, kw_only=True):
    """One run.

    curve          (step, share of held-out problems that are right)
    rewards        of the samples, step by step
    before, after  the rewards of each held-out problem, which was answered greedily
    signal         of the gradient in the last step, where the trainer measures it
    samples        that were drawn
    """

    task: str
    kind: str
    backend: str
    seed: int
    curve: list[tuple[int, float]]
    rewards: list[float]
    before: list[list[float]]
    after: list[list[float]]
    signal: float | None = None
    samples: int = 0
    seconds: float = 0.0

    @property
    def lift(self) -> PairedDifference:
        return paired_difference(self.before, self.after)


def cell_of(
    about: tuple[str, str, str, int], rows: Sequence[Row], evaluations: dict[int, list[list[float]]], samples: int
) -> Cell:
    """The run that wrote these rows of metrics.jsonl; `about`: task, its kind, backend, seed."""
    task, kind, backend, seed = about
    return Cell(
        task=task,
        kind=kind,
        backend=backend,
        seed=seed,
        curve=[(row["step"], row[RIGHT]) for row in rows if RIGHT in row],
        rewards=[row["reward"] for row in rows if "reward" in row],
        before=evaluations[0],
        after=evaluations[max(evaluations)],
        signal=rows[-1].get("signal"),
        samples=samples,
        seconds=math.fsum(row.get("seconds", 0.0) for row in rows),
    )


def cells(folder: Path) -> list[Cell]:
    """What is done, in order of task, backend and seed."""
    return [msgspec.json.decode(path.read_bytes(), type=Cell) for path in sorted(folder.glob("*-*-*.json"))]


def grouped(every: Sequence[Cell]) -> Iterator[list[Cell]]:
    """The seeds of each task and trainer."""
    for key in dict.fromkeys((cell.task, cell.backend) for cell in every):
        yield [cell for cell in every if (cell.task, cell.backend) == key]


def mean_lift(some: Sequence[Cell]) -> tuple[float, float, float]:
    """The mean over seeds with its 95 % interval, in points: the error of the problems, which all seeds share, and that
    of the seeds are added."""
    after = [
        [score for scores in problem for score in scores]
        for problem in zip(*(cell.after for cell in some), strict=True)
    ]
    whole = paired_difference(some[0].before, after)
    spread = variance([cell.lift.difference for cell in some]) / len(some) if len(some) > 1 else 0.0
    wide = Z95 * math.hypot(whole.standard_error, math.sqrt(spread))
    return 100 * whole.difference, 100 * (whole.difference - wide), 100 * (whole.difference + wide)


def tabled(folder: Path) -> str:
    """A line for each task and trainer: the mean lift with its interval, and each seed's lift with its p-value."""
    lines = [
        "| task | stands for | trainer | seeds | before | after | mean lift, 95 % | each seed (p) | signal | samples |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for some in grouped(cells(folder)):
        first = some[0]
        lift, low, high = mean_lift(some)
        before, after = (100 * fmean(cell.curve[at][1] for cell in some) for at in (0, -1))
        each = ", ".join(f"{100 * cell.lift.difference:+.1f} ({cell.lift.p_value:.1g})" for cell in some)
        signals = [cell.signal for cell in some if cell.signal is not None]
        signal = f"{fmean(signals):.2f}" if signals else ""
        lines.append(
            f"| {first.task} | {first.kind} | {NAMES[first.backend]} | {len(some)} | {before:.1f} % | {after:.1f} % | "
            f"{lift:+.1f} [{low:+.1f}, {high:+.1f}] | {each} | {signal} | {first.samples:,} |"
        )
    return "\n".join(lines)


def judged(folder: Path, tasks: Sequence[str]) -> str:
    """A sentence on what was run, and on how many tasks ours lifts, harms and compares with TRL."""
    by_key = {(some[0].task, some[0].backend): some for some in grouped(cells(folder))}
    ours = {task: by_key[task, "cpu"] for task in tasks if (task, "cpu") in by_key}
    lifted = [task for task, some in ours.items() if mean_lift(some)[1] > 0]
    harmed = [
        f"{task} seed {cell.seed}"
        for task, some in ours.items()
        for cell in some
        if cell.lift.difference < 0 and cell.lift.p_value < SIGNIFICANT
    ]
    missing = [task for task in tasks if task not in ours]
    text = (
        f"Of {len(tasks)} tasks, {len(ours)} were run ({sum(map(len, ours.values()))} runs); mean lift above 0 with "
        f"95 %: {len(lifted)}. Significantly worse (p < {SIGNIFICANT}): {', '.join(harmed) or 'none'}."
    )
    if missing:
        text += f" Not run yet: {', '.join(missing)}."
    beside = [task for task in ours if (task, "trl") in by_key]
    return f"{text} Beside TRL: {', '.join(beside) or 'none yet'}."


def drawn(folder: Path) -> str:
    """A panel for each task: held-out problems right over steps, a line for each seed."""
    every = cells(folder)
    tasks = list(dict.fromkeys(cell.task for cell in every))
    steps = max((cell.curve[-1][0] for cell in every), default=1)
    rows = max(1, math.ceil(len(tasks) / ACROSS))
    wide, panel = LEFT + min(ACROSS, max(1, len(tasks))) * (WIDTH + LEFT), TOP + HEIGHT + 30
    high = rows * panel + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" font-family="sans-serif" font-size="11">',
        f'<rect width="{wide}" height="{high}" fill="white"/>',
    ]
    for index, task in enumerate(tasks):
        down, across = divmod(index, ACROSS)
        corner = LEFT + across * (WIDTH + LEFT), TOP + down * panel
        parts += _panel(corner, task, [cell for cell in every if cell.task == task], steps)
    for index, (backend, colour) in enumerate(COLOURS.items()):
        at = LEFT + 110 * index
        parts.append(f'<line x1="{at}" x2="{at + 20}" y1="{high - 10}" y2="{high - 10}" stroke="{colour}"/>')
        parts.append(f'<text x="{at + 25}" y="{high - 6}">{NAMES[backend]}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _panel(corner: tuple[int, int], task: str, some: Sequence[Cell], steps: int) -> list[str]:
    left, top = corner

    def place(step: int, share: float) -> str:
        return f"{left + WIDTH * step / steps:.1f},{top + HEIGHT * (1 - share):.1f}"

    parts = [f'<text x="{left}" y="{top - 10}" font-weight="bold">{task}: held-out problems right</text>']
    for percent in range(0, 101, 25):
        y = top + HEIGHT * (1 - percent / 100)
        parts.append(f'<line x1="{left}" x2="{left + WIDTH}" y1="{y}" y2="{y}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 5}" y="{y + 4}" text-anchor="end">{percent}</text>')
    for step in range(0, steps + 1, max(1, steps // 4)):
        x = left + WIDTH * step / steps
        parts.append(f'<text x="{x}" y="{top + HEIGHT + 15}" text-anchor="middle">{step}</text>')
    for cell in some:
        points = " ".join(place(*point) for point in cell.curve)
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{COLOURS[cell.backend]}" stroke-width="1.5"/>'
        )
    return parts
