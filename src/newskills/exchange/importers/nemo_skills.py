# SPDX-License-Identifier: Apache-2.0
"""Output folders of NeMo-Skills: `eval-results/<benchmark>/output[-rsN].jsonl`, groups, or one benchmark's folder.

Verdicts stay as they are. What changes: records get an `id`, and generations that failed (`error` beside an empty
`generation`), which count as wrong there, are unscored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.exchange.importers import (
    ImportedBenchmark,
    ImportSource,
    by_seed,
    origin_of,
    read_lines,
    unscored_fields,
)
from newskills.exchange.json_of_others import finite_json, load_json
from newskills.run.reporting.results import BenchmarkResults, file_parts, list_results, seed_of

_PROBLEM = ("problem", "question", "prompt", "messages", "turns", "index")
_ID = ("id", "task_id", "problem_id", "uid")
_TIMEOUT = re.compile(r"time(d)?[ -]?out", re.IGNORECASE)


def fits(path: Path) -> bool:
    try:
        return path.is_dir() and any(results.files for results in list_results(path))
    except DataError:
        return False


def read(source: ImportSource) -> list[ImportedBenchmark]:
    """Read the benchmarks in results of NeMo-Skills. Raises DataError: no output files, broken records, seeded and
    seedless ones together."""
    imported = [_import_benchmark(results) for results in list_results(source.path) if results.files]
    if not imported:
        raise DataError(f"{source.path} has no output*.jsonl.")
    return imported


def _import_benchmark(results: BenchmarkResults) -> ImportedBenchmark:
    notes: list[str] = []
    rows = [pair for file in results.files for pair in _numbered_records(file, notes)]
    if not rows:
        raise DataError(f"{results.folder} has no records.")
    soft = sum(row.get("outcome") == "unscored" for _, row in rows)
    if soft:
        notes.append(f"{results.benchmark}: {soft} generations failed; they are unscored, not wrong.")
    return ImportedBenchmark(
        benchmark=results.benchmark,
        seeds=by_seed(results.benchmark, rows, notes),
        metric=None,
        origin=origin_of("nemo-skills", results.folder, {}),
        notes=notes,
    )


def _numbered_records(file: Path, notes: list[str]) -> Iterator[tuple[int | None, Row]]:
    seed = seed_of(file)
    times_seen: dict[str, int] = {}
    rows = chain.from_iterable(read_lines(part, load_json, notes) for part in file_parts(file))
    for number, row in enumerate(rows):
        row = finite_json(row)
        identity = _record_identity(row, number)
        times_seen[identity] = times_seen.get(identity, 0) + 1
        if (
            times_seen[identity] > 1
        ):  # several problems with one text: told apart by their order, the same in all files
            identity = f"{identity}-{times_seen[identity]}"
        yield seed, {**row, "id": identity, **_failure_fields(row)}


def _record_identity(row: Row, number: int) -> str:
    own = next((row[name] for name in _ID if isinstance(row.get(name), str | int)), None)
    if own is not None and own != "":
        return str(own)
    if not any(name in row for name in _PROBLEM):
        return f"row-{number}"
    return _of_problem(row)


def _of_problem(row: Row) -> str:
    from newskills.run.records.rows import content_id

    return content_id({name: row[name] for name in (*_PROBLEM, "expected_answer") if name in row})


def _failure_fields(row: Row) -> Row:
    """Return the verdict fields of a soft failure; nothing for other records, and for those that say how they
    ended."""
    error = row.get("detailed_error") or row.get("error")
    if "outcome" in row or not error or row.get("generation") not in ("", None):
        return {}
    cause = "timeout" if _TIMEOUT.search(str(error)[:2000]) else "provider"
    return unscored_fields(cause, str(error))
