# SPDX-License-Identifier: Apache-2.0
"""The answer of several runs to each problem: by votes, or by the scores of a reward model."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Literal

from msgspec import Struct

from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.base.store import atomic_write, encode_line
from newskills.graders.math.extraction import ExtractionPolicy, extract_by_policy
from newskills.graders.voting.groups import group_votes
from newskills.metrics.counting.base import REWARD_FIELD
from newskills.run.records.record import VERDICT_FIELDS
from newskills.run.reporting.results import read_output
from newskills.run.reporting.voting import comparison_of

Way = Literal["majority", "majority_rm", "highest_rm"]
AGGREGATED_FILE = "output-agg.jsonl"


class FillOptions(Struct, frozen=True, kw_only=True):
    """What is written into each record.

    key              field that gets the answer
    keep_filled      leave records alone whose field has a value already
    verdict          `symbolic_correct` says whether the record gives that answer; otherwise it is removed
    """

    key: str = "expected_answer"
    keep_filled: bool = False
    verdict: bool = True


class Winner(Struct, frozen=True, kw_only=True):
    """The answer to one problem, and who gave it: `groups` has for each sample the answer that it counts for.

    `score` is the number of votes, or what the reward model gives. Without any answer `answer` is None.
    """

    answer: str | None
    score: float
    groups: Sequence[str | None]
    chosen: int = 0


def common_answer(samples: Sequence[Row | None], way: Way) -> Winner:
    """Return the answer of `samples` of one problem, None standing for a sample that is missing.

    Answers of the same value count together. Of equals the one that was seen first wins.
    Raises DataError where a score of the reward model is missing or no finite number.
    """
    records = [row for row in samples if row is not None]
    answers = [None if row is None else _row_answer(row) for row in samples]
    same = comparison_of(records, "math")
    groups = answers if same is None else group_votes(answers, same)
    voting = [at for at, group in enumerate(groups) if group is not None]
    if not voting:
        return Winner(answer=None, score=0, groups=groups)
    worth = {at: 1.0 if way == "majority" else _row_reward(samples[at]) for at in voting}
    totals: dict[str | None, float] = {}
    for at in voting:
        group = groups[at]
        if group not in totals:
            totals[group] = worth[at]
        elif way == "highest_rm":
            totals[group] = max(totals[group], worth[at])
        else:
            totals[group] += worth[at]
    answer = max(totals, key=totals.__getitem__)
    members = [at for at in voting if groups[at] == answer]
    if way == "majority":
        chosen = members[0]
    else:
        chosen = max(members, key=worth.__getitem__)
    return Winner(answer=answer, score=totals[answer], groups=groups, chosen=chosen)


def fill_answers(
    files: Sequence[Path], outputs: Sequence[Path], way: Way, options: FillOptions
) -> tuple[int, int]:
    """Write `files` to `outputs` with the common answer of each problem; return problems and records that changed.

    Raises DataError for files that are not of the same problems, StorageError.
    """
    problems = records = 0
    with contextlib.ExitStack() as stack:
        written = [stack.enter_context(atomic_write(path)) for path in outputs]
        for samples in _problem_samples(files):
            winner = common_answer(samples, way)
            changed = 0
            for at, row in enumerate(samples):
                if row is None:
                    continue
                if not (options.keep_filled and row.get(options.key) not in (None, "")):
                    changed += row.get(options.key) != winner.answer
                    row = _filled_row(row, winner, at, len(files), way, options)
                written[at].write(encode_line(row))
            records += changed
            problems += bool(changed)
    return problems, records


def extract_best(files: Sequence[Path], output: Path, way: Way, key: str) -> int:
    """Write for each problem the sample that gives the common answer; return the number of problems.

    Raises DataError for files that are not of the same problems, StorageError.
    """
    count = 0
    with atomic_write(output) as file:
        for samples in _problem_samples(files):
            winner = common_answer(samples, way)
            chosen = samples[winner.chosen]
            if chosen is None:
                chosen = next(row for row in samples if row is not None)
            row = {**chosen, "fill_mode": way, key: winner.answer, **_winner_fields(winner, len(files), way)}
            file.write(encode_line(row))
            count += 1
    return count


def _problem_samples(files: Sequence[Path]) -> Iterator[list[Row | None]]:
    """Yield the samples of each problem, in the order of the files. Raises DataError."""
    for number, samples in enumerate(zip_longest(*map(read_output, files)), 1):
        for name in ("id", "problem"):
            values = {str(row[name]) for row in samples if row is not None and name in row}
            if len(values) > 1:
                raise DataError(
                    f"Row {number} is not the same problem in all files: `{name}` differs.",
                    hint="The files must be runs of the same input, with their rows in the same order.",
                )
        yield list(samples)


def _row_answer(row: Row) -> str | None:
    answer = row.get("predicted_answer")
    if answer is None and "predicted_answer" not in row and isinstance(row.get("generation"), str):
        answer = extract_by_policy(row["generation"], ExtractionPolicy()).answer
    if answer is None or answer == "":
        return None
    return str(answer)


def _row_reward(row: Row | None) -> float:
    value = None if row is None else row.get(REWARD_FIELD)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise DataError(
            f"A record has an answer, but its `{REWARD_FIELD}` is not a finite number: {value!r}.",
            hint="Score the answers with a reward model first, or let them vote.",
        )
    return float(value)


def _filled_row(row: Row, winner: Winner, at: int, total: int, way: Way, options: FillOptions) -> Row:
    kept = {name: value for name, value in row.items() if name not in (*VERDICT_FIELDS, "symbolic_correct")}
    if "predicted_answer" not in kept:
        kept["predicted_answer"] = _row_answer(row)
    filled = {**kept, options.key: winner.answer, "fill_mode": way, **_winner_fields(winner, total, way)}
    if options.verdict:
        filled["symbolic_correct"] = winner.answer is not None and winner.groups[at] == winner.answer
    return filled


def _winner_fields(winner: Winner, total: int, way: Way) -> Row:
    if way == "majority":
        return {"majority_votes": int(winner.score), "total_votes": total}
    return {"answer_rm_score": winner.score}
