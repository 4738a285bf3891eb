# SPDX-License-Identifier: Apache-2.0
"""Few-shot sets made of a benchmark's own development split: `mmlu_few_shot_<subject>`, `mmlu_pro_few_shot_<field>`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from newskills.base.records import Row
from newskills.base.registry import fold
from newskills.base.store import read_rows
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import load_rows

PER_SET = 5
# Beginning of the names of sets → benchmark and split that holds their rows.
_ORIGINS = {"mmlu_few_shot_": ("mmlu", "dev"), "mmlu_pro_few_shot_": ("mmlu-pro", "validation")}


def few_shot_rows(name: str, data_dir: str | Path | None, input_file: str | Path) -> Sequence[Row] | None:
    """The five examples that have `name` as their `examples_type`; None for a name of no such set.

    They come from the split beside `input_file`, else from the prepared one in `data_dir`. Raises DataError with the
    command to type where that is not prepared.
    """
    wanted = fold(name)
    for prefix, (benchmark, split) in _ORIGINS.items():
        if wanted.startswith(prefix):
            beside = Path(input_file).parent / f"{split}.jsonl"
            if beside.is_file() and (rows := _read(beside).get(wanted)):
                return rows
            return _read(load_rows(get_benchmark(benchmark), split, data_dir)).get(wanted)
    return None


def _read(path: Path) -> dict[str, list[Row]]:
    return _by_set(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=8)
def _by_set(path: Path, version: int) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in read_rows(path):
        rows = found.setdefault(fold(str(row.get("examples_type", ""))), [])
        if len(rows) < PER_SET:
            rows.append(row)
    return found
