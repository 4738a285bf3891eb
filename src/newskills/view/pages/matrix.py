# SPDX-License-Identifier: Apache-2.0
"""Runs × benchmarks as one matrix: scores, what was lost, and what is significant beside a run that is pinned."""

from __future__ import annotations

import math
import re
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence

from newskills._version import __version__
from newskills.base.paired import SIGNIFICANCE_LEVEL, PairedTest, holm, paired_test
from newskills.base.reading.json_values import object_or_empty
from newskills.base.records import Row
from newskills.view.discovery import BenchmarkFiles, Run
from newskills.view.files import finite_number
from newskills.view.library import Library
from newskills.view.pages.comparison import paired_scores, read_side
from newskills.view.pages.overview import overview_cell, settings_of
from newskills.view.summaries import CellSummary, Read, Summaries

LONGEST_VALUE = 200
"""Characters of a setting's value."""
MOST_SETTINGS = 40
"""Settings that runs may be grouped by."""
WITHHELD = "withheld"
READING = "reading"
"""State of what has not been read yet."""
TURN_SECONDS = 0.8
"""Time of one answer about differences; what is not there by then is asked for again."""
INDEX_SECONDS = 2.0
"""Time to wait for the index of results without metrics; what is not counted by then is asked for again."""
UNFINISHED = ""
"""Fingerprint of a summary that is not final."""
MOST_TESTS = 50_000
_STEP = re.compile(
    r"(?:^|[/_.-])(?:global_?)?(?:step|checkpoint|ckpt|iter)[_=-]?(\d+)(?![\d.]*[bm])", re.IGNORECASE
)
_SIZE = re.compile(r"(?<![a-z\d.])(\d+(?:\.\d+)?)\s?([bm])(?![a-z\d])", re.IGNORECASE)
_BILLIONS = {"b": 1.0, "m": 1e-3}
_MODEL = ("server.model", "model")
_NOT_COMPARED = ("data", "seeds")
"""Settings of a benchmark rather than of a run."""


def score_matrix(library: Library) -> Row:
    """Return scores of all runs on all benchmarks, as far as they are read; `pending` says of how many they are not.

    A cell is [number of the benchmark, score, low, high (per cent), samples, unscored, truncated, state].
    """
    catalog = library.catalog()

    def reader(run: Run, results: BenchmarkFiles) -> Read:
        return _read_summary(library, run, results)

    summaries = library.summaries(reader)
    summaries.ask(catalog, library.patience)
    names = sorted({name for run in catalog.runs.values() for name in run.benchmarks}, key=_name_order)
    places = {name: place for place, name in enumerate(names)}
    by_run = {run.id: _summaries_of(summaries, run) for run in catalog.runs.values()}
    settings = {run: summaries.common_settings(list(each.values())) for run, each in by_run.items()}
    differing = _differing_settings(settings)
    runs = [
        {
            "id": run,
            "began": min((summary.began for summary in each.values() if summary.began is not None), default=None),
            "model": _model_name(settings[run]),
            "step": _training_step(run, settings[run]),
            "size": _model_billions(run, settings[run]),
            "settings": [settings[run].get(name, "") for name in differing],
            "cells": [_matrix_cell(places[name], each.get(name)) for name in sorted(catalog.runs[run].benchmarks)],
        }
        for run, each in by_run.items()
    ]
    runs.sort(key=_run_order)
    return {
        "version": __version__,
        "folders": [str(root) for root in library.folders.roots],
        "benchmarks": [{"name": name, "metric": _common_metric(by_run, name)} for name in names],
        "settings": differing,
        "runs": runs,
        "pending": summaries.pending,
        "trainings": sorted(catalog.trainings),
        "load_tests": sorted(catalog.load_tests),
        "notes": catalog.notes,
    }


def differences_to(library: Library, baseline: str, others: Sequence[str]) -> Row:
    """Return what is significant between a run and others, from samples of the same problems.

    `runs`: name → benchmark → [points more than the baseline, p-value adjusted by Holm's method over the benchmarks of
    the run, problems, verdict]. `pending`: samples are still being read; ask again. Raises UnknownNameError.
    """
    ends = time.monotonic() + max(TURN_SECONDS, library.patience)
    first = library.run(baseline)
    tests: dict[str, dict[str, PairedTest]] = {}
    pending = False
    for name in others:
        other = library.run(name)
        tests[name] = {}
        for benchmark in first.benchmarks:
            if benchmark not in other.benchmarks or name == baseline:
                continue
            key = (first.benchmarks[benchmark].fingerprint, other.benchmarks[benchmark].fingerprint)
            if key not in _tests and time.monotonic() < ends:
                _make_test(library, key, (baseline, name, benchmark))
            test = _tests.get(key)
            pending = pending or key not in _tests
            if test is not None:
                tests[name][benchmark] = test
    return {
        "baseline": baseline,
        "runs": {name: _judged_tests(each) for name, each in tests.items()},
        "pending": pending,
    }


