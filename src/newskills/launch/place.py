# SPDX-License-Identifier: Apache-2.0
"""What an executor gives to the one job script: how a step is started, and what stands above it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from msgspec import Struct

from newskills.base.plan import Command, Job
from newskills.launch.clusters.config import ClusterConfig


class JobFolder(Struct, frozen=True, kw_only=True):
    """Where one job of an experiment keeps its scripts, ports, exit codes and logs, as its nodes see it.

    path  <job_dir>/<experiment>/<job>
    logs  folder of `<command>.log`; inside `path` unless the user gave a --log_dir
    code  the packaged code, in containers visible as /nemo_run/code
    """

    path: str
    logs: str
    code: str = ""


class Site(Struct, frozen=True, kw_only=True):
    """What an executor is made from: a cluster and one experiment on it.

    folder      <job_dir>/<experiment>, as the nodes see it; absolute
    code        the packaged code, as in JobFolder
    log_dir     the user's --log_dir, where the job itself names none
    environ     of the launching command: where env_vars and secrets get their values
    experiment  its name, for names of jobs; empty: the folder's
    """

    cluster: ClusterConfig
    folder: str
    code: str = ""
    log_dir: str = ""
    environ: Mapping[str, str] = {}
    experiment: str = ""

    def job_folder(self, job: Job) -> JobFolder:
        path = f"{self.folder}/{job.name}"
        logs = job.log_dir
        if not logs:
            logs = f"{self.log_dir}/{job.name}" if self.log_dir else f"{path}/logs"
        return JobFolder(path=path, logs=logs, code=self.code)


class PendingJob(Struct, frozen=True):
    """A job to submit: after the handles `after` and the jobs named `needs`, which stand before it in the list."""

    job: Job
    after: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


@runtime_checkable
class PipelineSubmitter(Protocol):
    """An executor that submits a whole pipeline in one trip; `Executor.submit` would need one for each job."""

    def submit_all(self, jobs: Sequence[PendingJob]) -> dict[str, str]:
        """Submit jobs; return job name → handle. All or none: where one fails, the others are cancelled."""
        ...


@runtime_checkable
class JobFinder(Protocol):
    """An executor that may have taken jobs without being able to say so."""

    def find(self, names: Sequence[str]) -> dict[str, str]:
        """Return job name → handle, for jobs of this experiment that were taken. Raises RemoteError,
        ConfigError."""
        ...


@runtime_checkable
class AttendedExecutor(Protocol):
    """An executor whose jobs run on the launching machine, so that the launching command waits for them."""

    def wait(self, handles: Sequence[str]) -> dict[str, str]:
        """Return handle → state, when all have ended. Ctrl-C cancels them first."""
        ...


class Obstacle(Struct, frozen=True):
    """Why the jobs of these names would not run; unless `final`, they would only have to wait."""

    jobs: tuple[str, ...]
    text: str
    final: bool = True


@runtime_checkable
class ObstacleFinder(Protocol):
    """An executor that can say what would become of jobs without submitting them."""

    def obstacles(self, jobs: Sequence[Job]) -> list[Obstacle]:
        """Return what keeps any of the jobs from running; empty where nothing does. Raises ConfigError,
        RemoteError."""
        ...


class Variable(Struct, frozen=True):
    """A shell variable, with text around it, as one word: `before"$name"after`."""

    name: str
    before: str = ""
    after: str = ""


SIGNAL_GROUP = ('kill -s "$1" -- "-$3" 2>/dev/null || kill -s "$1" -- "$3" 2>/dev/null',)
"""`Place.signal` for steps that lead a process group (`setsid`), or that pass signals on themselves."""


@runtime_checkable
class ExecutorScript(Protocol):
    """One executor's part of the job script."""

    cluster: ClusterConfig

    def header(self, job: Job, folder: JobFolder) -> Sequence[str]:
        """Return the lines below `#!/bin/bash`: `#SBATCH …`, empty for others."""
        ...

    def prologue(self, job: Job, folder: JobFolder) -> Sequence[str]:
        """Return lines of bash before the first step: SLURM_MASTER_NODE and the like.

        They may define a function `make_room`, which job.sh calls before it ends with another exit code than 0.
        """
        ...

    def step(self, job: Job, group: int, command: Command, folder: JobFolder) -> Sequence[str | Variable]:
        """Return the words of argv in front of `bash <folder>/<command>.sh`, which run it in its place.

        Variables are those of `prologue`. Where nothing else holds the processes of a step together, `setsid` does.
        """
        ...

    def environment(self, command: Command) -> Mapping[str, str]:
        """Return the variables of the cluster config whose values are no secrets."""
        ...

    def workdir(self, command: Command, folder: JobFolder) -> str:
        """Return where the command starts, as it sees it; empty for where its step puts it."""
        ...

    def host(self, job: Job, group: int) -> str | Variable:
        """Return the name or address under which other commands of the job reach the node that runs this group."""
        ...

    def first_node(self, job: Job, group: int) -> str | Variable:
        """Return the name or address of the first node of a group, on whichever node this is asked (`Ref(…,
        "node")`)."""
        ...

    def inside(self, command: Command, folder: JobFolder) -> Sequence[str]:
        """Return lines of bash at the beginning of the command's own script, inside its step or container.

        They may write `$job_folder/$job_command.step`, for `signal`; files of that kind are removed when a job starts.
        """
        ...

    def signal(self, job: Job, folder: JobFolder) -> Sequence[str]:
        """Return the body of the function `send_signal SIGNAL NAME PID` of job.sh: PID is the step's process.

        The signal is TERM or KILL and must reach all processes of the command. `srun` does not pass TERM on but kills
        the step; `scancel --signal=TERM <job>.<step>` is what lets a client save its work.
        """
        ...

    def out_of_time(self, job: Job, folder: JobFolder) -> Sequence[str]:
        """Return lines of bash that run when USR1 has stopped the job and job.exit is written (`scontrol requeue
        …`)."""
        ...
