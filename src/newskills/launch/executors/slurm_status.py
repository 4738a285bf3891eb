# SPDX-License-Identifier: Apache-2.0
"""What Slurm knows of jobs: squeue first, then sacct, which lags behind and may be absent, then the jobs' own marks.

`squeue --states=all` shows jobs of the controller's memory (MinJobAge) with one call for all of them, as
`scontrol show job` does for one.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from signal import SIGTERM

from msgspec import Struct

from newskills.base.errors import ConfigError, NewskillsError, RemoteError
from newskills.launch.machines.shell import CommandResult, Shell, ShellCall

ACCOUNTING_LAG_SECONDS = (0.0, 0.3, 0.7, 1.5)
"""Seconds to wait before each look into accounting, which learns of an end later than everybody else."""

SQUEUE_SECONDS, SACCT_SECONDS = 120, 30
"""For which Slurm's commands are waited for. Without accounting the marks of jobs still tell."""
KILLED_EXIT_CODE = 137
"""Exit code after that."""

SQUEUE_FIELDS = (
    *("JobID", "HetJobID", "HetJobOffset", "ArrayJobID", "ArrayTaskID"),
    *("State", "Reason", "RestartCnt", "exit_code"),
)
ACTIVE_STATES = {
    "PENDING": "pending",
    "PREEMPTED": "preempted",
    "REQUEUED": "requeued",
    "REQUEUE_HOLD": "pending",
    "REQUEUE_FED": "pending",
    "SPECIAL_EXIT": "pending",
    "RUNNING": "running",
    "CONFIGURING": "running",
    "COMPLETING": "running",
    "SUSPENDED": "running",
    "STOPPED": "running",
    "SIGNALING": "running",
    "STAGE_OUT": "running",
    "RESIZING": "running",
}
ENDED_STATES = {
    "COMPLETED": "completed",
    "FAILED": "failed",
    "CANCELLED": "cancelled",
    "TIMEOUT": "timeout",
    "DEADLINE": "timeout",
}
STATE_OF_MARK = {"completed": "completed", "failed": "failed", "cancelled": "cancelled", "time": "timeout"}
"""Second word of job.exit → state."""
STATE_RANK = (
    "running",
    "requeued",
    "preempted",
    "pending",
    "failed",
    "timeout",
    "cancelled",
    "completed",
    "unknown",
)
"""Of the parts of a job, the first of these speaks for all."""
WAITING_STATES = ("pending", "requeued", "preempted")
NEVER_REASON = "DependencyNeverSatisfied"

_ID = re.compile(r"\d{1,10}(?:[_+]\d{1,7})?\Z", re.ASCII)
_ALL = "*"
_EMPTY = ("", "N/A", "0", "None", "(null)")


class SlurmRecord(Struct, frozen=True):
    """A job, or a part of one, as Slurm tells it.

    state      in Slurm's words
    restarts   how often it was requeued
    signal     that ended its script, which passes signals on once it has begun
    """

    state: str
    reason: str = ""
    restarts: int = 0
    signal: int = 0

    def word(self, mark: str = "") -> str:
        """Return our word for the state, with Slurm's reason in brackets where it says more. `mark`: text of the
        job's job.exit."""
        if word := ACTIVE_STATES.get(self.state):
            if word == "running" and self.state == "COMPLETING" and (ended := marked_state(mark)):
                return ended
            if word == "pending" and self.restarts:
                word = "requeued"
            if word in WAITING_STATES and self.reason:
                return f"{word} ({self.reason})"
            return word
        if self.state == "FAILED":
            usual = "cancelled" if self.signal == SIGTERM else "failed"
            return marked_state(mark) or usual
        if self.state == "CANCELLED" and self.reason == NEVER_REASON:
            return f"cancelled ({NEVER_REASON})"
        return ENDED_STATES.get(self.state) or f"failed ({self.state})"


def slurm_ids(handle: str) -> list[str]:
    """Return the ids of a handle: `101`, or `101:102` for a job and its copy. Raises ConfigError for anything else."""
    ids = handle.split(":")
    if not all(_ID.match(slurm_id) for slurm_id in ids):
        raise ConfigError(f"'{handle}' is not the id of a Slurm job.")
    return ids


def marked_state(mark: str) -> str:
    """Return the state that job.exit records; empty where it records none."""
    words = mark.split(maxsplit=2)
    if len(words) > 1:
        return STATE_OF_MARK.get(words[1], "")
    return ""


