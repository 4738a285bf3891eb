# SPDX-License-Identifier: Apache-2.0
"""The samples of a benchmark as columns: all files one after the other, with the number of the problem of each."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from newskills.base.records import Row
from newskills.view.folders import Folders
from newskills.view.library import IndexedBenchmark
from newskills.view.rows import OUTCOME_NAMES
from newskills.view.scans.viewed import label_columns

CORRECT_CODE = OUTCOME_NAMES.index("correct")
SCORED_CODES = tuple(OUTCOME_NAMES.index(name) for name in ("correct", "wrong", "no_answer"))
_ONE = bytes(code == CORRECT_CODE for code in range(256))
_MASK_SCORED = bytes(code in SCORED_CODES for code in range(256))


class Samples(NamedTuple):
    """Columns with one value for each sample, in the order of the files.

    sizes      samples of each file
    problem    number of the problem: equal for samples of the same id
    ids        64 bits of the id of each problem
    """

    sizes: list[int]
    problem: array[int]
    ids: array[int]
    tokens: array[int]
    subset: array[int]
    outcome: array[int]
    cause: array[int]
    finish: array[int]
    subsets: list[str]
    causes: list[str]
    finishes: list[str]


def samples_of(indexed: IndexedBenchmark) -> Samples:
    """Return the samples of the benchmark that are indexed by now."""
    names = ("id", "tokens", "subset", "outcome", "cause", "finish")
    each = [index.columns(*names) for index in indexed.indexes]
    heads = [index.head for index in indexed.indexes]
    tables: list[list[str]] = []
    joined: list[array[int]] = []
    for place, kind in ((2, "subsets"), (4, "causes"), (5, "finishes")):
        lists = [getattr(head, kind) for head in heads]
        table = list(dict.fromkeys(name for names in lists for name in names)) or [""]
        tables.append(table)
        joined.append(_renumber_column([columns[place] for columns in each], lists, table))
    problem, ids = _problem_numbers([columns[0] for columns in each])
    return Samples(
        sizes=[len(columns[0]) for columns in each],
        problem=problem,
        ids=ids,
        tokens=_join_columns([columns[1] for columns in each], "I"),
        subset=joined[0],
        outcome=_join_columns([columns[3] for columns in each], "B"),
        cause=joined[1],
        finish=joined[2],
        subsets=tables[0],
        causes=tables[1],
        finishes=tables[2],
    )


def by_problem(samples: Samples) -> tuple[bytearray | array[int], bytearray | array[int]]:
    """Return (correct samples, scored samples) of each problem, by its number."""
    right = bytes(samples.outcome).translate(_ONE)
    scored = bytes(samples.outcome).translate(_MASK_SCORED)
    size = len(samples.ids)
    if len(samples.sizes) < 256 and all(count == size for count in samples.sizes) and _is_aligned(samples, size):
        return _add_flags(right, size, len(samples.sizes)), _add_flags(scored, size, len(samples.sizes))
    corrects, totals = array("I", bytes(4 * size)), array("I", bytes(4 * size))
    for number, problem in enumerate(samples.problem):
        corrects[problem] += right[number]
        totals[problem] += scored[number]
    return corrects, totals


def encode_samples(folders: Folders, indexed: IndexedBenchmark, samples: Samples) -> bytes:
    """Encode samples for the page: length of a JSON head (4 bytes, little-endian), the head, padding to 4, then
    the columns, those of scanners last."""
    scans = label_columns(folders, indexed, samples.sizes)
    head: Row = {
        "rows": len(samples.outcome),
        "problems": len(samples.ids),
        "outcomes": OUTCOME_NAMES,
        "subsets": samples.subsets,
        "causes": samples.causes,
        "finishes": samples.finishes,
        "scans": [{"name": scan.scanner, "labels": scan.labels} for scan in scans],
        "files": [
            {
                "name": index.file.path.name,
                "seed": index.file.seed,
                "rows": size,
                "damaged": index.head.damaged,
                "unfinished": index.file.unfinished,
            }
            for index, size in zip(indexed.indexes, samples.sizes, strict=True)
        ],
        "progress": indexed.progress,
    }
    text = msgspec.json.encode(head)
    text += b" " * (-len(text) % 4)
    wide = [samples.problem, samples.tokens, samples.subset]
    if sys.byteorder == "big":
        wide = [array(column.typecode, column) for column in wide]
        for column in wide:
            column.byteswap()
    narrow = [samples.outcome, samples.cause, samples.finish]
    codes = [*(column.tobytes() for column in [*wide, *narrow]), *(scan.codes for scan in scans)]
    return b"".join([len(text).to_bytes(4, "little"), text, *codes])


def _problem_numbers(ids: Sequence[array[int]]) -> tuple[array[int], array[int]]:
    """Return (number of the problem of each sample, id of each problem). Files in the same order need no search."""
    if not ids:
        return array("I"), array("Q")
    first = max(ids, key=len)
    if all(column == first[: len(column)] for column in ids) and len(set(first)) == len(first):
        numbers = array("I", range(len(first)))
        return _join_columns([numbers[: len(column)] for column in ids], "I"), first
    numbers_by_id: dict[int, int] = {}
    problem = array(
        "I", (numbers_by_id.setdefault(identity, len(numbers_by_id)) for column in ids for identity in column)
    )
    return problem, array("Q", numbers_by_id)


def _is_aligned(samples: Samples, size: int) -> bool:
    return samples.problem[:size].tobytes() * len(samples.sizes) == samples.problem.tobytes()


def _add_flags(flags: bytes, size: int, files: int) -> bytearray:
    """Return the sums of bytes that lie `size` apart: large integers are added, which needs no loop over samples."""
    total = sum(int.from_bytes(flags[number * size : (number + 1) * size], "little") for number in range(files))
    return bytearray(total.to_bytes(size, "little"))


def _renumber_column(columns: Sequence[array[int]], lists: Sequence[list[str]], table: list[str]) -> array[int]:
    code = columns[0].typecode if columns else "B"
    made = []
    for column, names in zip(columns, lists, strict=True):
        if names == table[: len(names)]:
            made.append(column)
        else:
            new = [table.index(name) for name in names]
            made.append(array(code, (new[value] for value in column)))
    return _join_columns(made, code)


def _join_columns(columns: Sequence[array[int]], code: str) -> array[int]:
    joined = array(code)
    for column in columns:
        joined.extend(column)
    return joined
