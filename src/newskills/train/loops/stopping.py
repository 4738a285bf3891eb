# SPDX-License-Identifier: Apache-2.0
"""Signals of a training: the first asks for a checkpoint after the step, the second ends at once."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from newskills.base.errors import NewskillsError

Stop = Callable[[], bool]
ASKED_TO_END = (signal.SIGINT, signal.SIGTERM)
WARNED = signal.SIGUSR1
"""Slurm's warning before the time limit: a run that is complete all the same has ended well."""


class StoppedError(NewskillsError):
    """The user has stopped a training. What is done is on disk; the message says how to go on."""

    exit_code = 130


@contextmanager
def stop_on_signals(signals: tuple[signal.Signals, ...] = (*ASKED_TO_END, WARNED)) -> Iterator[Stop]:
    """Yield whether the run should write a checkpoint and end: it is asked after every step."""
    signals_received: list[int] = []

    def ask(number: int, _: object) -> None:
        if signals_received:
            raise KeyboardInterrupt
        signals_received.append(number)
        sys.stderr.write("\nstopping after this step, with a checkpoint; press again to stop now\n")
        sys.stderr.flush()

    before = [signal.signal(number, ask) for number in signals]
    try:
        yield lambda: bool(signals_received)
    finally:
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)


@contextmanager
def ended_by_term() -> Iterator[None]:
    """Let SIGTERM end what is done here as Ctrl-C does, so that everything is put away."""

    def end(number: int, _: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
