# SPDX-License-Identifier: Apache-2.0
"""How a training shows that it is alive: a bar on a terminal, lines elsewhere, from before its first step on."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct

from newskills.train.loops.stepping import OnStart, OnStep, Progress

PLAIN_EVERY, DRAWN_EVERY = 10.0, 1.0
"""Seconds between two lines, and between two looks of a bar."""
LONG = 3.0
"""Seconds after which a step that is not done is told of."""
WIDTH = 24
SHOWN = ("loss", "reward", "signal")


class StepReporter(Struct, frozen=True):
    """What a training tells on its way; nothing unless set."""

    on_start: OnStart = lambda done, steps: None
    on_step: OnStep = lambda progress: None


@contextmanager
def steps_shown(title: str) -> Iterator[StepReporter]:
    """Show loading and steps on stderr for as long as the context lasts."""
    shown, ended = _Steps(title, terminal=sys.stderr.isatty()), threading.Event()

    def look_on() -> None:
        while not ended.wait(shown.every):
            shown.tick()

    thread = threading.Thread(target=look_on, name="newskills-steps", daemon=True)
    shown.tick(at_once=True)
    thread.start()
    try:
        yield StepReporter(shown.on_start, shown.on_step)
    finally:
        ended.set()
        thread.join()
        shown.close()


class _Steps:
    def __init__(self, title: str, *, terminal: bool) -> None:
        self._title, self._terminal = title, terminal
        self.every = DRAWN_EVERY if terminal else PLAIN_EVERY
        self._lock = threading.Lock()
        self._phase = self._last = time.monotonic()
        self._begun = 0.0
        self._first = self._done = self._steps = 0
        self._values = ""
        self._open = False

    def on_start(self, done: int, steps: int) -> None:
        with self._lock:
            self._first = self._done = done
            self._steps = steps
            self._begun = self._phase = time.monotonic()
            self._write(self._line(0.0))

    def on_step(self, progress: Progress) -> None:
        now = time.monotonic()
        with self._lock:
            self._done, self._steps = progress.done, progress.steps
            pace = (now - self._begun) / max(1, progress.done - self._first)
            left = pace * (progress.steps - progress.done)
            values = [f"{name} {progress.metrics[name]:.3g}" for name in SHOWN if name in progress.metrics]
            self._values = " · ".join(
                [*values, f"{pace:.1f} s a step", f"{left // 60:.0f} min {left % 60:.0f} s left"]
            )
            self._phase = now
            if self._terminal or progress.done == progress.steps or now - self._last >= PLAIN_EVERY:
                self._write(self._line(0.0))

    def tick(self, *, at_once: bool = False) -> None:
        """Write the progress line of a long phase."""
        with self._lock:
            seconds = time.monotonic() - self._phase
            if at_once or not self._steps or (seconds >= LONG and self._done < self._steps):
                self._write(self._line(seconds))

    def close(self) -> None:
        with self._lock:
            if self._open:
                sys.stderr.write("\n")
                sys.stderr.flush()
                self._open = False

    def _line(self, seconds: float) -> str:
        since = f" · {seconds:.0f} s" if seconds >= 1 else ""
        if not self._steps:
            return f"{self._title}: loading the model{since}"
        if self._values:
            words = [self._values]
        else:
            words = [f"step {self._done + 1} has started"]
        if since:
            words.append(f"step {self._done + 1} for {seconds:.0f} s")
        bar = ""
        if self._terminal:
            full = WIDTH * self._done // self._steps
            bar = f"{'━' * full}{' ' * (WIDTH - full)} "
        return f"{self._title} {bar}{self._done}/{self._steps} · {' · '.join(words)}"

    def _write(self, line: str) -> None:
        """Write a line to stderr; the caller holds the lock."""
        written = f"\r\x1b[2K{line}" if self._terminal else f"{line}\n"
        sys.stderr.write(written)
        sys.stderr.flush()
        self._open = self._terminal
        self._last = time.monotonic()
