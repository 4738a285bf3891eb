# SPDX-License-Identifier: Apache-2.0
"""Waits for an experiment in the foreground, with logs on the screen; Ctrl-C stops its jobs."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence

from newskills.base.terminal import printable
from newskills.launch.experiments import Experiment
from newskills.launch.logs import follow_logs
from newskills.launch.states import JobWatch
from newskills.pipelines.submission.submitted import ask_about, exit_code

LOOK_EVERY = 0.2
"""Seconds."""
GOING = (signal.SIGHUP, signal.SIGTERM)


@contextlib.contextmanager
def ended_like_ctrl_c() -> Iterator[None]:
    """Treat a closed terminal (SIGHUP) and SIGTERM as a Ctrl-C, once: shells and kernels may both send them.

    A signal that is ignored (`nohup`) stays so. What is said to a terminal that is gone is lost.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    screens = [number for number in (1, 2) if os.isatty(number)]

    interrupted = False

    def stop(number: int, frame: object) -> None:
        nonlocal interrupted
        if interrupted:
            return
        interrupted = True
        if number == signal.SIGHUP and screens:
            nowhere = os.open(os.devnull, os.O_WRONLY)  # an error in what is printed would leave the jobs running
            for screen in screens:
                os.dup2(nowhere, screen)
        raise KeyboardInterrupt

    before = {
        number: handler for number in GOING if (handler := signal.getsignal(number)) not in (None, signal.SIG_IGN)
    }
    for signal_number in before:
        signal.signal(signal_number, stop)
    try:
        yield
    finally:
        for signal_number, handler in before.items():
            signal.signal(signal_number, handler)


class StoppedByUser(KeyboardInterrupt):
    """Ctrl-C, and the jobs have ended."""


@contextlib.contextmanager
def stopped_by_ctrl_c(experiment: Experiment) -> Iterator[None]:
    """Cancel the jobs where Ctrl-C comes in the body, wait for their ends, and raise it then as Stopped.

    A second one lets jobs give up what they are waiting for.
    """
    try:
        yield
    except StoppedByUser:
        raise
    except KeyboardInterrupt as error:
        with contextlib.suppress(OSError):
            sys.stderr.write("stopping the jobs …\n")
        about = ask_about(experiment)
        watch = JobWatch(experiment.jobs, about.executor, about.shell)
        about.executor.cancel(experiment.handles)
        while not _wait_until_over(watch):
            about.executor.cancel(experiment.handles)
        raise StoppedByUser from error


def follow_experiment(experiment: Experiment, *, show: Sequence[str] = ()) -> int:
    """Follow all jobs until they have ended; return 0, or the exit code of the first one that did not end well.

    `show` names commands whose logs are printed as they are written. Ctrl-C: as `stopped_by_ctrl_c`.
    """
    with stopped_by_ctrl_c(experiment):
        about = ask_about(experiment)
        files = [
            ("", f"{job.logs}/{name}.log") for job in experiment.jobs for name in job.commands if name in show
        ]
        watch = JobWatch(experiment.jobs, about.executor, about.shell)
        for line in follow_logs(about.shell, files, watch.all_ended):
            _print_log_line(line)
    states = about.states()
    for state in states:
        if state.code:
            why = f": {printable(state.why)}" if state.why else ""
            sys.stderr.write(f"job {state.job.name} {printable(state.state)}{why}; logs: {state.job.logs}\n")
    return exit_code(states)


def _print_log_line(line: str) -> None:
    try:
        sys.stdout.write(f"{printable(line)}\n")
        sys.stdout.flush()
    except OSError as error:  # nobody reads any more: the terminal is gone, its signal on the way
        raise KeyboardInterrupt from error


def _wait_until_over(watch: JobWatch) -> bool:
    """Wait until the jobs have ended; return False where Ctrl-C comes again."""
    try:
        while not watch.all_ended():
            time.sleep(LOOK_EVERY)
    except KeyboardInterrupt:
        return False
    return True