def slurm_records(
    shell: Shell, ids: Sequence[str], *, more: Sequence[ShellCall] = ()
) -> tuple[dict[str, SlurmRecord], list[CommandResult]]:
    """Return id → what is known of it (others are missing), and the results of the calls `more`, made in the same trip.

    Raises NewskillsError where squeue itself does not work.
    """
    calls = list(more)
    if ids:
        calls.insert(0, _squeue_call(ids))
    ran = shell.run_all(calls)
    records_by_id: dict[str, SlurmRecord] = {}
    if ids:
        queue, *ran = ran
        if queue.code != 0 and "Invalid job id" not in queue.err:
            raise slurm_error("squeue", queue, shell)
        records_by_id = _select_records(from_squeue(queue.out), ids)
    requeued = [
        slurm_id
        for slurm_id in ids
        if slurm_id in records_by_id
        and records_by_id[slurm_id].state in ("PENDING", "REQUEUED")
        and records_by_id[slurm_id].restarts
    ]
    if requeued:
        records_by_id |= _query_preemption(shell, {slurm_id: records_by_id[slurm_id] for slurm_id in requeued})
    return records_by_id, ran


def query_accounting(shell: Shell, ids: Sequence[str]) -> dict[str, SlurmRecord]:
    """Return id → record from accounting, for ids that the controller has forgotten. Empty on clusters without
    accounting."""
    missing = list(ids)
    records_by_id: dict[str, SlurmRecord] = {}
    for pause in ACCOUNTING_LAG_SECONDS:
        if not missing:
            break
        time.sleep(pause)
        ran = shell.run_all([_sacct_call(missing)])[0]
        if ran.code != 0:
            break
        records_by_id |= _select_records(from_sacct(ran.out), missing)
        missing = [slurm_id for slurm_id in missing if slurm_id not in records_by_id]
    return records_by_id


def from_squeue(text: str) -> dict[str, SlurmRecord]:
    """Parse id → record from the lines that `squeue` prints."""
    parts: dict[str, list[SlurmRecord]] = {}
    for line in text.splitlines():
        fields = [field.strip() for field in line.split("|")]
        if len(fields) < len(SQUEUE_FIELDS):
            continue
        job, het, offset, array, task, state, reason, restarts, code = fields[: len(SQUEUE_FIELDS)]
        if reason in _EMPTY:
            reason = ""
        record = SlurmRecord(state, reason, number_or_0(restarts), _signal_of(code))
        names = {job}
        if het not in _EMPTY:
            names |= {het, f"{het}+{offset}"}
        if array not in _EMPTY:
            names |= {array, *(f"{array}_{array_task}" for array_task in _task_indices(task))}
        for name in names:
            parts.setdefault(name, []).append(record)
    return {slurm_id: _leading_record(some) for slurm_id, some in parts.items()}


def from_sacct(text: str) -> dict[str, SlurmRecord]:
    """Parse id → record from lines `JobID|State|ExitCode`: `46+0|CANCELLED by 0|0:0`, `13_[5-9]|PENDING|0:0`.

    `13_*` stands for the tasks of array 13 that have no record of their own, as none of them has been started.
    """
    parts: dict[str, list[SlurmRecord]] = {}
    for line in text.splitlines():
        job, state, code, *_ = [*line.split("|"), "", ""]
        if state.strip():
            word = state.split()[0]
            if word == "PREEMPTED":  # the last life: nothing came after it
                word = "CANCELLED"
            record = SlurmRecord(word, signal=_signal_of(code))
            whole, _, task = job.partition("_")
            names = {
                job,
                re.split(r"[_+]", job)[0],
                *(f"{whole}_{array_task}" for array_task in _task_indices(task)),
            }
            if not task and record.state != "CANCELLED":
                names.discard(f"{whole}_{_ALL}")  # a task that accounting does not know as such yet
            for name in names:
                parts.setdefault(name, []).append(record)
    return {slurm_id: _leading_record(some) for slurm_id, some in parts.items()}


def _signal_of(code: str) -> int:
    """Return the signal in an exit code as squeue prints it (`15`, the status that `wait` gives), or sacct
    (`0:15`)."""
    exited, _, killed = code.rpartition(":")
    status = number_or_0(killed)
    if exited:
        return status
    return status & 0x7F


