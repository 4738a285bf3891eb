# SPDX-License-Identifier: Apache-2.0
"""How the jobs of an experiment are doing."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from msgspec import Struct

from newskills.base.errors import RemoteError
from newskills.base.protocols import Executor
from newskills.launch.experiments import Experiment, JobRecord, has_ended
from newskills.launch.machines.shell import Shell

NOT_SUBMITTED = "not submitted"

# For each folder a line: whether job.sh has started and ended there, and what job.exit says. Then the time there, and
# the files' times in the same order. One process looks at all of them: a thousand would cost seconds.
_LOOK = """
files=()
for folder; do
    seen="" mark=""
    if [[ -e $folder/job.started ]]; then seen+=s files+=("$folder/job.started"); fi
    if [[ -e $folder/job.exit ]]; then
        seen+=e files+=("$folder/job.exit")
        IFS= read -r mark <"$folder/job.exit"
    fi
    printf '%s|%s\\n' "$seen" "$mark"
done
printf '%s\\n' "${EPOCHREALTIME:-$(date +%s.%N)}"
[[ ${#files[@]} -eq 0 ]] || stat -c %.Y -- "${files[@]}"
"""
_AT_ONCE = 500
_MAX_LOOKS = 3
_ASK_AT_THE_END, _ASK_MEANWHILE = 0.5, 5.0
"""Seconds between two questions to the executor: with all job.exit there, and without (the job was killed)."""


class JobState(Struct, frozen=True, kw_only=True):
    """state: the executor's word; exit_code and why: from job.exit; seconds: of running, so far."""

    job: JobRecord
    state: str
    exit_code: int | None = None
    why: str = ""
    seconds: float | None = None

    @property
    def ended(self) -> bool:
        return self.state == NOT_SUBMITTED or has_ended(self.state)

    @property
    def code(self) -> int:
        """Return the exit code that `ns` may end with: 0 where the job completed, and while it runs."""
        if not self.ended or self.state == "completed":
            return 0
        return self.exit_code or 1


def experiment_states(experiment: Experiment, executor: Executor, shell: Shell) -> list[JobState]:
    """Return the states of all jobs of the experiment, in order. Raises RemoteError."""
    state_of_handle = executor.state(list(experiment.handles))
    marks = _read_marks(shell, [job.folder for job in experiment.jobs])
    job_states = []
    for job, (started, ended, now, mark) in zip(experiment.jobs, marks, strict=True):
        code, _, rest = mark.partition(" ")
        if job.handle:
            state = state_of_handle.get(job.handle, "unknown")
        else:
            state = NOT_SUBMITTED
        exit_code, why, until = None, "", now
        if has_ended(state):
            why, until = rest.partition(" ")[2], ended
            if code.isdigit():
                exit_code = int(code)
        seconds = _seconds_between(started, until)
        job_states.append(JobState(job=job, state=state, exit_code=exit_code, why=why, seconds=seconds))
    return job_states


class JobWatch:
    """Tells whether jobs have ended, and does not bother a scheduler with every look."""

    def __init__(self, jobs: Sequence[JobRecord], executor: Executor, shell: Shell) -> None:
        self._marks = [f"{job.folder}/job.exit" for job in jobs]
        self._handles = [job.handle for job in jobs if job.handle]
        self._executor, self._shell = executor, shell
        self._asked = -math.inf

    def all_ended(self) -> bool:
        """Return whether all jobs have ended; False without asking the executor where it was asked shortly before.
        Raises RemoteError."""
        if all(self._shell.exists(self._marks)):
            pause = _ASK_AT_THE_END
        else:
            pause = _ASK_MEANWHILE
        if time.monotonic() - self._asked < pause:
            return False
        state_of_handle = self._executor.state(self._handles)
        self._asked = time.monotonic()
        return all(has_ended(state_of_handle.get(handle, "unknown")) for handle in self._handles)


def _read_marks(shell: Shell, folders: Sequence[str]) -> list[tuple[str, str, str, str]]:
    """Read, for each folder, when its job started and ended, the time there, and what job.exit says."""
    marks: list[tuple[str, str, str, str]] = []
    for start in range(0, len(folders), _AT_ONCE):
        some = folders[start : start + _AT_ONCE]
        marks += next(filter(None, (_read_marks_once(shell, some) for _ in range(_MAX_LOOKS))), ())
    if len(marks) != len(folders):
        raise RemoteError(f"Cannot read the folders of jobs on {shell.name}.")
    return marks


def _read_marks_once(shell: Shell, folders: Sequence[str]) -> list[tuple[str, str, str, str]]:
    """Read marks once; empty where a file vanished between two looks, as when a job begins its next life."""
    lines = shell.run(["bash", "-c", _LOOK, "bash", *folders]).out.split("\n")[:-1]
    heads = [line.partition("|") for line in lines[: len(folders)]]
    now, *times = lines[len(folders) :] or [""]
    if len(times) != sum(len(flags) for flags, _, _ in heads):
        return []
    left = iter(times)
    marks = []
    for flags, _, mark in heads:
        started = next(left) if "s" in flags else ""
        ended = next(left) if "e" in flags else ""
        marks.append((started, ended, now, mark))
    return marks


def _seconds_between(start: str, end: str) -> float | None:
    if not start or not end:
        return None
    return max(0.0, float(end.replace(",", ".")) - float(start.replace(",", ".")))
