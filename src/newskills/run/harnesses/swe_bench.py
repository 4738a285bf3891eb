# SPDX-License-Identifier: Apache-2.0
"""Patches to and verdicts from the harness of SWE-bench (https://github.com/SWE-bench/SWE-bench, package `swebench`).

Its form of predictions is a JSON line with `instance_id`, `model_name_or_path` and `model_patch`; it writes a
`report.json` for each instance, and one of the whole run with lists of ids.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError, DataError, suggest
from newskills.base.records import Row, Score
from newskills.base.store import write_rows
from newskills.benchmarks.downloads.mirror import file_sha256
from newskills.environments.config import EnvironmentConfig
from newskills.graders.software.task import patch_of
from newskills.run.engine.grader_pool import verdict_fields
from newskills.run.grade import grade_rows

REPORT = "swe-bench-metrics"
INSTALL = "Install it where the tests can run: pip install swebench, with Docker (or DOCKER_HOST for Podman)."
_GRADER = "swebench"
_NOT_APPLIED = ">>>>> Patch Apply Failed"
_TIMED_OUT = "Test timed out after"
_LOG = "run_instance.log"
_VERDICT = (REPORT, "test_output", "outcome", "outcome_cause", "grader", "why")
_PING = "import docker; docker.from_env().ping()"


class Harness(Struct, frozen=True, kw_only=True):
    """What the harness is told; `folder` gets its logs and reports."""

    dataset: Path
    predictions: Path
    folder: Path
    workers: int = 4
    timeout: int = 1800


def write_predictions(records: Iterable[Row], path: Path, model: str) -> tuple[int, int]:
    """Write the predictions of the records to `path`; return (records, those without a patch). Raises DataError for a
    record without its instance."""
    counts = [0, 0]

    def predictions() -> Iterator[Row]:
        for record in records:
            patch = patch_of(record)
            counts[0] += 1
            counts[1] += not patch.strip()
            yield {"instance_id": _instance_id(record), "model_name_or_path": model, "model_patch": patch}

    write_rows(path, predictions())
    return counts[0], counts[1]


def _instance_id(record: Row) -> str:
    instance = record.get("instance_id") or record.get("id")
    if not isinstance(instance, str):
        raise DataError("A record has no instance_id, so it is not from SWE-bench.")
    return instance


def check_harness() -> None:
    """Raise ConfigError where the harness cannot run here: its package or a container engine is missing."""
    if importlib.util.find_spec("swebench") is None:
        raise ConfigError("The package swebench, which runs the tests, is not installed.", hint=INSTALL)
    ping = subprocess.run([sys.executable, "-c", _PING], check=False, capture_output=True, text=True)
    if ping.returncode:
        last = ping.stderr.strip().rpartition("\n")[2][:200]
        raise ConfigError(
            f"The tests run in containers, but no container engine answers here: {last}", hint=INSTALL
        )


def run_harness(harness: Harness) -> list[Path]:
    """Run all tests of all predictions; return where the reports are. Raises ConfigError (see `check_harness`),
    DataError where it fails. Each set of predictions is a run of its own: the harness does not test an instance twice
    in one."""
    check_harness()
    run = f"newskills-{file_sha256(harness.predictions)[:12]}"
    command = [
        *(sys.executable, "-m", "swebench.harness.run_evaluation"),
        *("--dataset_name", str(harness.dataset.resolve())),
        *("--predictions_path", str(harness.predictions.resolve())),
        *("--run_id", run),
        *("--max_workers", str(harness.workers)),
        *("--timeout", str(harness.timeout)),
        *("--report_dir", "."),
    ]
    done = subprocess.run(command, cwd=harness.folder, check=False)
    if done.returncode:
        raise DataError(f"The harness ended with exit code {done.returncode}; its logs are in {harness.folder}.")
    logs = harness.folder / "logs" / "run_evaluation" / run
    return [*sorted(harness.folder.glob(f"*.{run}.json")), *([logs] if logs.is_dir() else [])]


def grade_in_containers(
    records: Iterable[Row], rows: Iterable[Row], environment: EnvironmentConfig, timeout: float
) -> Iterator[Row]:
    """Yield records with the verdicts of the tests of `rows` (those of the benchmark), run in `environment` without the
    harness's own runner. Raises ConfigError (no engine, no package), DataError (a record of another benchmark)."""
    tasks = {str(row["instance_id"]): row for row in rows}
    kept = list(records)

    def patched() -> Iterator[Row]:
        for record in kept:
            name = _instance_id(record)
            if name not in tasks:
                raise DataError(
                    f"The benchmark has no instance {name}{suggest(name, tasks)}",
                    hint="--benchmark names the one that the records are from.",
                )
            if "finish_reason" in record:
                reason = {"finish_reason": record["finish_reason"]}
            else:
                reason = {}
            yield {**tasks[name], "model_patch": patch_of(record), "test_timeout": timeout, **reason}

    grader = "swe_bench"
    if any("run_script" in row for row in tasks.values()):
        grader = "swe_bench_pro"
    graded = grade_rows(patched(), grader, {}, environment=environment)
    for record, verdict in zip(kept, graded, strict=True):
        old = {key: value for key, value in record.items() if key not in _VERDICT}
        yield old | {key: verdict[key] for key in _VERDICT if key in verdict}


