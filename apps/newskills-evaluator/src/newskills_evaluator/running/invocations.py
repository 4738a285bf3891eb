# SPDX-License-Identifier: Apache-2.0
"""What the commands about submitted jobs share for invocations: finding them, tables, logs."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from newskills.base.callbacks import PrintLine
from newskills.base.errors import UnknownNameError
from newskills.base.tables import print_table
from newskills.base.terminal import print_now, printable
from newskills.launch.experiments import Experiment, ExperimentRecords
from newskills.pipelines.dry_run import show_dry_run
from newskills.pipelines.submission.following import stopped_by_ctrl_c
from newskills.pipelines.submission.submitted import ask_about, exit_code

if TYPE_CHECKING:
    from newskills_evaluator.invocations import InvocationJob
    from newskills_evaluator.oversight import JobStatus


def find_invocation_jobs(name: str) -> list[InvocationJob] | None:
    """Return the jobs of the invocation (or the single job) that `name` means; None where it is an experiment, or
    nothing.

    Experiments come first: their names meant something before there were invocations. Raises ConfigError where several
    invocations begin so.
    """
    from newskills_evaluator.invocations import Store, looks_like_id

    if not looks_like_id(name):
        return None
    try:
        ExperimentRecords(os.environ).find(name)
    except UnknownNameError:
        try:
            return Store(os.environ).find(name)
        except UnknownNameError:
            return None
    return None


def invocation_jobs(name: str) -> list[InvocationJob]:
    """Return the jobs of the invocation (or the one job) that `name` means, for commands that know nothing else. Raises
    UnknownNameError, ConfigError."""
    from newskills_evaluator.invocations import Store

    return Store(os.environ).find(name)


def forward_to_launcher(entries: Sequence[InvocationJob], verb: str, *, here: bool = False) -> int | None:
    """Let NeMo Evaluator's launcher act on jobs that are its own, and return its exit code; None where they are
    not.

    `here`: newskills can do it by itself for those of this machine. Raises ConfigError where it is not installed.
    """
    from newskills_evaluator.launcher import find_launcher, run_launcher
    from newskills_evaluator.oversight import launcher_job_error

    first = next((entry for entry in entries if entry.own is None and not (here and entry.is_local)), None)
    if first is None:
        return None
    if (program := find_launcher(os.environ)) is None:
        raise launcher_job_error(first)
    name = first.invocation_id if len(entries) > 1 else first.job_id
    return run_launcher(program, [verb, name])


def show_status(entries: Sequence[InvocationJob], *, json: bool) -> int:
    """Show the status of the jobs and return 0, since a job that failed is no failure to ask; or the exit code of NeMo
    Evaluator's launcher for its own jobs."""
    if (code := forward_to_launcher(entries, "status", here=True)) is not None:
        return code
    from newskills_evaluator.invocations import as_json
    from newskills_evaluator.oversight import job_statuses

    statuses = job_statuses(entries, os.environ)
    if json:
        sys.stdout.write(as_json([(status.entry, status.state) for status in statuses]) + "\n")
    else:
        print_jobs(statuses)
    return 0


def print_jobs(statuses: Sequence[JobStatus]) -> None:
    from newskills_evaluator.invocations import count_replies

    rows: list[tuple[str, ...]] = []
    for status in statuses:
        replies = count_replies(status.entry)
        why = ""
        if status.job is not None and status.job.why and status.job.code:
            why = f": {printable(status.job.why)}"
        rows.append(
            (
                status.entry.job_id,
                printable(status.entry.task),
                status.state + why,
                "" if status.code is None else str(status.code),
                "" if replies is None else str(replies),
                printable(str(status.entry.folder)),
            )
        )
    print_table(rows, ("job", "task", "state", "exit", "replies", "folder"))


def show_logs(entries: Sequence[InvocationJob], say: PrintLine, *, follow: bool) -> int:
    """Show the logs of the tasks; with `follow` until they have ended, and return their exit code then."""
    from newskills_evaluator.oversight import experiment_of, log_lines

    if (code := forward_to_launcher(entries, "logs", here=True)) is not None:
        return code
    if follow and entries[0].own is None:
        return follow_foreign(entries, say)
    if follow:
        experiment = experiment_of(entries[0], os.environ)
        return follow_jobs(experiment, say)
    shown = False
    for line in log_lines(entries, os.environ):
        say(printable(line))
        shown = True
    if not shown:
        places = ", ".join(printable(str(entry.folder / "logs")) for entry in entries)
        sys.stderr.write(f"note: no log has been written yet; logs will be in {places}\n")
    return 0


def cancel_jobs(entries: Sequence[InvocationJob], *, dry_run: bool) -> int:
    from newskills_evaluator.oversight import job_statuses, stop_jobs

    if not dry_run and (code := forward_to_launcher(entries, "kill")) is not None:
        return code
    if dry_run:
        show_dry_run(
            [
                ("cancels", status.entry.job_id, f"{status.entry.task} ({status.state})")
                for status in job_statuses(entries, os.environ)
                if status.state in ("pending", "running")
            ]
        )
        return 0
    names = ", ".join(entry.job_id for entry in stop_jobs(entries, os.environ))
    outcome = f"cancelled {names}" if names else "no job is running or waiting"
    sys.stdout.write(f"{entries[0].invocation_id}: {outcome}\n")
    return 0


def follow_foreign(entries: Sequence[InvocationJob], say: PrintLine = print_now) -> int:
    """Follow jobs of the launcher on this machine until they have ended; they go on after Ctrl-C."""
    from newskills_evaluator.oversight import follow_launched

    statuses = follow_launched(entries, lambda line: say(printable(line)))
    print_jobs(statuses)
    return next((status.code or 1 for status in statuses if status.state != "success"), 0)


def follow_jobs(experiment: Experiment, say: PrintLine = print_now, *, stop: bool = False) -> int:
    """Follow the jobs until they have ended; return the first exit code that is not 0. `stop`: Ctrl-C stops the
    jobs."""
    from contextlib import nullcontext

    from newskills_evaluator.remote import follow_tasks

    with stopped_by_ctrl_c(experiment) if stop else nullcontext():
        follow_tasks(experiment, os.environ, lambda line: say(printable(line)))
    states = ask_about(experiment).states()
    for state in states:
        if state.code:
            why = f": {printable(state.why)}" if state.why else ""
            sys.stderr.write(f"job {state.job.name} {printable(state.state)}{why}; logs: {state.job.logs}\n")
    return exit_code(states)
