# SPDX-License-Identifier: Apache-2.0
"""Benchmarks × runs: the score of each with its interval, what it cost, what was lost, and what differs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from newskills._version import __version__
from newskills.base.errors import UnknownNameError
from newskills.base.reading.json_values import object_or_empty
from newskills.base.records import Row
from newskills.base.stats import wilson_interval
from newskills.run.planning.spec import RUN_FILE
from newskills.view.discovery import BenchmarkFiles, Run
from newskills.view.files import (
    finite_number,
    is_newer,
    metrics_of,
    read_description,
    read_json,
    state_of,
)
from newskills.view.library import IndexedBenchmark, Library
from newskills.view.rows import OUTCOME_NAMES

PREFERRED_METRICS = ("symbolic_correct", "judge_correct", "is_correct", "accuracy", "correct")
NOT_SCORES = {"num_entries", "avg_tokens", "gen_seconds", "no_answer", "unscored", "num_benchmarks_in_group"}
NOT_SCORES |= {"prompt", "judge_prompt"}
_TOLD = ("prompt", "prompt_hash", "prompt_source", "grader", "version", "split", "model")


def overview_page(library: Library, *, run: str = "", benchmark: str = "") -> Row:
    """Return the overview of all runs and benchmarks, of one run, or of one benchmark; all but records is read.

    Raises UnknownNameError for a run or a benchmark that is not there.
    """
    catalog = library.catalog()
    shown = list(catalog.runs.values())
    if run:
        shown = [library.run(run)]
    runs: list[Row] = []
    for each in shown:
        names = sorted(name for name in each.benchmarks if benchmark in ("", name))
        if names:
            cells = {name: overview_cell(library, each, each.benchmarks[name]) for name in names}
            runs.append({"id": each.id, "folder": str(each.folder), "benchmarks": cells})
    if benchmark and not runs:
        raise UnknownNameError("benchmark", benchmark, {name for each in shown for name in each.benchmarks})
    runs.sort(key=_beginning_order)
    return {
        "version": __version__,
        "folders": [str(root) for root in library.folders.roots],
        "runs": runs,
        "benchmarks": sorted({name for each in runs for name in each["benchmarks"]}),
        "differences": setting_differences(library, [catalog.runs[each["id"]] for each in runs], benchmark),
        "trainings": sorted(catalog.trainings),
        "load_tests": sorted(catalog.load_tests),
        "notes": catalog.notes,
    }


def overview_cell(library: Library, run: Run, results: BenchmarkFiles, patience: float = 0) -> Row:
    """Return one benchmark of one run. Shares are of all samples, 0–1.

    Results without metrics are counted as far as they are indexed, which is waited for at most `patience` seconds;
    `counted` says how far, 0–1.
    """
    states = [state_of(library.folders, file) for file in results.files]
    modes, extended = metrics_of(library.folders, results)
    score = headline_score(modes, extended)
    counts = _outcome_counts(extended, states)
    running = any(file.unfinished for file in results.files)
    counted = 1.0
    if not sum(counts.values()):
        indexed = library.indexed(run.id, results.name, patience=patience)
        counts, counted = _indexed_outcomes(indexed), indexed.progress
    if score is None:
        score = _right_share(
            counts, max((int(finite_number(state.get("rows")) or 0) for state in states), default=0)
        )
    truncated = sum(_truncated_count(state) for state in states)
    total = sum(counts.values())
    began = [start for state in states if (start := finite_number(state.get("started")))]
    ended = [end for state in states if (end := finite_number(state.get("ended")))]
    done, rows = _sum_whole(states, "done"), _sum_whole(states, "rows")
    if running:
        done, rows = _run_progress(library, run, results, states)
    made_by = str(object_or_empty(extended.get("versions")).get("newskills") or "")
    seconds = None
    if began and len(ended) == len(began):
        seconds = max(ended) - min(began)
    newer = made_by if is_newer(made_by) else ""
    return {
        "score": score,
        "counts": counts,
        "total": total,
        "counted": counted,
        "truncated": truncated,
        "seeds": len(results.files),
        "input_tokens": _sum_or_none(states, "input_tokens"),
        "output_tokens": _sum_or_none(states, "output_tokens"),
        "cost": _sum_or_none(states, "cost"),
        "began": min(began, default=None),
        "seconds": seconds,
        "status": _run_status(states, running),
        "done": done,
        "rows": rows,
        "withheld": bool(extended.get("withheld")),
        "newer": newer,
        "imported": str(
            object_or_empty(read_description(library.folders, results).get("imported")).get("format") or ""
        ),
    }


def _sum_whole(states: Sequence[Row], name: str) -> int:
    return sum(int(finite_number(state.get(name)) or 0) for state in states)


def _run_progress(library: Library, run: Run, results: BenchmarkFiles, states: Sequence[Row]) -> tuple[int, int]:
    """Return (recorded rows, rows in the end) of a run at work, whose exit records are those of its start.

    Seeds whose turn has not come have no file yet: run.json names them, and each has as many rows as the others.
    """
    indexes = library.indexed(run.id, results.name, patience=0).indexes
    done = sum(
        max(len(index.columns("outcome")[0]), int(finite_number(state.get("done")) or 0))
        for index, state in zip(indexes, states, strict=True)
    )
    rows = _sum_whole(states, "rows")
    begun = {file.seed for file in results.files}
    units = read_json(library.folders, run.folder / RUN_FILE).get("units")
    if isinstance(units, list):
        described_units = [object_or_empty(unit) for unit in units]
    else:
        described_units = []
    planned = {finite_number(unit.get("seed")) for unit in described_units if unit.get("name") == results.name}
    missing = planned - begun
    return done, rows + len(missing) * rows // len(begun)


def _beginning_order(run: Row) -> tuple[float, str]:
    """Return the key that sorts earlier runs first, and those without a beginning last."""
    times = [cell["began"] for cell in run["benchmarks"].values() if cell["began"] is not None]
    return min(times, default=math.inf), run["id"]


def headline_score(modes: Mapping[str, Any], extended: Mapping[str, Any]) -> Row | None:
    """Return the score of the mode that averages over most samples, in per cent, with its interval; None where there is
    no score."""
    numbers = object_or_empty(extended.get("numbers"))
    names = [name for name in {**modes, **numbers} if name.startswith("pass@1")]
    if not names:
        names = list(numbers or modes)
    for mode in sorted(names, key=lambda name: (len(name), name), reverse=True):
        for metric, value in _mode_scores(object_or_empty(numbers.get(mode)), object_or_empty(modes.get(mode))):
            return {"mode": mode, "metric": metric, **value}
    return None


def _mode_scores(numbers: Row, metrics: Row) -> list[tuple[str, Row]]:
    """Return (metric, value with interval) of a mode, the usual ones first."""
    names = [name for name in {**numbers, **metrics} if name not in NOT_SCORES and "_interval" not in name]
    scores = []
    for name in sorted(
        names,
        key=lambda name: PREFERRED_METRICS.index(name) if name in PREFERRED_METRICS else len(PREFERRED_METRICS),
    ):
        extended = object_or_empty(numbers.get(name))
        value = finite_number(extended.get("value", metrics.get(name)))
        if value is not None:
            low, high = finite_number(extended.get("low")), finite_number(extended.get("high"))
            scores.append(
                (name, {"value": value, "low": low, "high": high, "n": finite_number(extended.get("n"))})
            )
    return scores


def _outcome_counts(extended: Row, states: Sequence[Row]) -> dict[str, int]:
    """Count samples by outcome: as the metrics say, else as the runs' records of themselves do."""
    if object_or_empty(extended.get("ledger")):
        ledgers = [object_or_empty(extended.get("ledger"))]
    else:
        ledgers = []
    ledgers = ledgers or [object_or_empty(state.get("ledger")) for state in states]
    return {
        name: sum(int(finite_number(ledger.get(name)) or 0) for ledger in ledgers)
        for name in ("correct", "wrong", "no_answer", "unscored")
    }


