# SPDX-License-Identifier: Apache-2.0
"""Invocations as NeMo Evaluator's launcher keeps them: ids, the store of jobs, run directories, states.

An invocation is 16 hex digits, its jobs `<invocation>.<index>`; unique beginnings are accepted. The store is one file
of JSON lines to which both systems append, and of which the last line of a job counts (execdb of the launcher, 0.2.6).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError, UnknownNameError, storage_error
from newskills.base.records import Row
from newskills.base.terminal import listed
from newskills.pipelines.invocations import State

ENDED: tuple[State, ...] = ("success", "failed", "killed")
FILE_VARIABLE = "NEMO_EVALUATOR_EXEC_DB_FILE"
INTERRUPTED = ".nemo_evaluator_interrupted"
_ID = re.compile(r"[0-9a-f]{1,16}(\.\d+)?\Z")
_JOBS: dict[str, State] = {
    "pending": "pending",
    "requeued": "pending",
    "preempted": "pending",
    "running": "running",
    "completed": "success",
    "failed": "failed",
    "timeout": "failed",
    "cancelled": "killed",
}
"""A job that the time limit has stopped is pending while a copy of its chain waits; `timeout` is the last one's."""


class InvocationJob(Struct, frozen=True, kw_only=True):
    """One job.

    `data` of those that newskills runs: `output_dir` (its run directory), `eval_image`, and

    newskills   {"experiment": id of the submission, "job": its job there, "host": variable → the one it is set from}
    on Slurm    `slurm_job_id`, `remote_rundir_path`, `hostname`, `username`
    """

    invocation_id: str
    job_id: str
    timestamp: float
    executor: str
    data: Row = {}
    config: Row | None = None

    @property
    def is_local(self) -> bool:
        return self.executor == "local"

    @property
    def index(self) -> int:
        """Its place in `evaluation.tasks` of the config."""
        number = self.job_id.rpartition(".")[2]
        if number.isdecimal():
            return int(number)
        return 0

    @property
    def task(self) -> str:
        """The task's name, as far as it is known."""
        tasks = ((self.config or {}).get("evaluation") or {}).get("tasks") or []
        if self.index < len(tasks) and isinstance(tasks[self.index], dict):
            return str(tasks[self.index].get("name", ""))
        return self.folder.name

    @property
    def folder(self) -> Path:
        """The run directory, as the machine sees it on which the job runs."""
        return Path(str(self.data.get("output_dir") or self.data.get("remote_rundir_path") or ""))

    @property
    def own(self) -> Row | None:
        """What newskills wrote of it; None: the launcher's job."""
        own_data = self.data.get("newskills")
        if isinstance(own_data, dict):
            return own_data
        return None


class Store:
    """The file of jobs: `NEMO_EVALUATOR_EXEC_DB_FILE`, else below the home folder, as the launcher's."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        named = environ.get(FILE_VARIABLE)
        if named:
            self.path = Path(named).expanduser()
        else:
            self.path = Path(environ.get("HOME") or Path.home()) / ".nemo-evaluator" / "exec-db" / "exec.v1.jsonl"

    def add(self, entries: Iterable[InvocationJob]) -> None:
        """Append the entries, in one write. Raises StorageError."""
        lines = b"".join(msgspec.json.encode(entry) + b"\n" for entry in entries)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            fd = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
                size = os.fstat(fd).st_size
                torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
                if torn:
                    lines = b"\n" + lines
                os.write(fd, lines)
            finally:
                os.close(fd)
        except OSError as error:
            raise storage_error(error, self.path) from error

    def jobs(self) -> dict[str, InvocationJob]:
        """Map each job id to its last line, in the order of the first ones; lines that are not jobs are skipped."""
        jobs_by_id: dict[str, InvocationJob] = {}
        try:
            lines = self.path.read_bytes().split(b"\n")
        except OSError:
            return {}
        for line in lines:
            with contextlib.suppress(msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError):
                entry = msgspec.json.decode(line, type=InvocationJob)
                jobs_by_id[entry.job_id] = entry
        return jobs_by_id

    def invocations(self) -> dict[str, list[InvocationJob]]:
        """Map each id to its jobs, the oldest first."""
        jobs_by_invocation: dict[str, list[InvocationJob]] = {}
        for entry in self.jobs().values():
            jobs_by_invocation.setdefault(entry.invocation_id, []).append(entry)
        return jobs_by_invocation

    def find(self, what: str) -> list[InvocationJob]:
        """Return the jobs that an id of an invocation or a job means, or its beginning. Raises
        UnknownNameError, ConfigError."""
        wanted, dot, index = what.lower().partition(".")
        invocations = self.invocations()
        matching = [invocation for invocation in invocations if invocation.lower().startswith(wanted)]
        if wanted in invocations:
            matching = [wanted]
        if not matching:
            raise UnknownNameError(
                "invocation", what, list(invocations)[-8:], hint=f"They are kept in {self.path}."
            )
        if len(matching) > 1:
            raise ConfigError(f"Several invocations begin with '{wanted}': {listed(matching)}.")
        jobs = [entry for entry in invocations[matching[0]] if not dot or str(entry.index) == index]
        if not jobs:
            indices = [entry.job_id for entry in invocations[matching[0]]]
            raise UnknownNameError("job", what, indices)
        return jobs


def looks_like_id(text: str) -> bool:
    """Return whether `text` may be an invocation, a job, or the beginning of one."""
    return _ID.match(text.lower()) is not None


def new_invocation() -> str:
    return secrets.token_hex(8)


def job_state(state: str) -> State:
    """Return the launcher's state for `state`, which is one of newskills' executors."""
    return _JOBS.get(state.partition(" ")[0], "failed")


def folder_state(entry: InvocationJob) -> tuple[State, int | None]:
    """Return state and exit code of a job of this machine, by its run directory, as the launcher reads it."""
    logs = entry.folder / "logs"
    code = _exit_code(logs)
    if entry.data.get("killed") or (code is not None and (entry.folder / "artifacts" / INTERRUPTED).exists()):
        return "killed", code
    if (logs / "stage.exit").exists():
        if code == 0:
            return "success", code
        return "failed", code
    if (logs / "stage.running").exists():
        return "running", None
    return "pending", None


def count_replies(entry: InvocationJob) -> int | None:
    """Return the number of replies on disk: from the launcher's file of progress, else the lines of the outputs; None
    means nothing yet."""
    artifacts = entry.folder / "artifacts"
    with contextlib.suppress(OSError, ValueError):
        return int((artifacts / "progress").read_text().strip())
    outputs = [
        *artifacts.glob("eval-results/**/output*.jsonl"),
        *artifacts.glob("eval-results/**/output*.jsonl-async"),
    ]
    if outputs:
        return sum(_count_lines(path) for path in outputs)
    return None


def as_json(entries: Sequence[tuple[InvocationJob, State]]) -> str:
    """Return the jobs in the JSON that `nemo-evaluator-launcher status --json` prints."""
    rows = [
        {
            "invocation": entry.invocation_id,
            "job_id": entry.job_id,
            "status": state,
            "progress": {"progress": count_replies(entry)},
            "data": entry.data,
        }
        for entry, state in entries
    ]
    return json.dumps(rows, indent=2)


def _exit_code(logs: Path) -> int | None:
    try:
        return int((logs / "stage.exit").read_text().split()[-1])
    except (OSError, ValueError, IndexError):
        return None


def _count_lines(path: Path) -> int:
    try:
        with path.open("rb") as file:
            return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
    except OSError:
        return 0
