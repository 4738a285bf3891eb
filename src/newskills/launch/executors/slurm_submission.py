# SPDX-License-Identifier: Apache-2.0
"""How jobs go to Slurm in one trip: as the tasks of arrays where they are alike, else each by an `sbatch` of its own.

An array costs the controller and `ns` as much as one job does. Its tasks keep the folders, scripts and logs that they
would have as single jobs; the handle of one is `<id of the array>_<its index>`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from msgspec import Struct

from newskills.base.errors import ConfigError
from newskills.launch.clusters.names import MAX_NAME_CHARS
from newskills.launch.executors.slurm_script import CONTROLLER_TROUBLE, Options, log_pattern, sbatch_lines
from newskills.launch.job_script import quote_for_bash, read_bash_resource
from newskills.launch.machines.shell import Shell
from newskills.launch.place import JobFolder, PendingJob

SBATCH_SECONDS, SQUEUE_SECONDS = 120, 60
"""After which Slurm's commands are not waited for any longer."""
LOOK_PAUSES = (1, 2, 4, 8, 15, 30, 60)
"""Pauses before each look for a job that sbatch has not confirmed. Three answers without it are enough."""
_OWN_OPTIONS = ("job-name", "output")


class ArrayBatch(Struct, frozen=True):
    """Numbers of the jobs that one sbatch submits. More than one: tasks of array `array`, in this order."""

    jobs: tuple[int, ...]
    array: int = -1


def array_size(shell: Shell) -> int:
    """Return how many tasks an array may have; 1 where the cluster has no arrays or does not say. Raises
    RemoteError."""
    ran = shell.run(["scontrol", "show", "config"])
    match = re.search(r"^MaxArraySize\s*=\s*(\d+)", ran.out, re.MULTILINE | re.ASCII)
    return max(1, int(match[1]) - 1) if ran.code == 0 and match else 1


def group_alike_jobs(
    jobs: Sequence[PendingJob], requests: Sequence[list[Options]], *, any_end: bool
) -> list[list[int]]:
    """Return lists of numbers of jobs that could be tasks of one array, each list after those that it depends on.

    They ask for the same (`requests`: options of each group of each job), have as many copies, and wait for the same
    jobs, or (`any_end`: it does not matter how these end) for jobs that an array can be told of one by one.
    """
    numbers = {job.job.name: number for number, job in enumerate(jobs)}
    levels: list[int] = []
    groups_alike: dict[object, list[int]] = {}
    for number, job in enumerate(jobs):
        levels.append(max((levels[numbers[name]] + 1 for name in job.needs), default=0))
        groups = requests[number]
        key: object = (levels[number], number)
        if len(groups) == 1:
            same = tuple((name, value) for name, value in groups[0].items() if name not in _OWN_OPTIONS)
            waits: object = (job.needs, job.after)
            if any_end:
                waits = bool(job.needs or job.after)
            key = (levels[number], same, job.job.copies, waits)
        groups_alike.setdefault(key, []).append(number)
    return sorted(groups_alike.values(), key=lambda some: levels[some[0]])


def array_batches(groups: Sequence[Sequence[int]], size: int) -> list[ArrayBatch]:
    """Split each of `groups` into arrays of at most `size` tasks."""
    batch_list: list[ArrayBatch] = []
    arrays = 0
    for group in groups:
        for start in range(0, len(group), size):
            some = tuple(group[start : start + size])
            if len(some) == 1:
                batch_list.append(ArrayBatch(some))
            else:
                batch_list.append(ArrayBatch(some, arrays))
                arrays += 1
    return batch_list


def array_text(options: Options, jobs: Sequence[PendingJob], place: str, array: int) -> str:
    """Return the content of array.sh. `options`: of the first of these jobs; place: the experiment's folder."""
    folder = f"{place}/.arrays/{array}"
    name = f"{options['job-name'][: MAX_NAME_CHARS - 6]}+{len(jobs) - 1}"
    head = sbatch_lines([{**options, "job-name": name, "output": f"{log_pattern(folder)}/%A_%a.log"}])
    names = "".join(f"    {quote_for_bash(job.job.name)}\n" for job in jobs)
    return "\n".join(["#!/bin/bash", *head, _ARRAY.format(names=names, place=quote_for_bash(place), array=array)])


