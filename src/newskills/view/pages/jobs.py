# SPDX-License-Identifier: Apache-2.0
"""What was submitted from this machine: experiments, their jobs, what waits for what, and the ends of their logs."""

from __future__ import annotations

import itertools
import os
import threading
from collections import deque

from newskills.base.errors import NewskillsError
from newskills.base.records import Row
from newskills.launch.experiments import Experiment, ExperimentRecords
from newskills.launch.logs import log_files, read_logs
from newskills.launch.machines.ssh import shell_of
from newskills.launch.states import experiment_states
from newskills.launch.submit import executor_of

MAX_EXPERIMENTS = 100
MAX_LOG_LINES = 500
"""The last of a log."""
MAX_LINE_CHARS = 4_000
"""Characters of a line."""


_reading = threading.Lock()
"""Two threads must not be the first to decode a struct at the same time."""


def jobs_page() -> Row:
    """Return the latest experiments, without asking any cluster for their states."""
    experiments, notes = [], []
    try:
        with _reading:
            for experiment in itertools.islice(ExperimentRecords(os.environ).latest(), MAX_EXPERIMENTS):
                experiments.append(_experiment_summary(experiment))
    except NewskillsError as error:
        notes.append(str(error))
    return {"experiments": experiments, "notes": notes}


def experiment_page(name: str) -> Row:
    """Return the jobs with their states, as the cluster tells them. Raises UnknownNameError, ConfigError."""
    experiment = _find_experiment(name)
    page = _experiment_summary(experiment)
    try:
        job_states = experiment_states(
            experiment, executor_of(experiment, os.environ), shell_of(experiment.cluster, os.environ)
        )
        state_of = {state.job.name: state for state in job_states}
    except NewskillsError as error:
        page["error"] = str(error)
        state_of = {}
    page["jobs"] = []
    for job in experiment.jobs:
        state = state_of.get(job.name)
        state_name = state.state if state else "unknown"
        exit_code = state.exit_code if state else None
        why = state.why if state else ""
        seconds = state.seconds if state else None
        page["jobs"].append(
            {
                "name": job.name,
                "state": state_name,
                "exit_code": exit_code,
                "why": why,
                "seconds": seconds,
                "waits_for": [*job.depends_on, *job.after],
                "commands": list(job.commands),
                "logs": job.logs,
                "makes": list(job.makes),
            }
        )
    return page


def log_page(name: str, job: str, command: str) -> Row:
    """Return the last lines that a job has printed. Raises UnknownNameError, ConfigError, RemoteError."""
    experiment = _find_experiment(name)
    files = log_files(experiment, job, command or None)
    last: deque[str] = deque(maxlen=MAX_LOG_LINES)
    count = 0
    for line in read_logs(shell_of(experiment.cluster, os.environ), files):
        last.append(line[:MAX_LINE_CHARS])
        count += 1
    return {"lines": list(last), "left_out": count - len(last)}


def _find_experiment(name: str) -> Experiment:
    with _reading:
        return ExperimentRecords(os.environ).find(name)


def _experiment_summary(experiment: Experiment) -> Row:
    return {
        "id": experiment.id,
        "name": experiment.name,
        "cluster": experiment.cluster.name,
        "submitted": experiment.submitted_at,
        "folder": experiment.folder,
        "commit": experiment.package.commit[:12],
        "count": len(experiment.jobs),
    }
