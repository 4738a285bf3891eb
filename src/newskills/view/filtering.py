# SPDX-License-Identifier: Apache-2.0
"""Samples of a benchmark for which a filter is true, in turns: each goes on from where the one before ended."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from newskills.base.records import Row
from newskills.base.store import LONGEST_LINE
from newskills.run.reporting.predictions import Decoder, decoder_of
from newskills.view.filters.columns import UNGRADED, SampleFacts
from newskills.view.filters.matching import OUTCOMES as FILTER_OUTCOMES
from newskills.view.filters.matching import fields_of_filter, filter_predicate, sample_filter
from newskills.view.folders import Folders
from newskills.view.index import FileIndex
from newskills.view.library import IndexedBenchmark
from newskills.view.pages.graded import GradedScores, graded_scores
from newskills.view.records import read_record
from newskills.view.rows import DAMAGED_CODE, NO_TOKENS, OUTCOME_NAMES
from newskills.view.scans.viewed import filter_columns, label_columns

TURN_SECONDS = 0.25
LOOK_AT_CLOCK_EVERY = 256
"""Records between two looks at the clock."""
INDEXED_FIELDS = frozenset({"num_generated_tokens", "finish_reason"})
"""Keys of a record that the index holds whole, so that the record is not read for them."""
_SCORES = {"correct": 1.0, "wrong": 0.0, "no_answer": 0.0}


def filter_names(folders: Folders, indexed: IndexedBenchmark) -> list[Row]:
    """Return what a filter may name: each column with its meaning, and the values that are known for all samples."""
    labels = label_columns(folders, indexed, [index.rows for index in indexed.indexes])
    values = {"outcome": list(FILTER_OUTCOMES)} | {column.scanner: column.labels for column in labels}
    return [
        {
            "name": column.name,
            "meaning": column.meaning,
            "is_number": column.kind in ("whole", "number"),
            "values": values.get(column.name, []),
        }
        for column in filter_columns(folders, indexed).values()
    ]


def filter_records(folders: Folders, indexed: IndexedBenchmark, text: str, file: int, number: int) -> Row:
    """Find records, as [file, number], for which the filter `text` is true, from record `number` of `file` on.

    `next` is where to go on, None at the end; `done` and `total` are records. Raises ConfigError for a filter that
    cannot be read, UnknownNameError for a name that it has and samples have not.
    """
    columns = filter_columns(folders, indexed)
    tree = sample_filter(text, columns)
    fits, fields = filter_predicate(tree, columns), fields_of_filter(tree, columns)
    until = time.monotonic() + TURN_SECONDS
    hits: list[list[int]] = []
    next_place: list[int] | None = None
    for place in range(file, len(indexed.indexes)):
        start = number if place == file else 0
        for record, facts in enumerate(_sample_facts(indexed, place, start, fields), start):
            if facts is not None and fits(facts):
                hits.append([place, record])
            if record % LOOK_AT_CLOCK_EVERY == 0 and record > start and time.monotonic() > until:
                next_place = [place, record + 1]
                break
        if next_place is not None:
            break
    sizes = [index.rows for index in indexed.indexes]
    total = sum(sizes)
    if next_place is None:
        done = total
    else:
        done = sum(sizes[: next_place[0]]) + next_place[1]
    return {"hits": hits, "next": next_place, "done": done, "total": total}


def _sample_facts(
    indexed: IndexedBenchmark, place: int, start: int, fields: set[str]
) -> Iterator[SampleFacts | None]:
    """Yield what a filter may ask of each record of a file from `start` on; None for a line that is no record."""
    index = indexed.indexes[place]
    graded = graded_scores(indexed.results)
    outcomes, causes, identities = (column[start:] for column in index.columns("outcome", "cause", "id"))
    seed = indexed.results.files[place].seed
    rows = _record_rows(index, start, fields)
    for number, (code, cause, identity, row) in enumerate(
        zip(outcomes, causes, identities, rows, strict=False), start + 1
    ):
        if code == DAMAGED_CODE or row is None:
            yield None
            continue
        if "id" in fields and row.get("id") in (None, ""):
            row["id"] = f"line {number}"
        outcome = OUTCOME_NAMES[code] or UNGRADED
        if graded is None:
            score = _SCORES.get(outcome)
        else:
            score = _graded_score(graded, identity, place)
        cause_name = index.head.causes[cause] or None
        yield SampleFacts(indexed.run.id, indexed.results.name, seed, outcome, cause_name, score, row)


def _record_rows(index: FileIndex, start: int, fields: set[str]) -> Iterator[Row | None]:
    """Yield the `fields` of each record from `start` on, out of the index where it has them."""
    if index.file.unfinished:
        for number in range(start, index.rows):
            yield read_record(index, number).row
    elif fields <= INDEXED_FIELDS:
        tokens, finishes = (column[start:] for column in index.columns("tokens", "finish"))
        for length, finish in zip(tokens, finishes, strict=True):
            num_generated_tokens = None if length == NO_TOKENS else length
            yield {
                "num_generated_tokens": num_generated_tokens,
                "finish_reason": index.head.finishes[finish] or None,
            }
    else:
        decoder = decoder_of(dict.fromkeys(fields, Any))
        for line in index.lines(range(start, index.rows), LONGEST_LINE):
            if line is None:
                yield None
            else:
                yield _decode_row(decoder, line)


def _decode_row(decoder: Decoder, line: bytes) -> Row | None:
    try:
        return decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _graded_score(graded: GradedScores, identity: int, place: int) -> float | None:
    scores: Sequence[float | None] = graded.by_problem.get(identity, ())
    if place < len(scores):
        return scores[place]
    return None
