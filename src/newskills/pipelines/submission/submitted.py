# SPDX-License-Identifier: Apache-2.0
"""What the commands about submitted jobs share: finding them, tables, and logs on a terminal."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from newskills.base.callbacks import PrintLine
from newskills.base.protocols import Executor
from newskills.base.terminal import printable
from newskills.launch.experiments import Experiment, ExperimentRecords
from newskills.launch.logs import chosen_jobs, follow_logs, log_files, read_logs
from newskills.launch.machines.shell import Shell
from newskills.launch.machines.ssh import shell_of
from newskills.launch.states import JobState, JobWatch, experiment_states
from newskills.launch.submit import executor_of, with_handles

SCREENFUL = 18
"""Jobs of a table, where more are not asked for."""


class SubmittedExperiment(Struct, frozen=True):
    """An experiment with what it takes to ask about it."""

    experiment: Experiment
    executor: Executor
    shell: Shell

    def states(self, job: str | None = None) -> list[JobState]:
        """Return the states of the job called `job`, or of all. Raises ConfigError, RemoteError."""
        wanted = {job.name for job in chosen_jobs(self.experiment, job)}
        return [
            state
            for state in experiment_states(self.experiment, self.executor, self.shell)
            if state.job.name in wanted
        ]

    def show_logs(self, job: str | None, command: str | None, say: PrintLine, *, follow: bool) -> int:
        """Print the logs, with `follow` until the jobs have ended; return the first exit code that is not 0 (without
        `follow`: 0).

        Text of logs is hostile: nothing of it reaches the terminal that a terminal would obey.
        """
        files = log_files(self.experiment, job, command)
        if not follow:
            lines = read_logs(self.shell, files)
        else:
            watch = JobWatch(chosen_jobs(self.experiment, job), self.executor, self.shell)
            lines = follow_logs(self.shell, files, watch.all_ended)
        shown = False
        for line in lines:
            say(printable(line))
            shown = True
        if not shown:
            places = ", ".join(job.logs for job in chosen_jobs(self.experiment, job))
            sys.stderr.write(f"note: no log has been written yet; logs will be in {printable(places)}\n")
        if follow:
            return exit_code(self.states(job))
        return 0


def find_submitted(name: str) -> SubmittedExperiment:
    """Return the experiment that `name` means. Raises UnknownNameError, ConfigError."""
    return ask_about(ExperimentRecords(os.environ).find(name))


def ask_about(experiment: Experiment) -> SubmittedExperiment:
    """Return the experiment with the executor and the shell to ask about it. Raises NewskillsError."""
    experiment = with_handles(experiment, os.environ)
    return SubmittedExperiment(
        experiment, executor_of(experiment, os.environ), shell_of(experiment.cluster, os.environ)
    )


def exit_code(jobs: Sequence[JobState]) -> int:
    """Return the first exit code that is not 0; 0 where there is none."""
    return next((job.code for job in jobs if job.code), 0)


JOB_HEAD = ("job", "state", "exit", "seconds", "logs")


def job_rows(jobs: Sequence[JobState]) -> list[tuple[str, ...]]:
    """Return the cells shown for each job, below `JOB_HEAD`."""
    rows: list[tuple[str, ...]] = []
    for job in jobs:
        state = printable(job.state)
        if job.why and job.code:
            state += f": {printable(job.why)}"
        exit_code = "" if job.exit_code is None else str(job.exit_code)
        seconds = "" if job.seconds is None else f"{job.seconds:.0f}"
        rows.append((job.job.name, state, exit_code, seconds, printable(job.job.logs)))
    return rows


def select_screenful(jobs: Sequence[JobState]) -> list[JobState]:
    """Select as many jobs as a screen shows: those that ended badly, then what runs, then what waits."""
    if len(jobs) <= SCREENFUL:
        return list(jobs)
    ranked = sorted(range(len(jobs)), key=lambda number: (_display_rank(jobs[number]), number))
    return [jobs[number] for number in ranked[:SCREENFUL]]


def _display_rank(job: JobState) -> int:
    if job.ended and job.state != "completed":
        return 0
    if job.ended:
        return 3
    if job.state == "running":
        return 1
    return 2


def summarize_states(jobs: Sequence[JobState]) -> str:
    """Summarize states as `2 running, 5 completed`."""
    counts = Counter(job.state for job in jobs)
    return ", ".join(f"{count:,} {printable(state)}" for state, count in counts.most_common()) or "no jobs"
