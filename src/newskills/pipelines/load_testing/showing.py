# SPDX-License-Identifier: Apache-2.0
"""The table of a load test."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from newskills.base.tables import print_table, print_text
from newskills.config.layers import Resolved, explain
from newskills.pipelines.load_testing.prompts import PromptRows
from newskills.run.load_testing.figures import LatencySpread, LevelFigures
from newskills.run.load_testing.result import LoadTest


def show_load_test(test: LoadTest) -> None:
    """Print the levels, what must be known to read them, and the highest load within the limits."""
    limited, failing = bool(test.limits), any(figures.failed for figures in test.levels)
    head = ["load", "req/s", "tok/s", "TTFT", "TPOT", "ITL", "E2EL"]
    if limited:
        head.append("good")
    if failing:
        head.append("failed")
    print_table([_level_cells(figures, limited=limited, failing=failing) for figures in test.levels], head)
    print_text(f"TTFT, TPOT, ITL, E2EL: p50/p90/p99 in ms; tok/s: output tokens{_source_of_tokens(test)}")
    for figures in test.levels:
        if figures.errors:
            kinds = ", ".join(f"{kind} {number:,}" for kind, number in figures.errors.items())
            print_text(f"{figures.name}: {figures.failed:,} of {figures.requests:,} requests failed ({kinds})")
        for note in figures.notes:
            print_text(f"{figures.name}: {note}")
    if limited:
        print_text(_verdict_line(test))
    sys.stdout.write(f"records: {test.records}\n")


def show_settings(groups: Sequence[PromptRows]) -> None:
    """Print the settings of the requests, each with its origin."""
    for group in groups:
        resolved = Resolved(group.config, dict(group.origin))
        print_table([(f"++{key}", value, source) for key, value, source in explain(resolved)])


def _source_of_tokens(test: LoadTest) -> str:
    """Return who counted the output tokens, and what speaks for it."""
    events = [figures.tokens_per_event for figures in test.levels if figures.tokens_per_event]
    if not events:
        return ""
    if all(figures.without_usage == figures.completed for figures in test.levels):
        return " by events: the server reports no usage"
    words = f" by the server's usage, {min(events):.2f}"
    if f"{max(events):.2f}" != f"{min(events):.2f}":
        words += f"–{max(events):.2f}"
    words += " an event"
    counted = [figures.recounted for figures in test.levels if figures.recounted is not None]
    if counted:
        words += f"; the tokenizer counts {min(counted):.0%}"
        if f"{max(counted):.0%}" != f"{min(counted):.0%}":
            words += f"–{max(counted):.0%}"
        words += " of them"
    return words


def _level_cells(figures: LevelFigures, *, limited: bool, failing: bool) -> list[str]:
    spreads = (figures.ttft_ms, figures.tpot_ms, figures.itl_ms, figures.e2el_ms)
    cells = [
        figures.name,
        f"{figures.request_throughput:.2f}",
        f"{figures.output_throughput:.0f}",
        *(_spread_cell(spread) for spread in spreads),
    ]
    if limited:
        cells.append("–" if figures.good_share is None else f"{figures.good_share:.0%}")
    if failing:
        cells.append(f"{figures.failed:,}")
    return cells


def _spread_cell(spread: LatencySpread | None) -> str:
    if spread is None:
        return "–"
    return "/".join(_format_milliseconds(value) for value in (spread.p50, spread.p90, spread.p99))


def _format_milliseconds(value: float) -> str:
    if value < 10:
        return f"{value:.1f}"
    return f"{value:.0f}"


def _verdict_line(test: LoadTest) -> str:
    kind = test.levels[0].kind if test.levels else "load"
    bounds = ", ".join(f"{name} ≤ {value:g} ms" for name, value in test.limits.items())
    condition = f"{test.share:.0%} of requests within {bounds}"
    if test.highest is None:
        return f"no {kind} that was measured has {condition}"
    if test.highest:
        return f"highest {kind} with {condition}: {test.highest:g}"
    return f"{condition} also at {kind}=inf"
