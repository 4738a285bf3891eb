# SPDX-License-Identifier: Apache-2.0
"""Plans of evaluations as text of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

from newskills.base.terminal import printable
from newskills.view.comparison.planning import EvalPlan, PlanRow
from newskills.view.comparison.shown import align_columns, counted_points, wrap_text


def as_text(plan: EvalPlan) -> str:
    return printable("\n".join(_plan_lines(plan))) + "\n"


def _plan_lines(plan: EvalPlan) -> Iterator[str]:
    how = "on the same problems" if plan.paired else "on different problems"
    yield from wrap_text(
        f"{plan.benchmark}: to detect a difference of {counted_points(plan.delta)} between two models {how} "
        f"(p < 0.05 in {100 * plan.power:.0f} % of such comparisons), for each model:",
        "",
    )
    yield ""
    head = ("samples", "problems", "answers", "tokens", "time", "cost", "detectable")
    yield from align_columns([head, *map(_plan_row, plan.rows)])
    yield ""
    if plan.size is not None:
        yield from wrap_text(
            f"The benchmark has {plan.size:,} problems; * = more than that. detectable: the smallest difference, in "
            "points, that all of them detect.",
            "",
        )
    yield from wrap_text(f"Based on {plan.basis}.", "")
    if plan.paired:
        yield from wrap_text(
            "The test is that of ns compare: exact McNemar for one sample of each problem (scores 0 or 1), else t over "
            "problems.",
            "",
        )
    if plan.cost.output_tokens is None:
        yield from wrap_text(
            "The cost is unknown: give a run, or --benchmarks and --model for a probe of 20 problems.",
            "",
        )
    elif plan.cost.money is None:
        yield from wrap_text("The price is unknown: give --prices INPUT,OUTPUT for a million tokens.", "")


def _plan_row(row: PlanRow) -> tuple[str, ...]:
    mark = "*" if row.available is False else ""
    seconds = "—" if row.seconds is None else short_time(row.seconds)
    money = "—" if row.money is None else f"{row.money:,.2f}"
    detectable = "—" if row.detectable is None else f"{row.detectable:.1f}"
    return (
        str(row.samples),
        f"{row.problems:,}" + mark,
        f"{row.problems * row.samples:,}",
        short_number(row.tokens),
        seconds,
        money,
        detectable,
    )


def short_number(value: float | None) -> str:
    """Format a large number as `1.2M`; a dash for none."""
    if value is None:
        return "—"
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.1f}{unit}"
    return f"{value:.0f}"


def short_time(seconds: float) -> str:
    """Format seconds as `45 s`, `12 min` or `1.5 h`."""
    if seconds >= 5400:
        return f"{seconds / 3600:.1f} h"
    if seconds >= 90:
        return f"{seconds / 60:.0f} min"
    return f"{seconds:.0f} s"
