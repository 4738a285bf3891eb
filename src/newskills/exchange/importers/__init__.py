# SPDX-License-Identifier: Apache-2.0
"""Results of other evaluation systems as records of newskills, in a folder that `ns summarize_results` reads.

Add a format: a file with `read(source: Source) -> list[Imported]` and `fits(path) -> bool`, and a row in `FORMATS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from newskills._version import __version__
from newskills.base.errors import DataError, UnknownNameError
from newskills.base.records import Row
from newskills.base.store import atomic_write, encode_line, write_json
from newskills.run.records.paths import done_path, output_name
from newskills.run.reporting.results import RESULTS_FOLDER, output_files
from newskills.run.reporting.summarize import BENCHMARK_FILE

FORMATS: dict[str, str] = {
    "atif": "newskills.exchange.importers.atif",
    "evalscope": "newskills.exchange.importers.evalscope",
    "inspect": "newskills.exchange.importers.inspect_logs",
    "lm-eval": "newskills.exchange.importers.lm_eval",
    "nemo-evaluator": "newskills.exchange.importers.nemo_evaluator",
    "nemo-gym": "newskills.exchange.importers.nemo_gym",
    "nemo-skills": "newskills.exchange.importers.nemo_skills",
    "agent-logs": "newskills.exchange.importers.agent_logs",
}
"""Name → module; where none is named, the first that fits is taken."""

GENERIC = "generic"
"""The metric that reads `is_correct`, whoever decided it."""

_UNSAFE = re.compile(r"[^\w.\-@+=]+", re.ASCII)


class ImportSource(Struct, frozen=True, kw_only=True):
    """What to read. score: name of the verdict to take; empty = the first one."""

    path: Path
    score: str = ""


class ImportedBenchmark(Struct, kw_only=True):
    """The records of one benchmark.

    seeds    seed (None: the only run) → records
    metric   that understands the records; None: that of the benchmark of this name
    origin   where they are from: goes into benchmark.json
    model    name of the model where there are results of several, each of which gets a folder of its own
    """

    benchmark: str
    seeds: dict[int | None, list[Row]]
    metric: str | None = GENERIC
    origin: Row = {}
    notes: list[str] = []
    model: str = ""

    def results_dir(self, output_dir: Path) -> Path:
        """Return the folder of results to write to."""
        if self.model:
            return output_dir / path_part(self.model)
        return output_dir


def read(source: ImportSource, format: str = "") -> list[ImportedBenchmark]:
    """Read everything at `source`. Raises DataError (not there, broken, of no known form), UnknownNameError
    (format)."""
    if not source.path.exists():
        raise DataError(f"There is no {source.path}.")
    if format and format not in FORMATS:
        raise UnknownNameError("format", format, FORMATS)
    formats = [format] if format else FORMATS
    for name in formats:
        module = import_module(FORMATS[name])
        if format or module.fits(source.path):
            imported: list[ImportedBenchmark] = module.read(source)
            return imported
    raise DataError(
        f"{source.path} has no known format: neither trajectories in ATIF, nor *.eval logs, samples_*.jsonl, "
        "reviews/, eval-*.json, rollouts of NeMo Gym, output*.jsonl or logs of Claude Code, Codex or OpenCode.",
        hint=f"Give its format with --format: {', '.join(FORMATS)}.",
    )


def write_import(imported: ImportedBenchmark, output_dir: Path) -> Path:
    """Write the records below `output_dir/eval-results`, and return the folder of the benchmark.

    Where there are several models, each has a folder in `output_dir`.
    Members of a group lie in its folder, as in our own results; names of others have no dots.
    Raises DataError where that has results already, StorageError.
    """
    name = path_part(imported.benchmark)
    if imported.metric is None:
        steps = name.split(".")
    else:
        steps = [name.replace(".", "-")]
    folder = imported.results_dir(output_dir).joinpath(RESULTS_FOLDER, *filter(None, steps))
    if folder.is_dir() and output_files(folder):
        raise DataError(f"{folder} already has results.", hint="Give another --output_dir, or --benchmark NAME.")
    for seed, rows in imported.seeds.items():
        path = folder / output_name(seed)
        with atomic_write(path) as out:
            for row in rows:
                out.write(encode_line(row))
    description = {"benchmark": imported.benchmark, "newskills": __version__, "imported": imported.origin}
    if imported.metric is not None:
        description["metric_of_import"] = imported.metric
    write_json(folder / BENCHMARK_FILE, description)
    for seed in imported.seeds:
        done_path(folder / output_name(seed)).touch()
    return folder


def path_part(name: str, otherwise: str = "imported") -> str:
    """Return `name` as that of one file or folder; `otherwise` where nothing of it can be one."""
    return _UNSAFE.sub("-", name).strip("-.") or otherwise


def rename_benchmark(imported: list[ImportedBenchmark], name: str) -> list[ImportedBenchmark]:
    """Return the only benchmark under another name. Raises DataError where there are several."""
    if len(imported) != 1:
        names = ", ".join(item.benchmark for item in imported)
        raise DataError(f"--benchmark names one benchmark, but there are {len(imported)}: {names}.")
    return [replace(imported[0], benchmark=name)]


def by_seed(
    benchmark: str, records: Iterable[tuple[int | None, Row]], notes: list[str], expected: Iterable[str] = ()
) -> dict[int | None, list[Row]]:
    """Return the records of each seed, all seeds in the same order of samples; equal records count once, missing ones
    are unscored.

    `expected`: ids of samples that should be there. Raises DataError where two records of one sample and seed differ.
    """
    rows_by_seed: dict[int | None, dict[str, Row]] = {}
    doubled = 0
    for seed, row in records:
        rows = rows_by_seed.setdefault(seed, {})
        doubled += _place_row(benchmark, rows, row)
    identities = dict.fromkeys([*expected, *(identity for rows in rows_by_seed.values() for identity in rows)])
    missing = sum(len(identities) - len(rows) for rows in rows_by_seed.values())
    if doubled:
        notes.append(f"{benchmark}: {doubled} records appear twice; each counts once.")
    if missing:
        notes.append(
            f"{benchmark}: {missing} of {len(identities) * len(rows_by_seed)} samples are missing: unscored."
        )
    some = {identity: row for rows in rows_by_seed.values() for identity, row in rows.items()}
    return {
        seed: [
            rows.get(identity) or _absent_record(some.get(identity, {"id": identity})) for identity in identities
        ]
        for seed, rows in sorted(rows_by_seed.items(), key=lambda pair: -1 if pair[0] is None else pair[0])
    }


def _place_row(benchmark: str, rows: dict[str, Row], row: Row) -> bool:
    """Put the row in its place, and return whether one was there. Raises DataError."""
    identity = str(row["id"])
    if identity not in rows:
        rows[identity] = row
        return False
    if rows[identity] != row:
        raise DataError(
            f"{benchmark}: there are two different records of sample '{identity}'.",
            hint="These are results of several runs; import them one by one.",
        )
    return True


def _absent_record(other: Row) -> Row:
    common_fields: Row = {name: other[name] for name in ("id", "problem", "expected_answer") if name in other}
    return {**common_fields, "generation": "", **unscored_fields("harness", "not in the imported results")}


def unscored_fields(cause: str, why: str) -> Row:
    """Return the fields of a record whose answer nobody could judge."""
    return {"outcome": "unscored", "outcome_cause": cause, "why": why[:500]}


def scored_fields(value: float | bool, grader: str) -> Row:
    """Return the fields of a record with a verdict: right, wrong, or partial credit (0–1)."""
    right = bool(value) if value in (0, 1) else float(value)
    outcome = "correct" if value == 1 else "wrong"
    return {"is_correct": right, "outcome": outcome, "grader": grader}


def read_lines(path: Path, decode: Callable[[bytes], Any], notes: list[str]) -> Iterator[Row]:
    """Read the JSON objects of a file. A last line that was cut off is left out, with a note. Raises DataError."""
    try:
        lines = path.read_bytes().splitlines(keepends=True)
    except OSError as error:
        raise DataError(f"Cannot read {path}: {error.strerror}.") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = decode(line)
        except (ValueError, RecursionError) as error:
            if number == len(lines) and not line.endswith(b"\n"):
                notes.append(f"{path}: the last line is incomplete and is left out.")
                return
            raise DataError(f"{path}, line {number}: invalid JSON ({error}).") from error
        if not isinstance(row, dict):
            raise DataError(f"{path}, line {number}: expected a JSON object.")
        yield row


def origin_of(format: str, path: Path, facts: Mapping[str, Any]) -> Row:
    """Return what benchmark.json tells of an import; facts that are not known are left out."""
    return {"format": format, "path": str(path.resolve())} | {k: v for k, v in facts.items() if v is not None}