class SlurmSubmission:
    """One trip. `active`: handles of other experiments' jobs that have not ended; `kept`: variables that jobs get."""

    def __init__(
        self,
        jobs: Sequence[PendingJob],
        packed: Sequence[ArrayBatch],
        folders: Sequence[JobFolder],
        *,
        dependency_type: str,
        active: Collection[str],
        kept: Sequence[str],
    ) -> None:
        self._jobs, self._batches, self._folders = jobs, packed, folders
        self._kind, self._active, self._kept = dependency_type, active, kept
        self._numbers = {job.job.name: number for number, job in enumerate(jobs)}
        self._batch_of = {number: batch for batch in packed for number in batch.jobs}

    def text(self, place: str) -> str:
        """Return bash that submits all into the folder `place` and prints `=<number> <handle>` for each. Raises
        ConfigError."""
        lines = [
            f"root={quote_for_bash(place)}",
            f"controller_trouble={quote_for_bash(CONTROLLER_TROUBLE)}",
            f"sbatch_seconds={SBATCH_SECONDS} squeue_seconds={SQUEUE_SECONDS} "
            f"looks='{' '.join(map(str, LOOK_PAUSES))}'",
            read_bash_resource("slurm_keep") + read_bash_resource("slurm_submit"),
            f"keep_only {' '.join(self._kept)}",
            f"mkdir -p -- {' '.join(quote_for_bash(folder.logs) for folder in self._folders)} || exit 1",
            f"forget {' '.join(quote_for_bash(folder.path) for folder in self._folders)}",
            _BEGIN,
        ]
        for batch in self._batches:
            lines += self._batch(batch)
        return "\n".join([*lines, _END])

    def _batch(self, batch: ArrayBatch) -> list[str]:
        needs = {number: self._needs(self._jobs[number]) for number in batch.jobs}
        first = batch.jobs[0]
        copies = self._jobs[first].job.copies
        if batch.array < 0:
            folder = self._folders[first]
            return [
                f"submit {first} {copies} {needs[first]} {quote_for_bash(folder.path)} {quote_for_bash(folder.logs)}"
            ]
        differ = len(set(needs.values())) > 1
        if differ:
            every = self._needs(*(self._jobs[number] for number in batch.jobs))
        else:
            every = needs[first]
        lines = [f"array {batch.array} {len(batch.jobs)} {copies} {every}"]
        for index, number in enumerate(batch.jobs):
            folder = self._folders[number]
            words = (
                f"task {number} {index} {batch.array} {quote_for_bash(folder.path)} {quote_for_bash(folder.logs)}"
            )
            line = f"{words} {needs[number]}"
            if differ:
                line += " differs"
            lines.append(line)
        return [*lines, "narrow"]

    def _needs(self, *jobs: PendingJob) -> str:
        """Return a word of bash for `--dependency`: everything that these jobs wait for, and in arrays perhaps more; or
        ""."""
        chains = [handle for job in jobs for handle in job.after if handle in self._active]
        wanted: dict[ArrayBatch, set[int]] = {}
        for name in dict.fromkeys(name for job in jobs for name in job.needs):
            number = self._numbers[name]
            wanted.setdefault(self._batch_of[number], set()).add(number)
        copied = [self._jobs[batch.jobs[0]].job.name for batch in wanted if self._jobs[batch.jobs[0]].job.copies]
        copied += [handle for handle in chains if ":" in handle]
        if copied and self._kind != "afterany":
            raise ConfigError(
                f"Job '{jobs[0].job.name}' cannot depend on {copied[0]} by {self._kind}, because some "
                "follow-up jobs of that job will never run.",
                hint="Use dependency_type: afterany in the cluster config.",
            )
        for batch, some in wanted.items():
            if batch.array >= 0 and (len(jobs) > 1 or len(some) == len(batch.jobs)):
                chains.append(f"${{chain_{batch.array}}}")
            else:
                chains += [f"${{handle_{number}}}" for number in sorted(some)]
        return '"' + ",".join(f"{self._kind}:{chain}" for chain in dict.fromkeys(chains)) + '"'


_ARRAY = """
# Jobs of this experiment that ask for the same. Each task runs the job.sh of its own job.
jobs=(
{names})
job=${{jobs[$SLURM_ARRAY_TASK_ID]}}
task=${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID
cd -- {place}/"$job" || exit 1
source <(grep -m 1 '^job_logs=' job.sh)
log={place}/.arrays/{array}/$task.log name=$job_logs/${{job}}_${{task}}_sbatch.log
[[ $name -ef $log ]] || ln -f -- "$log" "$name" 2>/dev/null || ln -sf -- "$log" "$name"
exec "$BASH" job.sh
"""

_BEGIN = """\
# Who submits outlives Ctrl-C and whoever asked for it: a killed sbatch may leave a job that nobody knows of.
trap '' INT TERM HUP PIPE
{
"""

_END = """\
strays
} </dev/null &
wait $!
"""