_tests: OrderedDict[tuple[str, str], PairedTest | None] = OrderedDict()
"""Of two benchmarks by their fingerprints; None where they have fewer than two problems in common."""


def _make_test(library: Library, key: tuple[str, str], place: tuple[str, str, str]) -> None:
    """Pair the samples of two runs, if all of them are indexed by now."""
    baseline, other, benchmark = place
    indexed = [library.indexed(run, benchmark, patience=0) for run in (baseline, other)]
    if any(each.progress < 1 for each in indexed):
        return
    scores = paired_scores(*(read_side(library, run, benchmark) for run in (baseline, other)))
    _tests[key] = None
    if len(scores) > 1:
        _tests[key] = paired_test([a for a, _ in scores], [b for _, b in scores])
    while len(_tests) > MOST_TESTS:
        _tests.popitem(last=False)


def _judged_tests(tests: Mapping[str, PairedTest]) -> Row:
    adjusted = holm([test.p_value for test in tests.values()])
    judged = {}
    for (benchmark, test), p_value in zip(tests.items(), adjusted, strict=True):
        verdict = "not significant"
        if p_value < SIGNIFICANCE_LEVEL:
            verdict = "better" if test.difference > 0 else "worse"
        judged[benchmark] = [100 * test.difference, p_value, test.n, verdict]
    return judged


def _read_summary(library: Library, run: Run, results: BenchmarkFiles) -> Read:
    shown = overview_cell(library, run, results, patience=INDEX_SECONDS)
    score = object_or_empty(shown["score"])
    settings = {name: value[:LONGEST_VALUE] for name, value in settings_of(library, results).items()}
    status = WITHHELD if shown["withheld"] else shown["status"]
    fingerprint = results.fingerprint if shown["counted"] == 1 else UNFINISHED
    summary = CellSummary(
        fingerprint,
        str(score.get("metric") or ""),
        finite_number(score.get("value")),
        finite_number(score.get("low")),
        finite_number(score.get("high")),
        shown["total"],
        shown["counts"]["unscored"],
        shown["truncated"],
        shown["began"],
        status,
        (),
    )
    return Read(summary=summary, settings=settings)


def _summaries_of(summaries: Summaries, run: Run) -> dict[str, CellSummary]:
    summaries_by_name = {name: summaries.latest(results) for name, results in run.benchmarks.items()}
    return {name: summary for name, summary in summaries_by_name.items() if summary is not None}


def _differing_settings(settings: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return names of settings that are not the same in all runs, those with the fewest values first."""
    values: dict[str, set[str]] = {}
    for each in settings.values():
        for name in each:
            values.setdefault(name, set())
    for name, seen in values.items():
        seen.update(each.get(name, "") for each in settings.values())
    names = [name for name, seen in values.items() if len(seen) > 1 and name not in (*_MODEL, *_NOT_COMPARED)]
    return sorted(names, key=lambda name: (len(values[name]), name))[:MOST_SETTINGS]


def _run_order(run: Row) -> tuple[float, float, str]:
    """Return the key that sorts earlier runs first, then earlier steps; what is not known comes last."""
    began, step = run["began"], run["step"]
    beginning = math.inf if began is None else began
    training_step = math.inf if step is None else step
    return (beginning, training_step, run["id"])


def _name_order(name: str) -> list[str | int]:
    """Return the key that sorts the numbers within names by their size."""
    parts = re.split(r"(\d+)", name)
    return [int(part) if place % 2 else part for place, part in enumerate(parts)]


def _matrix_cell(place: int, summary: CellSummary | None) -> list[float | str | None]:
    if summary is None:
        return [place, None, None, None, 0, 0, 0, READING]
    scores: list[float | None] = [None, None, None]
    if summary.status != WITHHELD:
        scores = [_round_or_none(value) for value in (summary.value, summary.low, summary.high)]
    return [place, *scores, summary.total, summary.unscored, summary.truncated, summary.status]


def _round_or_none(value: float | None) -> float | None:
    if value is None:
        return None
    return round(value, 3)


def _common_metric(by_run: Mapping[str, Mapping[str, CellSummary]], benchmark: str) -> str:
    metrics = [
        summaries_by_name[benchmark].metric
        for summaries_by_name in by_run.values()
        if benchmark in summaries_by_name
    ]
    return max(set(metrics), key=metrics.count, default="").replace("_", " ")


def _model_name(settings: Mapping[str, str]) -> str:
    return next((settings[name] for name in _MODEL if settings.get(name)), "")


def _training_step(run: str, settings: Mapping[str, str]) -> int | None:
    """Return the training step that the name of a run or of its model tells."""
    for text in (run, _model_name(settings)):
        if steps := _STEP.findall(text):
            return int(steps[-1])
    return None


def _model_billions(run: str, settings: Mapping[str, str]) -> float | None:
    """Return the size in billions of weights that the name of a model or run tells."""
    for text in (_model_name(settings), run):
        if match := _SIZE.search(text):
            return float(match[1]) * _BILLIONS[match[2].lower()]
    return None
