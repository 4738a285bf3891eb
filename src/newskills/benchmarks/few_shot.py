# SPDX-License-Identifier: Apache-2.0
"""Few-shot sets made of a benchmark's own development split: `mmlu_few_shot_<subject>`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from newskills.base.records import Row
from newskills.base.registry import fold
from newskills.base.store import read_rows
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import load_rows

PREFIX = "mmlu_few_shot_"
SPLIT = "dev"
PER_SUBJECT = 5


def few_shot_rows(name: str, data_dir: str | Path | None, input_file: str | Path) -> Sequence[Row] | None:
    """The five examples of `mmlu_few_shot_<subject>`; None for any other name and any other subject.

    They come from `dev.jsonl` beside `input_file`, else from the prepared split in `data_dir`. Raises DataError
    with the command to type where that is not prepared.
    """
    wanted = fold(name)
    if not wanted.startswith(PREFIX):
        return None
    subject = wanted.removeprefix(PREFIX)
    beside = Path(input_file).parent / f"{SPLIT}.jsonl"
    if beside.is_file() and (rows := _read(beside).get(subject)):
        return rows
    return _read(load_rows(get_benchmark("mmlu"), SPLIT, data_dir)).get(subject)


def _read(path: Path) -> dict[str, list[Row]]:
    return _by_subject(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=8)
def _by_subject(path: Path, version: int) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in read_rows(path):
        rows = found.setdefault(fold(str(row.get("subtopic", ""))), [])
        if len(rows) < PER_SUBJECT:
            rows.append(row)
    return found
