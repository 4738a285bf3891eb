# SPDX-License-Identifier: Apache-2.0
"""Waits for an experiment in the foreground, with logs on the screen; Ctrl-C stops its jobs."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from newskills.commands._columns import printable
from newskills.commands._submitted import ask_about, exit_code
from newskills.launch.experiments import Experiment
from newskills.launch.logs import follow_logs
from newskills.launch.states import Watch

LOOK_EVERY = 0.2
"""Seconds."""


def follow(experiment: Experiment, *, show: Sequence[str] = ()) -> int:
    """Until all jobs have ended; returns 0, or the exit code of the first one that did not end well.

    `show` names commands whose logs are printed as they are written. Ctrl-C cancels the jobs, waits for their ends, and
    is raised then; a second one lets jobs give up what they are waiting for.
    """
    about = ask_about(experiment)
    files = [("", f"{job.logs}/{name}.log") for job in experiment.jobs for name in job.commands if name in show]
    watch = Watch(experiment.jobs, about.executor, about.shell)
    interrupt: KeyboardInterrupt | None = None
    try:
        for line in follow_logs(about.shell, files, watch.over):
            sys.stdout.write(f"{printable(line)}\n")
            sys.stdout.flush()
    except KeyboardInterrupt as error:
        interrupt = error
        sys.stderr.write("stopping the jobs …\n")
        about.executor.cancel(experiment.handles)
        while not _over(watch):
            about.executor.cancel(experiment.handles)
    if interrupt is not None:
        raise interrupt
    states = about.states()
    for state in states:
        if state.code:
            why = f": {printable(state.why)}" if state.why else ""
            sys.stderr.write(f"job {state.job.name} {printable(state.state)}{why}; its logs: {state.job.logs}\n")
    return exit_code(states)


def _over(watch: Watch) -> bool:
    """Waits for it; False: Ctrl-C again."""
    try:
        while not watch.over():
            time.sleep(LOOK_EVERY)
    except KeyboardInterrupt:
        return False
    return True
