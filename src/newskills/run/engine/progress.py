# SPDX-License-Identifier: Apache-2.0
"""What the person in front sees: a bar on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING

from msgspec import Struct

from newskills.base.terminal import printable
from newskills.run.planning.spec import masked
from newskills.run.records.journal import Journal

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

PLAIN_EVERY = 10.0
BAR_WIDTH = 16
"""Characters; a title, the bar and a line of `describe` fit into 100 columns."""


class SlowRequests(Struct, frozen=True):
    """Requests that take much longer than others did: how many; of the oldest, seconds so far, and to come at most."""

    count: int
    waited: float
    left: float


class Snapshot(Struct, kw_only=True):
    """Where a run stands. `fresh`: rows answered by this process; tokens and cost None = not known."""

    rows: int
    done: int
    fresh: int
    tokens: int | None = None
    cost: float | None = None
    retries: int = 0
    concurrency: int = 0
    unscored: int = 0
    slow: SlowRequests | None = None


class Progress:
    """Shows snapshots; `say` prints a sentence above the bar. Text of models and servers can do no harm."""

    def __init__(
        self, console: Console, title: str, *, quiet: bool = False, journal: Journal | None = None
    ) -> None:
        self.journal = journal or Journal("")
        self._console, self._title, self._quiet = console, title, quiet
        self._began = self._shown = time.monotonic()
        self._bar: Bar | None = None
        self._task: TaskID | None = None
        self._last_line = ""

    def __enter__(self) -> Progress:
        if self._console.is_terminal and not self._quiet:
            from rich.progress import BarColumn, Progress, TextColumn

            columns = (
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=BAR_WIDTH),
                TextColumn("{task.fields[state]}"),
            )
            self._bar = Progress(*columns, console=self._console, refresh_per_second=4)
            self._task = self._bar.add_task(self._title, total=None, state="")
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def begin(self) -> None:
        """The first request is about to be sent: what went before is in no rate and no time left."""
        self._began = time.monotonic()

    def say(self, text: str) -> None:
        """One sentence, at once."""
        self.journal.write(text)
        self._print(text)

    def trace(self, text: str) -> None:
        """What `++log_level=debug` adds; it may hold what a model said, so it is in no file."""
        self._print(text)

    def _print(self, text: str) -> None:
        self._console.print(printable(masked(text)), markup=False, highlight=False, soft_wrap=True)

    def show(self, snapshot: Snapshot, *, last: bool = False) -> None:
        """Called often; prints as often as is useful."""
        if not snapshot.rows:
            return
        now = time.monotonic()
        text = describe(snapshot, now - self._began)
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, total=snapshot.rows, completed=snapshot.done, state=text)
        if (last or now - self._shown >= PLAIN_EVERY) and text != self._last_line:
            self._shown, self._last_line = now, text
            line = f"{self._title}: {text}"
            self.journal.write(line)
            if self._bar is None and not self._quiet:
                self._print(line)


def describe(snapshot: Snapshot, seconds: float) -> str:
    """`120/5,000 rows · 35.0 rows/s · 2 min left · 12,345 tokens · 512 at once`, and what went wrong."""
    rate = snapshot.fresh / seconds if seconds > 0 else 0.0
    parts = [f"{snapshot.done:,}/{snapshot.rows:,} rows", f"{rate:,.1f} rows/s"]
    left, slow = snapshot.rows - snapshot.done, snapshot.slow
    if rate > 0 and left > (0 if slow is None else slow.count):
        parts.append(f"{duration(left / rate)} left")
    if slow is not None:
        waits = "1 row waits" if slow.count == 1 else f"{slow.count:,} rows wait, the oldest"
        parts.append(f"{waits} {duration(slow.waited)}; gives up in {duration(slow.left)}")
    if snapshot.tokens is not None:
        parts.append(f"{snapshot.tokens:,} tokens")
    if snapshot.cost is not None:
        parts.append(f"cost {snapshot.cost:,.2f}")
    if snapshot.concurrency:
        parts.append(f"{snapshot.concurrency} at once")
    if snapshot.retries:
        parts.append(f"{snapshot.retries:,} retries")
    if snapshot.unscored:
        parts.append(f"{snapshot.unscored:,} unscored")
    return " · ".join(parts)


def duration(seconds: float) -> str:
    """`45 s`, `12 min`, `3 h 20 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