def read_reports(*places: Path) -> dict[str, Row]:
    """Return instance → its report, or `{"error": …}` where it was not judged; from folders of a run or single
    report files.

    What is said of one instance counts for more than the lists of a whole run. Raises DataError.
    """
    runs: dict[str, Row] = {}
    single: dict[str, Row] = {}
    for place in places:
        files = sorted(place.rglob("*.json")) if place.is_dir() else [place]
        for file in files:
            reports_here = _read_report(file, strict=not place.is_dir())
            if "resolved_ids" in reports_here:
                runs |= _of_run(reports_here)
            single |= {name: report for name, report in reports_here.items() if _is_report(report)}
        logs = sorted(place.rglob(_LOG)) if place.is_dir() else ()
        for log in logs:
            if log.parent.name not in single:
                single[log.parent.name] = _of_log(log)
    if not runs and not single:
        raise DataError(f"{' and '.join(map(str, places))}: there is no report of the harness.")
    return {**runs, **single}


def _read_report(file: Path, *, strict: bool) -> Row:
    """Read a report; unless `strict`, a file that is none counts as empty, as a folder may hold other files."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=Row)
    except (OSError, msgspec.DecodeError) as error:
        if not strict:
            return {}
        raise DataError(f"{file} is not a report of the harness: {error}.") from error


def _is_report(report: object) -> bool:
    return isinstance(report, dict) and "resolved" in report


def _of_run(run_report: Row) -> dict[str, Row]:
    """Return the report of each instance in the lists of a whole run."""
    judged = {"patch_exists": True, "patch_successfully_applied": True}
    reports: dict[str, Row] = {name: {**judged, "resolved": True} for name in run_report["resolved_ids"]}
    reports |= {name: {**judged, "resolved": False} for name in run_report.get("unresolved_ids", ())}
    none = {"patch_exists": False, "patch_successfully_applied": False, "resolved": False}
    reports |= {name: dict(none) for name in run_report.get("empty_patch_ids", ())}
    for key in ("error_ids", "infra_failure_ids"):
        reports |= {name: {"error": f"the harness lists it under {key}"} for name in run_report.get(key, ())}
    return reports


def _of_log(log: Path) -> Row:
    """Derive the report of an instance that has none from its log: a patch that does not apply, or tests without
    end, are the answer's fault."""
    text = log.read_text("utf-8", "replace")
    if _NOT_APPLIED in text:
        return {"patch_exists": True, "patch_successfully_applied": False, "resolved": False}
    if _TIMED_OUT in text:
        return {
            "patch_exists": True,
            "patch_successfully_applied": True,
            "tests_timed_out": True,
            "resolved": False,
        }
    return {"error": f"the harness wrote no report; see {log}"}


def with_reports(records: Iterable[Row], reports: dict[str, Row]) -> Iterator[Row]:
    """Yield records with their verdicts; without a report, a record that has a patch is unscored. Raises DataError."""
    for record in records:
        report = reports.get(_instance_id(record))
        score = _report_score(record, report)
        judged = report if score.outcome != "unscored" else None
        yield {**record, REPORT: judged, **verdict_fields(record, score)}


def _report_score(record: Row, report: Row | None) -> Score:
    if not patch_of(record).strip() and (report is None or "error" in report):
        report = {"patch_exists": False, "resolved": False}
    if report is None or "error" in report or report.get("infra_failure"):
        if report is None:
            why = "the harness has no report"
        else:
            why = str(report.get("error") or "its container failed")
        return Score(outcome="unscored", fields={}, grader=_GRADER, why=why, cause="harness")
    if report["resolved"]:
        return Score(outcome="correct", fields={}, grader=_GRADER, why="all tests pass", cause=None)
    if not report.get("patch_exists"):
        return Score(outcome="no_answer", fields={}, grader=_GRADER, why="no patch", cause="model")
    applied = report.get("patch_successfully_applied")
    why = "tests fail" if applied else "the patch cannot be applied"
    if report.get("tests_timed_out"):
        why = "the tests timed out"
    return Score(outcome="wrong", fields={}, grader=_GRADER, why=why, cause="model")