def _truncated_count(state: Row) -> int:
    ledger = object_or_empty(state.get("ledger"))
    by_cause = finite_number(object_or_empty(ledger.get("causes")).get("truncation")) or 0
    return int(max(by_cause, finite_number(object_or_empty(ledger.get("finish_reasons")).get("length")) or 0))


def _indexed_outcomes(indexed: IndexedBenchmark) -> dict[str, int]:
    """Count outcomes of the records, as far as they are indexed: of runs at work, and of results that have no
    metrics."""
    codes = [bytes(index.columns("outcome")[0]) for index in indexed.indexes]
    names = ("correct", "wrong", "no_answer", "unscored")
    return {name: sum(code.count(OUTCOME_NAMES.index(name)) for code in codes) for name in names}


def _right_share(counts: Mapping[str, int], problems: int) -> Row | None:
    """Return the right ones of those with a verdict, in per cent; the interval counts problems, since their
    samples correlate."""
    scored = counts["correct"] + counts["wrong"] + counts["no_answer"]
    if not scored:
        return None
    share = counts["correct"] / scored
    n = min(problems or scored, scored)
    low, high = (100 * bound for bound in wilson_interval(share, n))
    return {
        "mode": "from the records",
        "metric": "correct",
        "value": 100 * share,
        "low": low,
        "high": high,
        "n": n,
    }


def _sum_or_none(states: Sequence[Row], name: str) -> float | None:
    values = [value for state in states if (value := finite_number(state.get(name))) is not None]
    if values:
        return sum(values)
    return None


def _run_status(states: Sequence[Row], running: bool) -> str:
    statuses = {str(state.get("status")) for state in states if state.get("status")}
    if running:
        if "running" in statuses:
            return "running"
        return "unfinished"
    if statuses <= {"done"}:
        return "done"
    return next(iter(statuses - {"done"}))


def setting_differences(library: Library, runs: Sequence[Run], only: str = "") -> list[Row]:
    """Return the settings that are not the same in all runs that have a benchmark: rows of benchmark, setting, run →
    value. `only`: of this benchmark."""
    rows: list[Row] = []
    for benchmark in sorted({name for run in runs for name in run.benchmarks if only in ("", name)}):
        having = [run for run in runs if benchmark in run.benchmarks]
        if len(having) < 2:
            continue
        settings = {run.id: settings_of(library, run.benchmarks[benchmark]) for run in having}
        for name in dict.fromkeys(name for each in settings.values() for name in each):
            values = {run: each.get(name, "") for run, each in settings.items()}
            if len(set(values.values())) > 1:
                rows.append({"benchmark": benchmark, "setting": name, "values": values})
    return rows


def settings_of(library: Library, results: BenchmarkFiles) -> dict[str, str]:
    """Return the settings that were asked for, as texts by name."""
    state = state_of(library.folders, results.files[0])
    about = read_description(library.folders, results)
    settings = {name: str(value) for name, value in object_or_empty(state.get("settings")).items()}
    settings.pop("inference.random_seed", None)
    if "input_file" in settings:
        settings["data"] = settings.pop("input_file")
    settings |= {name: str(about[name]) for name in _TOLD if name in about and name not in settings}
    settings["seeds"] = str(len(results.files))
    origin = object_or_empty(about.get("imported"))
    if origin:
        settings |= {
            name: str(origin[key]) for name, key in (("system", "format"), ("model", "model")) if origin.get(key)
        }
    return settings
