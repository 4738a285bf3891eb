# SPDX-License-Identifier: Apache-2.0
"""Runs of `bench.reinforce` as a table in Markdown and as a picture in SVG."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, variance
from typing import Literal

import msgspec
from msgspec import Struct

from bench.reinforce_tasks import ADDED_SEEDS, ADDED_TO, SEEDS
from newskills.base.paired import PairedDifference, paired_difference
from newskills.base.records import Row
from newskills.base.stats import Z95, t_critical
from newskills.base.store import write_rows
from newskills.train.loops.stepping import RETURNED

RIGHT = "eval_correct"
WIDTH, HEIGHT, LEFT, TOP, ACROSS = 260, 170, 40, 30, 3
COLOURS = {"cpu": "#1f6feb", "trl": "#d1701d"}
NAMES = {"cpu": "ns grpo", "trl": "TRL"}
SIGNIFICANT = 0.05
State = Literal["kept", "last"]


class Change(Struct, frozen=True):
    """Problems that the start got wrong and a later state right, and the other way round."""

    won: int
    lost: int

    @property
    def difference(self) -> int:
        return self.won - self.lost


class Cell(Struct, frozen=True, kw_only=True):
    """One run.

    curve     (step, share of the problems to measure on that are right), of the states that were measured
    gate      (step, share of the problems that the run evaluates itself on), by which it chooses what it keeps
    problems, before  how many there are to measure on, and how many the model got right as it was, greedily
    kept, last  what changed in them with the state that the run kept, and with the last one
    kept_step  0: the run kept the model that it began from
    returns   how often it went back to its best weights, as its evaluations showed a loss
    done, steps  steps that the run has done and would have done; it ends early where it has gone back too often
    samples   that were drawn
    date      when it was measured
    """

    task: str
    kind: str
    backend: str
    seed: int
    curve: list[tuple[int, float]]
    gate: list[tuple[int, float]] = []
    problems: int
    before: int
    kept: Change
    last: Change
    kept_step: int
    returns: int = 0
    done: int
    steps: int
    samples: int = 0
    seconds: float = 0.0
    date: str

    @property
    def key(self) -> tuple[str, str, int]:
        return self.task, self.backend, self.seed

    def right(self, state: State) -> int:
        """How many problems a state gets right."""
        return self.before + self._change(state).difference

    def lift(self, state: State = "kept") -> PairedDifference:
        won, lost = self._change(state).won, self._change(state).lost
        same = self.problems - won - lost
        return paired_difference([[0.0]] * (won + same) + [[1.0]] * lost, [[1.0]] * won + [[0.0]] * (same + lost))

    def _change(self, state: State) -> Change:
        if state == "kept":
            return self.kept
        return self.last

    @property
    def ended_early(self) -> bool:
        return self.done < self.steps


def cell_of(
    about: tuple[str, str, str, int],
    rows: Sequence[Row],
    right: Mapping[int, list[float]],
    kept: int,
    *,
    samples: int,
    steps: int,
) -> Cell:
    """The run that wrote these rows of metrics.jsonl; `about`: task, its kind, backend, seed; `right`: the rewards of
    the states that were measured, by step."""
    task, kind, backend, seed = about
    return Cell(
        task=task,
        kind=kind,
        backend=backend,
        seed=seed,
        curve=[(step, fmean(rewards)) for step, rewards in sorted(right.items())],
        gate=[(row["step"], row[RIGHT]) for row in rows if RIGHT in row],
        problems=len(right[0]),
        before=round(sum(right[0])),
        kept=change_between(right[0], right[kept]),
        last=change_between(right[0], right[rows[-1]["step"]]),
        kept_step=kept,
        returns=sum(RETURNED in row for row in rows),
        done=rows[-1]["step"],
        steps=steps,
        samples=samples,
        seconds=math.fsum(row.get("seconds", 0.0) for row in rows),
        date=time.strftime("%Y-%m-%d", time.gmtime()),
    )


def change_between(before: Sequence[float], after: Sequence[float]) -> Change:
    """What changed between the rewards of two states, 0 or 1 each."""
    pairs = list(zip(before, after, strict=True))
    return Change(won=pairs.count((0, 1)), lost=pairs.count((1, 0)))


def read_cells(folder: Path, record: Path) -> list[Cell]:
    """The cells of a record and those of a folder, which take the place of earlier ones; in order of task, trainer and
    seed."""
    lines = record.read_bytes().splitlines() if record.is_file() else []
    lines += [path.read_bytes() for path in folder.glob("*-*-*.json")]
    latest = {cell.key: cell for cell in (msgspec.json.decode(line, type=Cell) for line in lines)}
    return [latest[key] for key in sorted(latest)]


def write_record(cells: Sequence[Cell], record: Path) -> None:
    """Writes a line for each cell."""
    write_rows(record, [msgspec.to_builtins(cell) for cell in cells])


def grouped(every: Sequence[Cell]) -> Iterator[list[Cell]]:
    """The seeds of each task and trainer."""
    for key in dict.fromkeys((cell.task, cell.backend) for cell in every):
        yield [cell for cell in every if (cell.task, cell.backend) == key]


def mean_lift(some: Sequence[Cell], state: State = "kept") -> tuple[float, float, float]:
    """The mean over seeds with its 95 % interval, in points: the error of the problems and that of the seeds are added;
    the latter by Student's t, as there are few. All seeds have the same problems, whose error therefore counts in
    full."""
    lifts = [cell.lift(state) for cell in some]
    mean = fmean(lift.difference for lift in lifts)
    wide = Z95 * fmean(lift.standard_error for lift in lifts)
    if len(some) > 1:
        spread = variance([lift.difference for lift in lifts]) / len(some)
        wide = math.hypot(wide, t_critical(len(some) - 1) * math.sqrt(spread))
    return 100 * mean, 100 * (mean - wide), 100 * (mean + wide)


def tabled(every: Sequence[Cell]) -> str:
    """A table of the seeds that were fixed first; where there are more, one of all seeds of the tasks that have them;
    and TRL beside ours, where both have run."""
    tables = [_table([cell for cell in every if cell.seed in SEEDS])]
    if any(cell.seed in ADDED_SEEDS for cell in every):
        tables += [
            f"With seeds {' and '.join(map(str, ADDED_SEEDS))}, which were added later:",
            _table([cell for cell in every if cell.backend == "cpu" and cell.task in ADDED_TO]),
        ]
    by_key = {cell.key: cell for cell in every}
    pairs = [
        (by_key[task, "cpu", seed], cell)
        for (task, backend, seed), cell in by_key.items()
        if backend == "trl" and (task, "cpu", seed) in by_key
    ]
    if pairs:
        tables += ["TRL beside ours, from the same start and with as many samples:", _pairs_table(pairs)]
    return "\n\n".join(tables)


def _table(every: Sequence[Cell]) -> str:
    """A line for each task and trainer: the mean lift of what was kept with its interval, each seed's with its p-value,
    and the same of the last states."""
    lines = [
        "| task | stands for | trainer | seeds | start | kept | mean lift, 95 % | each seed (p) | kept step | "
        "last states | samples |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for some in grouped(every):
        first = some[0]
        lift, low, high = mean_lift(some)
        start = 100 * first.before / first.problems
        kept = 100 * fmean(cell.right("kept") / cell.problems for cell in some)
        steps = ", ".join(f"{cell.kept_step}{'↩' * cell.returns}" for cell in some)
        drawn_samples = round(fmean(cell.samples for cell in some))
        lines.append(
            f"| {first.task} | {first.kind} | {NAMES[first.backend]} | {len(some)} | {start:.1f} % | {kept:.1f} % | "
            f"{lift:+.1f} [{low:+.1f}, {high:+.1f}] | {_each(some, 'kept')} | {steps} | {_each(some, 'last')} | "
            f"{drawn_samples:,} |"
        )
    return "\n".join(lines)


def _pairs_table(pairs: Sequence[tuple[Cell, Cell]]) -> str:
    """A line for each task and seed: what ours kept and what TRL ended with, in percent."""
    lines = ["| task | seed | start | ns grpo, kept | TRL, last | ns grpo less TRL |", "|---|---|---|---|---|---|"]
    differences = []
    for own, other in pairs:
        start, kept, last = (
            100 * right / own.problems for right in (own.before, own.right("kept"), other.right("last"))
        )
        differences.append(kept - last)
        lines.append(f"| {own.task} | {own.seed} | {start:.1f} | {kept:.1f} | {last:.1f} | {kept - last:+.1f} |")
    return "\n".join([*lines, f"| mean | | | | | {fmean(differences):+.1f} |"])


def _each(some: Sequence[Cell], state: State) -> str:
    """The lift of each seed with its p-value; a star marks a run that its evaluations ended."""
    lifts = [(cell.lift(state), "*" if cell.ended_early else "") for cell in some]
    return ", ".join(f"{100 * lift.difference:+.1f} ({lift.p_value:.1g}){star}" for lift, star in lifts)


def judged(every: Sequence[Cell], tasks: Sequence[str]) -> str:
    """What was run, and on how many tasks ours lifts and harms: of the seeds that were fixed first, then of all."""
    fixed = [cell for cell in every if cell.seed in SEEDS]
    by_key = {(some[0].task, some[0].backend): some for some in grouped(fixed)}
    ours = {task: by_key[task, "cpu"] for task in tasks if (task, "cpu") in by_key}
    missing = [task for task in tasks if task not in ours]
    text = f"Of {len(tasks)} tasks, {len(ours)} were run ({sum(map(len, ours.values()))} runs); {_counted(ours)}"
    if missing:
        text += f" Not run yet: {', '.join(missing)}."
    if added := [f"{cell.task} {cell.seed}" for cell in every if cell.seed in ADDED_SEEDS]:
        more = {task: [cell for cell in every if (cell.task, cell.backend) == (task, "cpu")] for task in ours}
        text += f" With the seeds added later ({', '.join(added)}): {_counted(more)}"
    beside = {task: by_key[task, "trl"] for task in ours if (task, "trl") in by_key}
    if not beside:
        return f"{text} Not run yet: TRL."
    harmed = _harmed(beside.values(), "last")
    return f"{text} Beside TRL: {', '.join(beside)}; TRL is significantly worse than the start in: {harmed}."


def _counted(ours: Mapping[str, Sequence[Cell]]) -> str:
    """The tasks whose mean lift is above 0, those whose seeds all are better, and the seeds that are worse."""
    # One seed does not show how much seeds differ.
    lifted = [task for task, some in ours.items() if len(some) > 1 and mean_lift(some)[1] > 0]
    better = [task for task, some in ours.items() if len(some) > 1 and all(map(_is_better, some))]
    return (
        f"mean lift above 0 with 95 %: {len(lifted)} ({', '.join(lifted) or 'none'}). Every seed significantly better "
        f"(p < {SIGNIFICANT}): {len(better)} ({', '.join(better) or 'none'}). Significantly worse: "
        f"{_harmed(ours.values(), 'kept')}; last states: {_harmed(ours.values(), 'last')}."
    )


def _is_better(cell: Cell) -> bool:
    lift = cell.lift("kept")
    return lift.difference > 0 and lift.p_value < SIGNIFICANT


def _harmed(every: Iterable[Sequence[Cell]], state: State) -> str:
    """The seeds that are significantly worse than the start."""
    lifts = [(cell, cell.lift(state)) for some in every for cell in some]
    worse = [cell for cell, lift in lifts if lift.difference < 0 and lift.p_value < SIGNIFICANT]
    return ", ".join(f"{cell.task} seed {cell.seed}" for cell in worse) or "none"


def drawn(every: Sequence[Cell]) -> str:
    """A panel for each task: held-out problems right over steps, a line for each seed, a dot at what it kept."""
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
        if cell.backend == "cpu":
            across, down = place(cell.kept_step, cell.right("kept") / cell.problems).split(",")
            parts.append(f'<circle cx="{across}" cy="{down}" r="3.5" fill="{COLOURS[cell.backend]}"/>')
    return parts
