# SPDX-License-Identifier: Apache-2.0
"""Reports as text: the table of each benchmark, and below it what else is known about its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from newskills.base.records import INSTRUMENT, Ledger, Number, Report, Row
from newskills.base.tables import stacked_blocks, wrap_text
from newskills.metrics.programs.agents import EFFORT

ACCEPT_LOST = 0.01
"""Share of attempts that may be unscored before the scores are withheld."""

ORDINARY_FINISHES = {"stop", "tool_calls"}
"""Finish reasons of replies that ended by themselves."""

MODE_COLUMN = "evaluation_mode"
NO_ANSWER = "no_answer"
COLUMN_JOINT = " | "


def render_tables(reports: Sequence[Report], accept_lost: float = ACCEPT_LOST, width: int | None = None) -> str:
    """Render all tables with blank lines around them; `accept_lost` is a share 0–1.

    What does not fit `width` columns goes into further blocks; None: each table is whole, as NeMo-Skills prints it.
    """
    blocks = []
    for report in reports:
        below = table_details(report, accept_lost, width)
        details = f"\n{below}" if below else ""
        blocks.append(score_table(report, accept_lost, width) + details)
    return "".join(f"\n{block}" for block in blocks) + "\n"


def score_table(report: Report, accept_lost: float = ACCEPT_LOST, width: int | None = None) -> str:
    """Render a table with one row per mode. Scores are withheld where too many attempts are unscored."""
    modes = _shown_modes(report)
    columns = _shown_columns(report, modes)
    hidden: list[str] = []
    if reason := _withheld_reason(report, accept_lost):
        hidden = [name for name in columns if any(name in _mode_numbers(report, mode) for mode in modes)] or [
            "score"
        ]
        columns = list(dict.fromkeys([*columns, *hidden]))
    rows = [[MODE_COLUMN, *columns]]
    for mode in modes:
        cells = [
            "—" if name in hidden else _table_cell(name, report.modes[mode], report.plain) for name in columns
        ]
        if hidden:
            cells[columns.index(hidden[0])] = f"— {reason}"
        rows.append([mode, *cells])
    return titled_table(report.benchmark, rows, width)


def table_details(report: Report, accept_lost: float = ACCEPT_LOST, width: int | None = None) -> str:
    """Render what stands below a table: 95 % intervals of its scores, problems left out of a mode, unscored
    samples with their causes, and finish reasons where not all are ordinary."""
    if not _withheld_reason(report, accept_lost):
        lines = _interval_lines(report, width)
    else:
        lines = []
    for sentence in (*_left_out(report), *_unscored_lines(report), *_finish_lines(report)):
        lines += wrap_text(sentence, width, hanging="  ")
    return "".join(f"{line}\n" for line in lines)


def _interval_lines(report: Report, width: int | None) -> list[str]:
    modes = [mode for mode in _shown_modes(report) if _mode_numbers(report, mode)]
    columns = _shown_columns(report, modes)
    names = [c for c in columns if any(c in _mode_numbers(report, mode) for mode in modes)]
    if not names:
        return []
    rows = [["95% intervals", *names]]
    rows += [
        [mode, *(_interval_text(report.numbers[mode].get(name), name in report.plain) for name in names)]
        for mode in modes
    ]
    return _part_blocks(stacked_blocks(rows, width, COLUMN_JOINT))


def _left_out(report: Report) -> list[str]:
    lines = []
    for mode in _shown_modes(report):
        entries = report.modes[mode].get("num_entries")
        counts = [number.n for number in _mode_numbers(report, mode).values()]
        if entries is not None and counts and min(counts) < entries:
            lines.append(f"{mode} leaves out {entries - min(counts)} of {entries} problems: samples are unscored.")
    return lines


def _unscored_lines(report: Report) -> list[str]:
    ledger = report.ledger
    if not ledger.unscored:
        return []
    causes = _blame_text(report)
    share = f"{ledger.unscored / ledger.total:.2%}"
    cause_text = f": {causes}" if causes else ""
    return [f"unscored: {ledger.unscored} of {ledger.total} samples ({share})" + cause_text]


def _finish_lines(report: Report) -> list[str]:
    counts = finish_counts(report.ledger)
    if counts:
        return [f"finish reasons: {counts}"]
    return []


def finish_counts(ledger: Ledger) -> str:
    """Format finish reasons as `stop 77, content_filter 23`; empty where all are ordinary."""
    reasons = ledger.finish_reasons
    if not reasons.keys() - ORDINARY_FINISHES:
        return ""
    return ", ".join(
        f"{reason} {n:,}" for reason, n in sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    )


def _withheld_reason(report: Report, accept_lost: float) -> str:
    """Return why the scores are not shown; empty where they are."""
    ledger = report.ledger
    if not ledger.total or ledger.lost / ledger.total <= accept_lost:
        return ""
    return f"({ledger.lost / ledger.total:.1%} lost: {_blame_text(report)})"


def _blame_text(report: Report) -> str:
    causes = [(cause, n) for cause, n in report.ledger.causes.items() if cause in INSTRUMENT]
    return ", ".join(f"{cause} {n}" for cause, n in sorted(causes, key=lambda item: (-item[1], item[0])))


def _shown_modes(report: Report) -> list[str]:
    return [mode for mode in report.shown or report.modes if mode in report.modes]


def _shown_columns(report: Report, modes: Sequence[str]) -> list[str]:
    """Return the wanted columns that some mode has; without a wish, all that hold a number or a text."""
    columns = dict.fromkeys(
        name for mode in modes for name, value in report.modes[mode].items() if not isinstance(value, dict | list)
    )
    return [name for name in report.columns or columns if name in columns]


def _mode_numbers(report: Report, mode: str) -> dict[str, Number]:
    return {name: number for name, number in report.numbers.get(mode, {}).items() if name != NO_ANSWER}


def _table_cell(name: str, metrics: Row, plain: Sequence[str] = ()) -> str:
    value: Any = metrics.get(name)
    if not isinstance(value, float):
        if value is None:
            return ""
        return str(value)
    if name in plain:
        return f"{value:.4f}"
    if name in EFFORT:
        if value >= 1:
            return f"{value:,.2f}"
        return f"{value:.3g}"
    deviation = metrics.get(f"{name}_statistics", {}).get("std_dev_across_runs")
    if deviation is None:
        return f"{value:.2f}%"
    return f"{value:.2f}% ± {100 * deviation:.2f}%"


def _interval_text(number: Number | None, plain: bool = False) -> str:
    if number is None:
        return ""
    if plain:
        return f"[{number.low:.4f}, {number.high:.4f}]"
    return f"[{number.low:.2f}%, {number.high:.2f}%]"


def titled_table(name: str, rows: Sequence[Sequence[str]], width: int | None = None) -> str:
    """Return a table under its name, in dashes as wide as its widest line; blocks after the first follow an empty
    line."""
    blocks = stacked_blocks(rows, width, COLUMN_JOINT)
    dashes = max(len(block[0]) for block in blocks)
    return "".join(f"{line}\n" for line in [f" {name} ".center(dashes, "-"), *_part_blocks(blocks)])


def _part_blocks(blocks: Sequence[Sequence[str]]) -> list[str]:
    return [line for block in blocks for line in ("", *block)][1:]
