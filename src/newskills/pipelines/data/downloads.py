# SPDX-License-Identifier: Apache-2.0
"""Progress of downloads: a bar at the bottom of a terminal, and lines as things are done."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from typing import TextIO

from newskills.base.terminal import printable

_PAUSE = 0.1
_WIDTH = 24


class ProgressBar:
    """A bar on stderr, if that is a terminal; `line` writes above it. Safe for threads."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()
        self._lock = threading.RLock()
        self._next = 0.0

    def draw(self, share: float, text: str) -> None:
        """Draw the bar at `share` (0–1) of the work."""
        with self._lock:
            if not self._shown or time.monotonic() < self._next:
                return
            self._next = time.monotonic() + _PAUSE
            full = round(min(1.0, share) * _WIDTH)
            line = f"[{'#' * full}{'-' * (_WIDTH - full)}] {printable(text)}"
            sys.stderr.write(f"\r\x1b[K{line[: shutil.get_terminal_size().columns - 1]}")
            sys.stderr.flush()

    def line(self, text: str, stream: TextIO | None = None) -> None:
        """Print a line on stdout, or `stream`."""
        with self._lock:
            if self._shown:
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()
            self._next = 0.0
            (stream or sys.stdout).write(f"{text}\n")


class DownloadProgress(ProgressBar):
    """How many of `count` benchmarks are done, and the bytes of all downloads; called from their threads."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = max(1, count)
        self._done = 0
        self._bytes: dict[str, int] = {}
        self._started = time.monotonic()

    def __call__(self, what: str, done: int, total: int | None) -> None:
        with self._lock:
            self._bytes[what] = done
            size = sum(self._bytes.values()) / 2**20
            speed = size / max(0.001, time.monotonic() - self._started)
            of = f" {done / total:.0%}" if total else ""
            name = what.rpartition("/")[2]
            self.draw(
                self._done / self._count,
                f"{self._done}/{self._count}  {size:.1f} MB  {speed:.1f} MB/s  {name}{of}",
            )

    def count_one(self) -> None:
        """Count one more finished benchmark."""
        with self._lock:
            self._done += 1
