# SPDX-License-Identifier: Apache-2.0
"""The samples of a benchmark counted for it as a whole and for its subsets; a large file by several processes.

Several processes count parts of a file of which each line is a problem, and metrics whose counts of parts add up to
those of all (`ScoreMetric.divisible`): the numbers are those of one process, to the last digit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from msgspec import Struct

from newskills.base.protocols import Metric
from newskills.base.records import Failure, Row
from newskills.base.store import open_for_reading, read_rows
from newskills.metrics import make_metric
from newskills.metrics.counting.base import Counts, ScoreMetric, is_lost
from newskills.run.reporting.predictions import decoder_of, rows_between
from newskills.run.reporting.voting import with_vote_groups

ALL_SUBSETS = "_all_"
OWN_FIELDS: Mapping[str, Any] = {
    "subset_for_metrics": Any,
    "num_generated_tokens": int | float | None,
    "grader": Any,
}
LARGE_FILE_BYTES = 1 << 28
"""Bytes of a file from which on several processes are worth their start."""
PART_BYTES = 1 << 25
_FACTORY = "newskills.run.reporting.counted:make"
_CPU_SECONDS = 600.0


def fields_when_graded(metric: Metric, files: Sequence[Path]) -> Row:
    """Return the fields that a grader left in records and the metric reads, without their values: what a lost record
    lacks. Where no record is graded, those of verdicts. Raises DataError."""
    names: Mapping[str, Any] = getattr(metric, "score_fields", {})
    for row in (row for file in files for row in read_rows(file)):
        if row.get("outcome") != "unscored" and not is_lost(row):
            return {name: _number_keys(row[name]) for name in names if name in row}
    return {name: None for name, kind in names.items() if bool in get_args(kind)}


def _number_keys(value: Any) -> Any:
    """Return the keys under which numbers stand."""
    if isinstance(value, dict):
        return {
            key: _number_keys(inner)
            for key, inner in value.items()
            if isinstance(inner, dict | bool | int | float)
        }
    return None


class SubsetCounts:
    """`metrics`: subset → its metric, `ALL_SUBSETS` first; `graders`: those that the records name.

    `charged`: unscored samples that were counted as incorrect.
    """

    def __init__(
        self,
        fresh_metric: Callable[[], Metric],
        max_seq_len: int | None = None,
        grader: str = "",
        *,
        charged_as: Row | None = None,
    ) -> None:
        """Create empty tallies; `grader` compares the answers of records that name none. `charged_as`: what unscored
        samples, which count as incorrect then, lack of graded ones (`fields_when_graded`)."""
        self._fresh_metric, self._max_seq_len, self._grader = fresh_metric, max_seq_len, grader
        self._charged_as = charged_as
        self.charged = 0
        self.metrics = {ALL_SUBSETS: fresh_metric()}
        self.graders: set[str] = set()

    @property
    def fields(self) -> Mapping[str, Any]:
        """What is read of a record."""
        return {**OWN_FIELDS, **self.metrics[ALL_SUBSETS].fields}

    def update(self, predictions: Sequence[Row]) -> None:
        """Count the samples of one problem. Raises DataError as a metric does."""
        for row in predictions:
            if isinstance(grader := row.get("grader"), str):
                self.graders.add(grader)
        subsets = subsets_of(predictions[0])
        if self._max_seq_len is not None:
            predictions = _cut_predictions(predictions, self._max_seq_len, self.metrics[ALL_SUBSETS])
        if self._charged_as is not None:
            predictions = [self._charge_unscored(row) for row in predictions]
        metric = self.metrics[ALL_SUBSETS]
        if len(predictions) > 1 and isinstance(metric, ScoreMetric):
            predictions = with_vote_groups(predictions, metric, self._grader)
        metric.update(predictions)
        for subset in subsets:
            self._metric(subset).update(predictions)

    def _charge_unscored(self, row: Row) -> Row:
        """Return an unscored sample as an incorrect one, with the cause that it has; others as they are."""
        if row.get("outcome") != "unscored" and not is_lost(row):
            return row
        self.charged += 1
        cause = row.get("outcome_cause")
        return {
            **self.metrics[ALL_SUBSETS].incorrect({**(self._charged_as or {}), **row}),
            "outcome": "wrong",
            "outcome_cause": cause,
            "error": None,
        }

    def count_file(self, file: Path, metric: str, options: Row) -> bool:
        """Count the whole of `file`, by several processes; return False where that is not worth it, or does not go:
        nothing is counted then. `metric` with `options` is what the metrics are made of."""
        parts = None
        if self._may_divide(file):
            parts = _counted_parts(file, metric, options)
        for part in parts or ():
            self.graders.update(part.graders)
            for subset, counts in part.subsets:
                absorbing = self._metric(subset)
                assert isinstance(absorbing, ScoreMetric)
                absorbing.absorb(counts)
        return parts is not None

    def _may_divide(self, file: Path) -> bool:
        metric = self.metrics[ALL_SUBSETS]
        several = len(os.sched_getaffinity(0)) > 1 and file.exists() and file.stat().st_size >= LARGE_FILE_BYTES
        return (
            several
            and self._max_seq_len is None
            and self._charged_as is None
            and isinstance(metric, ScoreMetric)
            and metric.is_divisible
        )

    def _metric(self, subset: str) -> Metric:
        if subset not in self.metrics:
            self.metrics[subset] = self._fresh_metric()
        return self.metrics[subset]


def subsets_of(record: Row) -> list[str]:
    """Return the names of the subsets that a record counts for."""
    subset = record.get("subset_for_metrics")
    if subset is None:
        return []
    if isinstance(subset, list):
        return [str(name) for name in subset]
    return [str(subset)]


def _cut_predictions(predictions: Sequence[Row], max_seq_len: int, metric: Metric) -> list[Row]:
    return [
        metric.incorrect(row) if (row.get("num_generated_tokens") or 0) > max_seq_len else row
        for row in predictions
    ]


class PartCounts(Struct):
    """Of lines between two places of a file; `subsets` in the order in which they come."""

    subsets: list[tuple[str, Counts]]
    graders: list[str]


def _counted_parts(file: Path, metric: str, options: Row) -> list[PartCounts] | None:
    """Count the parts of a file in worker processes; None where a part fails, since who reads line by line then
    names the fault."""
    from newskills.base.pool.loop import PoolOptions  # only large files need it
    from newskills.base.pool.workers import WorkerPool

    config = {"file": str(file), "metric": metric, "options": options}
    limits = PoolOptions(cpu_seconds=_CPU_SECONDS, wall_seconds=10 * _CPU_SECONDS, memory=64 << 30, max_batch=1)
    parts = []
    with WorkerPool(_FACTORY, config, result_type=PartCounts, options=limits) as pool:
        for part in pool.map({"begin": begin, "end": end} for begin, end in _line_ranges(file)):
            if isinstance(part, Failure):
                return None
            parts.append(part)
    return parts


def _line_ranges(file: Path) -> Iterator[tuple[int, int]]:
    """Yield ranges of whole lines, about `PART_BYTES` bytes long."""
    size, begin = file.stat().st_size, 0
    with open_for_reading(file, 1 << 16) as lines:
        while begin < size:
            lines.seek(begin + PART_BYTES)
            lines.readline()
            end = min(lines.tell(), size)
            yield begin, end
            begin = end


def make(config: Row) -> Callable[[Row], PartCounts]:
    """Return a function that takes a range of a file and returns its counts; this is the factory that a `WorkerPool`
    calls."""
    file, metric, options = Path(config["file"]), config["metric"], config["options"]

    def count(part: Row) -> PartCounts:
        counted = SubsetCounts(lambda: make_metric(metric, **options))
        decoder = decoder_of({"id": Any, **counted.fields})
        for row in rows_between(file, decoder, part["begin"], part["end"]):
            counted.update([row])
        counts = {name: own.part_counts() for name, own in counted.metrics.items() if isinstance(own, ScoreMetric)}
        subsets = [(name, own) for name, own in counts.items() if own is not None]
        if len(subsets) < len(counted.metrics):
            raise ValueError("its records have rewards")
        return PartCounts(subsets, sorted(counted.graders))

    return count
