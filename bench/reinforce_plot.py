# SPDX-License-Identifier: Apache-2.0
"""Runs of `bench.reinforce` as a table in Markdown and as a picture in SVG."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean

from msgspec import Struct

RIGHT = "eval_correct"
WIDTH, HEIGHT, LEFT, TOP = 260, 170, 40, 30
COLOURS = {"cpu": "#1f6feb", "trl": "#d1701d"}
NAMES = {"cpu": "ns grpo", "trl": "TRL"}


class Run(Struct, frozen=True):
    """`curve`: (step, share of held-out problems that are right); `rewards`: of the samples, step by step."""

    task: str
    backend: str
    seed: int
    curve: list[tuple[int, float]]
    rewards: list[float]


def runs(folder: Path) -> list[Run]:
    """What is done, in order of task, backend and seed."""
    found = []
    for path in sorted(folder.glob("*-*-*.json")):
        task, backend, seed = path.stem.split("-")
        rows = json.loads(path.read_text())
        curve = [(row["step"], row[RIGHT]) for row in rows if RIGHT in row]
        found.append(Run(task, backend, int(seed), curve, [row["reward"] for row in rows if "reward" in row]))
    return found


def groups(every: Sequence[Run]) -> Iterator[tuple[str, str, list[Run]]]:
    for task, backend in dict.fromkeys((run.task, run.backend) for run in every):
        yield task, backend, [run for run in every if (run.task, run.backend) == (task, backend)]


def tabled(folder: Path) -> str:
    """A line for each task and trainer: the mean over seeds, and each seed's lift."""
    lines = [
        "| task | trainer | seeds | before | after | lift of each seed | reward of samples, first → last 10 steps |",
        "|---|---|---|---|---|---|---|",
    ]
    for task, backend, some in groups(runs(folder)):
        before, after = (fmean(run.curve[at][1] for run in some) for at in (0, -1))
        lifts = ", ".join(f"{100 * (run.curve[-1][1] - run.curve[0][1]):+.1f}" for run in some)
        first, last = (fmean(fmean(part) for part in parts) for parts in _ends(some))
        lines.append(
            f"| {task} | {NAMES[backend]} | {len(some)} | {100 * before:.1f} % | {100 * after:.1f} % | {lifts} | "
            f"{first:.2f} → {last:.2f} |"
        )
    return "\n".join(lines)


def _ends(some: Sequence[Run]) -> tuple[list[list[float]], list[list[float]]]:
    return [run.rewards[:10] for run in some], [run.rewards[-10:] for run in some]


def drawn(folder: Path) -> str:
    """A panel for each task: held-out problems right over steps, a line for each seed."""
    every = runs(folder)
    tasks = list(dict.fromkeys(run.task for run in every))
    steps = max((run.curve[-1][0] for run in every), default=1)
    wide, high = LEFT + len(tasks) * (WIDTH + LEFT), TOP + HEIGHT + 50
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" font-family="sans-serif" font-size="11">',
        f'<rect width="{wide}" height="{high}" fill="white"/>',
    ]
    for index, task in enumerate(tasks):
        parts += _panel(LEFT + index * (WIDTH + LEFT), task, [run for run in every if run.task == task], steps)
    for index, (backend, colour) in enumerate(COLOURS.items()):
        at = LEFT + 110 * index
        parts.append(f'<line x1="{at}" x2="{at + 20}" y1="{high - 10}" y2="{high - 10}" stroke="{colour}"/>')
        parts.append(f'<text x="{at + 25}" y="{high - 6}">{NAMES[backend]}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _panel(left: int, task: str, some: Sequence[Run], steps: int) -> list[str]:
    def place(step: int, share: float) -> str:
        return f"{left + WIDTH * step / steps:.1f},{TOP + HEIGHT * (1 - share):.1f}"

    found = [f'<text x="{left}" y="{TOP - 10}" font-weight="bold">{task}: held-out problems right</text>']
    for percent in range(0, 101, 25):
        y = TOP + HEIGHT * (1 - percent / 100)
        found.append(f'<line x1="{left}" x2="{left + WIDTH}" y1="{y}" y2="{y}" stroke="#ddd"/>')
        found.append(f'<text x="{left - 5}" y="{y + 4}" text-anchor="end">{percent}</text>')
    for step in range(0, steps + 1, max(1, steps // 4)):
        x = left + WIDTH * step / steps
        found.append(f'<text x="{x}" y="{TOP + HEIGHT + 15}" text-anchor="middle">{step}</text>')
    for run in some:
        points = " ".join(place(*point) for point in run.curve)
        found.append(
            f'<polyline points="{points}" fill="none" stroke="{COLOURS[run.backend]}" stroke-width="1.5"/>'
        )
    return found
