# SPDX-License-Identifier: Apache-2.0
"""One request of a trainer as a job: what is to be done, how far it is, and the answer. `job.json` in its folder."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.base.store import write_json
from newskills.run.evaluation_server.wire import EvaluationRequest

JOB_FILE = "job.json"
LOG_FILE = "skills_eval.log"
TAIL_LINES = 200
TAIL_BYTES = 64 << 10

State = Literal["queued", "running", "completed", "failed", "cancelled", "interrupted"]
"""interrupted: by the end of the server; the same request goes on from there."""
OPEN_STATES: tuple[State, ...] = ("queued", "running")


class BenchmarkEvaluation(Struct, kw_only=True):
    """One benchmark of a job. `metrics` as in its metrics.json; `error` is a sentence; times in seconds since 1970."""

    name: str
    command: str
    output_dir: str
    state: State = "queued"
    metrics: Row = {}
    error: str = ""
    started: float | None = None
    ended: float | None = None

    @property
    def log_path(self) -> str:
        return str(Path(self.output_dir) / LOG_FILE)

    def outline(self) -> Row:
        """Return the entry of this benchmark in an answer's `runs`."""
        places = {"command": self.command, "output_dir": self.output_dir, "log_path": self.log_path}
        return {"benchmark": self.name, **places}

    def log_tail(self) -> str:
        """Return the last lines of the log; empty where there is none."""
        try:
            with Path(self.log_path).open("rb") as file:
                file.seek(0, 2)
                file.seek(max(0, file.tell() - TAIL_BYTES))
                return "\n".join(file.read().decode(errors="replace").splitlines()[-TAIL_LINES:])
        except OSError:
            return ""


class EvaluationJob(Struct, kw_only=True):
    """`key` is equal for requests that are repetitions of each other.

    waiting    a client was waiting for the answer when this was written
    contact    when a client was last heard of, in seconds since 1970
    delivered  the answer was handed to a client that was still there
    """

    job_id: str
    key: str
    request: EvaluationRequest
    output_dir: str
    parts: list[BenchmarkEvaluation]
    created: float
    contact: float
    ended: float | None = None
    waiting: bool = False
    delivered: bool = False
    cancelled: bool = False

    @property
    def state(self) -> State:
        states = {part.state for part in self.parts}
        if "running" in states or ("queued" in states and len(states) > 1):
            return "running"
        for state in ("queued", "interrupted"):
            if state in states:
                return state
        if self.cancelled:
            return "cancelled"
        if "completed" in states:
            return "completed"
        return "failed"

    @property
    def errors(self) -> dict[str, str]:
        return {part.name: part.error for part in self.parts if part.error}

    def save(self) -> None:
        """Write the job into its output folder. Raises StorageError."""
        write_json(Path(self.output_dir) / JOB_FILE, self)

    def answer(self) -> tuple[int, Row]:
        """Return (HTTP status, body) for a client of `/evaluate`, once the job has ended.

        What passed is always delivered: an error only where nothing did.
        """
        state = self.state
        passed = {part.name: part.metrics for part in self.parts if part.state == "completed"}
        body: Row = {
            "job_id": self.job_id,
            "command": "\n".join(part.command for part in self.parts),
            "output_dir": self.output_dir,
            "log_path": self.parts[-1].log_path,
            "raw_metrics": passed,
            "runs": [part.outline() for part in self.parts],
        }
        if self.errors:
            body["errors"] = self.errors
        if state == "interrupted":
            sentence = "The server was stopped; finished work is saved, and the same request resumes from there."
            return 503, {"error": sentence, **body}
        if passed:
            return 200, body
        return 500, {"error": self._what_went_wrong(), **body}

    def _what_went_wrong(self) -> str:
        if self.cancelled:
            return f"The job {self.job_id} was cancelled."
        tails = (
            f"{part.name}: {part.error} See {part.log_path}\n{part.log_tail()}".rstrip() for part in self.parts
        )
        return "\n".join(tails)

    def outline(self) -> Row:
        """Return the job's entry in lists of jobs."""
        return {
            "job_id": self.job_id,
            "status": self.state,
            "rollout_id": self.request.rollout_id,
            "benchmarks": {part.name: part.state for part in self.parts},
            "output_dir": self.output_dir,
            "created": self.created,
            "seconds": round((self.ended or time.time()) - self.created, 1),
        }

    def status(self) -> Row:
        """Return the job's status: queued, running, completed with `raw_metrics`, or another end with `error`."""
        status: Row = {"job_id": self.job_id, "status": self.state}
        if self.state == "completed":
            status |= self.answer()[1]
        elif self.state not in OPEN_STATES:
            status["error"] = self.answer()[1]["error"]
        return status


def load_job(path: Path) -> EvaluationJob:
    """Read a job from `path`. Raises DataError."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=EvaluationJob)
    except (OSError, msgspec.MsgspecError) as error:
        raise DataError(f"{path} does not describe a job: {error}.") from error


def read_metrics(folder: Path, name: str) -> dict[str, Any]:
    """Read `eval-results/<name>/metrics.json` at the key `name`, else all of it. Raises DataError."""
    path = folder.joinpath("eval-results", *name.split("."), "metrics.json")
    try:
        metrics = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.MsgspecError) as error:
        raise DataError(f"The evaluation wrote no metrics: {path} cannot be read ({error}).") from error
    inner = metrics.get(name, metrics)
    if isinstance(inner, dict):
        return inner
    return metrics