def number_or_0(text: str) -> int:
    """Return a number that Slurm prints; 0 for whatever else it prints there."""
    if text.isdigit():
        return int(text)
    return 0


def _select_records(records_by_id: Mapping[str, SlurmRecord], ids: Iterable[str]) -> dict[str, SlurmRecord]:
    """Select the records that speak for `ids`, those of a whole array where a task has none."""
    selected = {}
    for slurm_id in ids:
        for name in (slurm_id, f"{slurm_id.partition('_')[0]}_{_ALL}"):
            if name in records_by_id:
                selected[slurm_id] = records_by_id[name]
                break
    return selected


def _task_indices(text: str) -> list[str]:
    """Return the indices of tasks from `7` or `[0-2,5%4]`; `*` where Slurm names none."""
    numbers: list[str] = []
    for part in text.strip("[]").partition("%")[0].split(","):
        first, _, last = part.partition("-")
        if first.isdigit() and (last or first).isdigit():
            numbers += map(str, range(int(first), int(last or first) + 1))
    return numbers or [_ALL]


def _join_ids(ids: Iterable[str]) -> str:
    """Join ids for `--jobs`; an array is queried as one."""
    return ",".join(dict.fromkeys(slurm_id.partition("_")[0] for slurm_id in ids))


def chain_state(states: Sequence[str]) -> str:
    """Return the state of a job with copies: those after a success are removed before they start."""
    for word in ("running", "completed"):
        if word in states:
            return word
    if waiting := [state for state in states if state.startswith(WAITING_STATES)]:
        return waiting[0]
    ran = [state for state in states if NEVER_REASON not in state]
    return (ran or list(states))[-1]


def slurm_error(what: str, ran: CommandResult, shell: Shell) -> NewskillsError:
    """Return the error for a failed command of Slurm."""
    last_lines = " ".join((ran.err.strip() or ran.out.strip()).split("\n")[-3:])
    if ran.code == 127:
        return ConfigError(f"There is no {what} on {shell.name}: it cannot submit to Slurm.")
    if ran.code == KILLED_EXIT_CODE:
        return RemoteError(
            f"{what} got no answer on {shell.name}: the Slurm controller is slow or down. Try again."
        )
    return ConfigError(f"{what} failed on {shell.name} (exit code {ran.code}): {last_lines}")


def _squeue_call(ids: Iterable[str]) -> ShellCall:
    fields = ",".join(f"{field}:|" for field in SQUEUE_FIELDS)
    what = ("--states=all", "--array", "--noheader", f"--jobs={_join_ids(ids)}", f"--Format={fields}")
    return ShellCall(argv=(*_timeout_prefix(SQUEUE_SECONDS), "squeue", *what))


def _sacct_call(ids: Iterable[str], *more: str) -> ShellCall:
    what = ("-X", "--noheader", "--parsable2", f"--jobs={_join_ids(ids)}", "--format=JobID,State,ExitCode", *more)
    return ShellCall(argv=(*_timeout_prefix(SACCT_SECONDS), "env", "SLURM_BITSTR_LEN=0", "sacct", *what))


def _timeout_prefix(seconds: int) -> tuple[str, ...]:
    return ("timeout", "--signal=KILL", str(seconds))


def _query_preemption(shell: Shell, waiting: Mapping[str, SlurmRecord]) -> dict[str, SlurmRecord]:
    """Return records that say why jobs wait again: accounting keeps their earlier lives as lines of their own
    (-D)."""
    ran = shell.run_all([_sacct_call(waiting, "--duplicates")])[0]
    if ran.code == 0:
        lives = [line.split("|")[:2] for line in ran.out.splitlines()]
    else:
        lives = []
    preempted = {}
    for slurm_id, record in waiting.items():
        ended = [
            state for job, state in lives if slurm_id in (job, re.split(r"[_+]", job)[0]) and state != "PENDING"
        ]
        if ended and ended[-1].split()[0] == "PREEMPTED":
            preempted[slurm_id] = SlurmRecord(
                "PENDING", f"preempted, {record.reason}".rstrip(", "), record.restarts
            )
    return preempted


def _leading_record(some: Sequence[SlurmRecord]) -> SlurmRecord:
    return min(some, key=lambda record: STATE_RANK.index(record.word().split()[0]))
