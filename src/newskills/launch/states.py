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
from newskills.launch.shell import Shell

NOT_SUBMITTED = "not submitted"

# One line for each folder: when job.sh started and ended (files' times), the time there, and what job.exit says.
_LOOK = """
shopt -s nullglob
for folder; do
    started=$(stat -c %.Y -- "$folder/job.started" 2>/dev/null)
    ended=$(stat -c %.Y -- "$folder/job.exit" 2>/dev/null)
    mark=""
    [[ -n $ended ]] && IFS= read -r mark <"$folder/job.exit"
    printf '%s|%s|%s|%s\\n' "$started" "$ended" "${EPOCHREALTIME:-$(date +%s.%N)}" "$mark"
done
"""
_AT_ONCE = 500
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
        """What `ns` may end with: 0 only where the job completed; while it runs there is none, and 0 is said."""
        if not self.ended or self.state == "completed":
            return 0
        return self.exit_code or 1


def states(experiment: Experiment, executor: Executor, shell: Shell) -> list[JobState]:
    """Of all its jobs, in order. Raises RemoteError."""
    known = executor.state(list(experiment.handles))
    marks = _marks(shell, [job.folder for job in experiment.jobs])
    found = []
    for job, (started, ended, now, mark) in zip(experiment.jobs, marks, strict=True):
        code, _, rest = mark.partition(" ")
        state = known.get(job.handle, "unknown") if job.handle else NOT_SUBMITTED
        over = has_ended(state)
        found.append(
            JobState(
                job=job,
                state=state,
                exit_code=int(code) if over and code.isdigit() else None,
                why=rest.partition(" ")[2] if over else "",
                seconds=_seconds(started, ended if over else now),
            )
        )
    return found


class Watch:
    """Tells whether jobs have ended, and does not bother a scheduler with every look."""

    def __init__(self, jobs: Sequence[JobRecord], executor: Executor, shell: Shell) -> None:
        self._marks = [f"{job.folder}/job.exit" for job in jobs]
        self._handles = [job.handle for job in jobs if job.handle]
        self._executor, self._shell = executor, shell
        self._asked = -math.inf

    def over(self) -> bool:
        """Raises RemoteError."""
        pause = _ASK_AT_THE_END if all(self._shell.exists(self._marks)) else _ASK_MEANWHILE
        if time.monotonic() - self._asked < pause:
            return False
        known = self._executor.state(self._handles)
        self._asked = time.monotonic()
        return all(has_ended(known.get(handle, "unknown")) for handle in self._handles)


def _marks(shell: Shell, folders: Sequence[str]) -> list[list[str]]:
    lines: list[str] = []
    for start in range(0, len(folders), _AT_ONCE):
        some = folders[start : start + _AT_ONCE]
        done = shell.run(["bash", "-c", _LOOK, "bash", *some])
        lines += done.out.split("\n")[: len(some)]
    if len(lines) != len(folders):
        raise RemoteError(f"Cannot look at the folders of jobs on {shell.name}.")
    return [line.split("|", 3) for line in lines]


def _seconds(start: str, end: str) -> float | None:
    if not start or not end:
        return None
    return max(0.0, float(end.replace(",", ".")) - float(start.replace(",", ".")))
