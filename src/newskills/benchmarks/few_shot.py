# SPDX-License-Identifier: Apache-2.0
"""Few-shot sets made of another split of the benchmark: the split's name, or `mmlu_few_shot_<subject>` and its like."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path

from newskills.base.benchmark import Benchmark
from newskills.base.records import Row
from newskills.base.registry import fold
from newskills.base.store import read_rows
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import load_rows, split_folder
from newskills.benchmarks.downloads.official import EXAMPLE_ORIGINS

PER_SET = 5
MOST = 100
"""Rows of a whole split that are at hand."""


def few_shot_rows(name: str, data_dir: str | Path | None, input_file: str | Path) -> Sequence[Row] | None:
    """Return the first rows of the split `name` beside `input_file`, or the five that have `name` as their
    `examples_type`.

    The latter come from the split beside `input_file`, else from the prepared one in `data_dir`. None for a name of no
    such set. Raises DataError with the command to type where a split is not prepared.
    """
    whole = Path(input_file).parent / f"{name}.jsonl"
    if "/" not in name and whole != Path(input_file) and whole.is_file():
        return _first_rows(whole, whole.stat().st_mtime_ns)
    wanted = fold(name)
    for prefix, (benchmark, split) in EXAMPLE_ORIGINS.items():
        if wanted.startswith(prefix):
            beside = Path(input_file).parent / f"{split}.jsonl"
            if beside.is_file() and (rows := _read_sets(beside).get(wanted)):
                return rows
            return _read_sets(load_rows(get_benchmark(benchmark), split, data_dir)).get(wanted)
    return None


def example_sets(benchmark: Benchmark) -> dict[str, list[Row]]:
    """Return the few-shot sets that rows of `benchmark` name, by their folded names, as far as they are prepared."""
    sets: dict[str, list[Row]] = {}
    for origin, split in EXAMPLE_ORIGINS.values():
        path = split_folder(get_benchmark(origin)) / f"{split}.jsonl"
        if origin == benchmark.name and path.is_file():
            sets |= _read_sets(path)
    return sets


def _read_sets(path: Path) -> dict[str, list[Row]]:
    return _by_set(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=8)
def _by_set(path: Path, version: int) -> dict[str, list[Row]]:
    rows_by_set: dict[str, list[Row]] = {}
    for row in read_rows(path):
        rows = rows_by_set.setdefault(fold(str(row.get("examples_type", ""))), [])
        if len(rows) < PER_SET:
            rows.append(row)
    return rows_by_set


@lru_cache(maxsize=8)
def _first_rows(path: Path, version: int) -> list[Row]:
    return list(islice(read_rows(path), MOST))
