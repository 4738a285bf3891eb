# SPDX-License-Identifier: Apache-2.0
"""A folder with the artifacts of each task, and one JSON or CSV file with the scores of all.

`export.local`: output_dir, format (json, csv), output_filename, log_metrics, copy_logs. Exporting again replaces what
was exported of the same task, and keeps the rest.
"""

from __future__ import annotations

import csv
import datetime
import io
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from newskills.base.callbacks import PrintLine
from newskills.base.errors import ConfigError, DataError, storage_error
from newskills.base.records import Row
from newskills.base.store import atomic_write, write_json
from newskills_evaluator.export_results import UPLOADED, Results, chosen_scores

FOLDER = "./nv-eval-results"
FORMATS = ("json", "csv")
HEAD = ("Model Name", "Harness", "Task Name", "Executor", "Container", "Invocation ID", "Job ID")


def export(results: Sequence[Results], settings: Row, environ: Mapping[str, str], say: PrintLine) -> list[Path]:
    """Copy the artifacts of the results to a local folder, and write their scores where a format is set; return the
    file with the scores, and the folder. Raises ConfigError, DataError for a file that is no export, StorageError."""
    kind = settings.get("format")
    if kind not in (None, *FORMATS):
        raise ConfigError(f"export.local.format is {' or '.join(FORMATS)}, not '{kind}'.")
    folder = Path(str(settings.get("output_dir") or FOLDER)).expanduser()
    for result in results:
        _copy_artifacts(result, folder / result.invocation / result.job.id, logs=bool(settings.get("copy_logs")))
    own = folder / results[0].invocation
    written = [own.absolute()]
    if kind:
        place = own / str(settings.get("output_filename") or f"processed_results.{kind}")
        scores = {
            result.job.id: chosen_scores(result.scores, settings.get("log_metrics") or ()) for result in results
        }
        if kind == "json":
            _update_json(place, results, scores)
        else:
            _update_csv(place, results, scores)
        written.insert(0, place.absolute())
        say(f"scores of {len(results)} tasks: {place.absolute()}")
    say(f"artifacts of {len(results)} tasks: {own.absolute()}")
    return written


def _copy_artifacts(result: Results, folder: Path, *, logs: bool) -> None:
    try:
        (folder / "artifacts").mkdir(parents=True, exist_ok=True)
        for name in UPLOADED:
            if (source := result.artifacts / name).is_file():
                shutil.copy2(source, folder / "artifacts" / name)
        if logs and Path(result.job.folder, "logs").is_dir():
            shutil.copytree(Path(result.job.folder, "logs"), folder / "logs", dirs_exist_ok=True)
    except OSError as error:
        raise storage_error(error, folder) from error


def _update_json(place: Path, results: Sequence[Results], scores: Mapping[str, Row]) -> None:
    whole = _read_json(place)
    benchmarks = whole.setdefault("benchmarks", {})
    for result in results:
        models = benchmarks.setdefault(result.job.benchmark, {}).setdefault("models", {})
        entries = models.setdefault(result.job.model or "unknown", [])
        kept = [entry for entry in entries if entry.get("job_id") != result.job.id]
        entry = {
            "invocation_id": result.invocation,
            "job_id": result.job.id,
            "harness": result.harness,
            "container": result.job.container,
            "scores": scores[result.job.id],
            "timestamp": _utc_now(),
            "executor": result.executor,
        }
        models[result.job.model or "unknown"] = [*kept, entry]
    whole["export_timestamp"] = _utc_now()
    place.parent.mkdir(parents=True, exist_ok=True)
    write_json(place, whole)


def _read_json(place: Path) -> dict[str, Any]:
    if not place.is_file():
        return {"export_timestamp": "", "benchmarks": {}}
    try:
        return msgspec.json.decode(place.read_bytes(), type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise DataError(f"{place} already exists, but is not an export of results: {error}.") from error


def _update_csv(place: Path, results: Sequence[Results], scores: Mapping[str, Row]) -> None:
    """Write one row for each task, with a column for each score that any of them has."""
    ids = {result.job.id for result in results}
    rows = [row for row in _read_csv(place) if row.get("Job ID") not in ids]
    for result in results:
        values = (
            result.job.model,
            result.harness,
            result.job.benchmark,
            result.executor,
            result.job.container,
            result.invocation,
            result.job.id,
        )
        own = {name: str(value) for name, value in scores[result.job.id].items()}
        rows.append({**dict(zip(HEAD, values, strict=True)), **own})
    columns = list(dict.fromkeys([*HEAD, *sorted({name for row in rows for name in row if name not in HEAD})]))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    with atomic_write(place) as file:
        file.write(text.getvalue().encode())


def _read_csv(place: Path) -> list[dict[str, str]]:
    if not place.is_file():
        return []
    with place.open(encoding="utf-8", newline="") as file:
        return [{name: value for name, value in row.items() if value} for row in csv.DictReader(file)]


def _utc_now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
