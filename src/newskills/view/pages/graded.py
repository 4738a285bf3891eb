# SPDX-License-Identifier: Apache-2.0
"""Scores between right and wrong (a share, a rating): what `ns compare` pairs, for the page that compares two runs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from newskills.base.errors import UserError
from newskills.run.reporting.results import BenchmarkResults
from newskills.view.comparison.records import read_benchmark, read_rows_with_verdicts
from newskills.view.discovery import BenchmarkFiles
from newskills.view.rows import sample_identity

_PROBED_RECORDS = 200
"""Records of a file that tell whether its scores are only 0 and 1."""
_MOST_KEPT = 8
_MOST_BINARY = 20_000
_LINE = "line "


class GradedScores(NamedTuple):
    """`name`: of the score; `by_problem`: 64 bits of a problem's id → its score in each file, None without one."""

    name: str
    by_problem: dict[int, Sequence[float | None]]


_Stamp = tuple[str, tuple[tuple[Path, int, int], ...]]
_kept: OrderedDict[_Stamp, GradedScores] = OrderedDict()
_binary: OrderedDict[_Stamp, None] = OrderedDict()
"""Results whose samples are right or wrong."""


def graded_scores(results: BenchmarkFiles) -> GradedScores | None:
    """Return the graded scores; None where samples are right or wrong and nothing between, or have no score of
    their own."""
    stamp = (results.name, tuple((file.path, file.size, file.changed) for file in results.files))
    if stamp in _binary:
        return None
    if stamp in _kept:
        return _kept[stamp]
    scores = _read_graded(results)
    if scores is None:
        _binary[stamp] = None
        while len(_binary) > _MOST_BINARY:
            _binary.popitem(last=False)
        return None
    _kept[stamp] = scores
    while len(_kept) > _MOST_KEPT:
        _kept.popitem(last=False)
    return scores


def _read_graded(results: BenchmarkFiles) -> GradedScores | None:
    item = BenchmarkResults(results.name, results.folder, tuple(file.path for file in results.files))
    try:
        if not _is_graded(item):
            return None
        records, _ = read_benchmark(item)
    except UserError:
        return None  # the page then tells right from wrong by the records' outcomes, as everywhere
    return GradedScores(
        records.score,
        {
            _index_identity(name): [None if sample is None else sample.score for sample in samples]
            for name, samples in records.samples.items()
        },
    )


def _is_graded(item: BenchmarkResults) -> bool:
    for file in item.files:
        rows = read_rows_with_verdicts(item._replace(files=(file,)), [])
        if any(row.sample.score not in (None, 0, 1) for row in islice(rows, _PROBED_RECORDS)):
            return True
    return False


def _index_identity(name: str) -> int:
    """Return the identity as the index counts it: records without an id are known by their place in the file."""
    if name.startswith(_LINE) and name.removeprefix(_LINE).isdigit():
        return sample_identity(None, int(name.removeprefix(_LINE)) - 1)
    return sample_identity(name, 0)
