# SPDX-License-Identifier: Apache-2.0
"""Killable worker processes for a pure function of a record.

What runs inside may hang, eat memory or crash: only that item is lost, it is tried once more alone, and then comes
back as a `Failure` with the cause `timeout` or `grader`. Time is CPU time from the moment when the worker begins the
item, so that verdicts do not depend on load; a wall clock stands behind it.

    parent ── control socket ── template (imports once) ── forks ── workers
       └────────── a socket and a page of progress for each worker ────┘

Workers die with the template, the template when the parent's end of the control socket closes, which the kernel does
even for SIGKILL.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from itertools import islice
from types import TracebackType
from typing import Any, Generic, TypeVar

import msgspec

from newskills.base.errors import ConfigError
from newskills.base.pool.loop import Loop, PoolOptions, WorkItem
from newskills.base.pool.process import TemplateSetup
from newskills.base.records import Failure, Row
from newskills.base.store import encode_line

T = TypeVar("T")


class WorkerPool(Generic[T]):
    """Runs `factory(config)(record)` in worker processes; `factory` is addressed as `module:attr`.

    The factory's module may have `preload(config)`, which the template calls once when it has nothing to do. Results
    are read as `result_type`. All methods are thread-safe. Errors of the function are data (`Failure`); the methods
    raise ConfigError for a closed pool only.
    """

    def __init__(
        self,
        factory: str,
        config: Row,
        *,
        result_type: type[T],
        options: PoolOptions = PoolOptions(),  # noqa: B008
    ) -> None:
        processes = options.processes or len(os.sched_getaffinity(0))
        wall = options.wall_seconds or max(30.0, 10 * options.cpu_seconds)
        self._window = 4 * processes * options.max_batch
        self._setup = TemplateSetup(
            factory=factory, config=config, cpu_seconds=options.cpu_seconds, memory=options.memory
        )
        self._loop = Loop(
            msgspec.structs.replace(options, processes=processes, wall_seconds=wall),
            start_template=self._start_template,
            decode=msgspec.json.Decoder(result_type).decode,
        )
        self._thread = threading.Thread(target=self._loop.run, name="newskills-pool", daemon=True)
        self._thread.start()

    def submit(self, record: Row) -> Future[T | Failure]:
        """Submit one record; the future never raises, it holds a result or a Failure (or is cancelled by
        `close`)."""
        return self.submit_many((record,))[0]

    def submit_many(self, records: Sequence[Row]) -> list[Future[T | Failure]]:
        """Submit many records at once, for one wake-up of the pool. Raises ConfigError after `close`."""
        items = [WorkItem(encode_line(record)[:-1], Future()) for record in records]
        if not self._loop.add(items):
            raise ConfigError("The worker pool is closed.")
        return [item.future for item in items]

    def map(self, records: Iterable[Row], *, window: int = 0) -> Iterator[T | Failure]:
        """Yield results in the order of `records`, of which at most `window` are held at a time."""
        size = window or self._window
        source = iter(records)
        waiting: deque[Future[T | Failure]] = deque(self.submit_many(list(islice(source, size))))
        step = max(1, size // 4)
        exhausted = False
        while waiting:
            if not exhausted and len(waiting) <= size - step:
                more = list(islice(source, step))
                exhausted = len(more) < step
                waiting.extend(self.submit_many(more))
            yield waiting.popleft().result()

    def close(self) -> None:
        """Kill the workers and cancel what is not done. May be called twice."""
        self._loop.stop()
        self._thread.join()

    def __enter__(self) -> WorkerPool[T]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _start_template(self, control_fd: int) -> subprocess.Popen[Any]:
        """Start a fresh interpreter with this one's import path, in a session of its own (no Ctrl-C of the
        terminal)."""
        code = (
            "import sys, json; sys.path[:] = json.loads(sys.argv[3]); "
            "from newskills.base.pool.process import main; main(int(sys.argv[1]), sys.argv[2].encode())"
        )
        arguments = [
            str(control_fd),
            encode_line(self._setup)[:-1].decode(),
            msgspec.json.encode([p for p in sys.path if isinstance(p, str)]).decode(),
        ]
        return subprocess.Popen(
            [sys.executable, "-P", "-c", code, *arguments],
            pass_fds=(control_fd,),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
