# SPDX-License-Identifier: Apache-2.0
"""The table `comparisons`: each run against one of them, benchmark by benchmark, with the figures of `ns compare`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from newskills.base.errors import DataError, UnknownNameError
from newskills.view.analysis.arrow import import_pyarrow, table_of
from newskills.view.analysis.folders import FolderPath, find_results
from newskills.view.comparison import BenchmarkComparison, CompareOptions, compare_run_folders
from newskills.view.comparison.ingredients import must_agree
from newskills.view.filters.columns import Column

if TYPE_CHECKING:
    import pyarrow

COMPARISON_COLUMNS = (
    Column(name="baseline", kind="word", meaning="run that the others are compared with"),
    Column(name="run", kind="word", meaning="run that is compared with it"),
    Column(name="benchmark", kind="word", meaning="benchmark that both have"),
    Column(name="score", kind="word", meaning="name of the score that is compared"),
    Column(
        name="baseline_value", kind="number", unit="percent", meaning="score of the baseline on these problems"
    ),
    Column(name="value", kind="number", unit="percent", meaning="score of the run on these problems"),
    Column(name="difference", kind="number", unit="points", meaning="value less baseline_value"),
    Column(name="low", kind="number", unit="points", meaning="lower end of the 95 % interval of the difference"),
    Column(name="high", kind="number", unit="points", meaning="upper end of the 95 % interval of the difference"),
    Column(name="p_value", kind="number", meaning="p-value of the paired test"),
    Column(name="p_adjusted", kind="number", meaning="p-value after Holm's adjustment for all rows of this table"),
    Column(name="verdict", kind="word", meaning="better, worse or undecided, by p_adjusted"),
    Column(name="method", kind="word", meaning="test that was used"),
    Column(name="problems", kind="whole", unit="problems", meaning="problems with a score on both sides"),
    Column(name="pairs", kind="whole", unit="samples", meaning="pairs of samples with a score on both sides"),
    Column(name="unscored", kind="whole", unit="samples", meaning="pairs left out because a side is unscored"),
    Column(name="gained", kind="whole", unit="problems", meaning="problems on which the run is better"),
    Column(name="lost", kind="whole", unit="problems", meaning="problems on which the run is worse"),
    Column(
        name="minimum_significant",
        kind="number",
        unit="points",
        meaning="minimum significant difference in these data",
    ),
    Column(
        name="minimum_detectable",
        kind="number",
        unit="points",
        meaning="true difference that 80 % of such comparisons detect",
    ),
    Column(name="not_worse", kind="flag", meaning="the interval excludes a loss of more than the margin"),
)


def comparisons(
    paths: FolderPath | Sequence[FolderPath],
    baseline: str | None = None,
    *,
    benchmarks: Sequence[str] = (),
    allow: Sequence[str] = (),
    margin: float = 1.0,
) -> pyarrow.Table:
    """Return the runs below `paths`, each compared with the `baseline`, a name of the column `run` (None: the first).

    benchmarks   only these; empty: all that both runs have
    allow        compare although the runs differ in it: data, prompt, grader
    margin       points that a run may lose and still count as not worse

    Raises ConfigError (pyarrow is missing, fewer than two runs), DataError (no results, nothing to compare, runs that
    differ in what is not allowed), UnknownNameError (baseline).
    """
    import_pyarrow()
    results = find_results(paths)
    names = [run.id for run in results.runs]
    if len(names) < 2:
        raise DataError(f"A comparison needs two runs; there is only {names[0]}.")
    if baseline is not None and baseline not in names:
        raise UnknownNameError("run", baseline, names)
    runs = sorted(results.runs, key=lambda run: run.id != (baseline or names[0]))
    options = CompareOptions(benchmarks=tuple(benchmarks), allow=must_agree(",".join(allow)), margin=margin)
    comparison = compare_run_folders([run.folder for run in runs], options)
    shown = {compared.name: run.id for compared, run in zip(comparison.runs, runs, strict=True)}
    notes = [*results.notes, *comparison.notes]
    notes += [f"{benchmark} is not compared: {why}" for benchmark, why in comparison.left_out.items()]
    return table_of(COMPARISON_COLUMNS, [_comparison_row(item, shown) for item in comparison.benchmarks], notes)


def _comparison_row(item: BenchmarkComparison, shown: dict[str, str]) -> list[Any]:
    row: dict[str, Any] = {
        "baseline": shown[item.before.run],
        "run": shown[item.after.run],
        "baseline_value": item.before.value,
        "value": item.after.value,
        "minimum_significant": item.smallest_significant,
    }
    row |= {column.name: getattr(item, column.name) for column in COMPARISON_COLUMNS if column.name not in row}
    return [row[column.name] for column in COMPARISON_COLUMNS]
