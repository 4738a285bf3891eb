# SPDX-License-Identifier: Apache-2.0
"""The thread of a `WorkerPool`: hands out batches, collects answers, kills, renews, retries."""

from __future__ import annotations

import contextlib
import mmap
import os
import selectors
import signal
import socket
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import msgspec
from msgspec import Raw, Struct

from newskills.base.limits import describe_limits
from newskills.base.pool.process import LENGTH_HEAD, PACKET_BYTES, PROGRESS, TemplateNotice, TemplateOrder
from newskills.base.records import Cause, Failure

_TICK = 0.2
_MAX_BATCH_BYTES = 1 << 20
_STARTS = 3
"""Processes that end before they have begun anything, after which no further one is tried."""
WORKER_START = "WorkerStart"
"""Kind of the failure of all items where no worker can be started: it lies in the machine."""


class PoolOptions(Struct, frozen=True, kw_only=True):
    """Limits of a pool.

    processes      workers; 0 = as many as CPUs this process may use
    cpu_seconds    CPU time for one item
    wall_seconds   wall time for one item, the backstop; 0 = ten times cpu_seconds, at least 30
    memory         bytes of address space for one worker
    max_tasks      items after which a worker is renewed
    max_batch      items handed to a worker at once
    """

    processes: int = 0
    cpu_seconds: float = 10.0
    wall_seconds: float = 0.0
    memory: int = 4 << 30
    max_tasks: int = 20_000
    max_batch: int = 64


class WorkItem:
    """One record on its way: encoded, with the future that waits for it."""

    __slots__ = ("future", "payload", "suspect")

    def __init__(self, payload: bytes, future: Future[Any]) -> None:
        self.payload = payload
        self.future = future
        self.suspect = False


class WorkerAnswer(Struct):
    at: int
    failed: bool
    result: Raw


class _Worker:
    """A worker process as seen from here. `batch` is what it has; None stands for what it has answered."""

    def __init__(self, ticket: int) -> None:
        self.ticket = ticket
        self.pid = -1
        self.sock, self.theirs = socket.socketpair()
        self.memory_fd = os.memfd_create("newskills-progress", os.MFD_CLOEXEC)
        os.ftruncate(self.memory_fd, PROGRESS.size)
        self.page = mmap.mmap(self.memory_fd, PROGRESS.size)
        PROGRESS.pack_into(self.page, 0, -1, 0.0)
        self.sock.setblocking(False)
        self.batch: list[WorkItem | None] = []
        self.left = 0
        self.tasks = 0
        self.outgoing = memoryview(b"")
        self.incoming = bytearray()
        self.overtime = False
        self.ended = False

    def progress(self) -> tuple[int, float]:
        """Return (index of the item at work or -1, when that began on the monotonic clock: 0 before it is ready)."""
        index, began = PROGRESS.unpack_from(self.page, 0)
        return index, began

    def close(self) -> None:
        self.sock.close()
        self.page.close()


class Loop:
    """See the module. Only `add` and `stop` are called from other threads."""

    def __init__(
        self,
        options: PoolOptions,
        *,
        start_template: Callable[[int], subprocess.Popen[Any]],
        decode: Callable[[Raw], Any],
    ) -> None:
        self._options = options
        self._start_template = start_template
        self._decode = decode
        self._lock = threading.Lock()
        self._new: deque[WorkItem] = deque()
        self._stopping = False
        self._queue: deque[WorkItem] = deque()
        self._suspects: deque[WorkItem] = deque()
        self._workers: dict[int, _Worker] = {}
        self._tickets = 0
        self._template: subprocess.Popen[Any] | None = None
        self._control: socket.socket | None = None
        self._failed_starts = 0
        self._processes = options.processes
        self._broken: Failure | None = None
        self._wake_read, self._wake_write = socket.socketpair()
        self._wake_read.setblocking(False)
        self._wake_write.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._wake_read, selectors.EVENT_READ, None)
        self._answers = msgspec.json.Decoder(list[WorkerAnswer])
        self._failures = msgspec.json.Decoder(Failure)
        self._notices = msgspec.json.Decoder(TemplateNotice)

    # --- from other threads

    def add(self, items: list[WorkItem]) -> bool:
        """Add items to the queue; return False if the pool is closed."""
        with self._lock:
            if self._stopping:
                return False
            asleep = not self._new
            self._new.extend(items)
            if asleep:
                self._wake()
        return True

    def stop(self) -> None:
        with self._lock:
            if self._stopping:
                return
            self._stopping = True
            self._wake()

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError, OSError):
            self._wake_write.send(b"!")

    # --- the thread

    def run(self) -> None:
        try:
            while self._take_new():
                self._dispatch()
                busy = self._queue or self._suspects or any(w.left for w in self._workers.values())
                timeout = _TICK if busy else None
                for key, mask in self._selector.select(timeout):
                    self._handle(key.data, mask)
                self._watch()
        finally:
            self._tear_down()

    def _take_new(self) -> bool:
        """Move new items into the queue; return False if the pool is to stop, which is looked at after the bell is
        silenced, so that no ring is missed."""
        with contextlib.suppress(BlockingIOError):
            self._wake_read.recv(4096)
        with self._lock:
            self._queue.extend(self._new)
            self._new.clear()
            return not self._stopping

    def _handle(self, owner: object, mask: int) -> None:
        if isinstance(owner, _Worker):
            if owner.ticket not in self._workers:  # went with the template, in this same round of events
                return
            if mask & selectors.EVENT_WRITE:
                self._write(owner)
            if mask & selectors.EVENT_READ and not owner.ended:
                self._read(owner)
        elif owner == "control":
            self._hear()

    # --- giving out

    def _dispatch(self) -> None:
        if self._broken is not None:
            self._fail_all(self._broken)
            return
        waiting = len(self._queue) + len(self._suspects)
        if not waiting:
            return
        living = [w for w in self._workers.values() if not w.ended]
        idle = [w for w in living if not w.left]
        while len(idle) < waiting and len(living) < self._processes:
            worker = self._hire()
            if worker is None:
                return
            living.append(worker)
            idle.append(worker)
        for worker in idle:
            if batch := self._next_batch(len(living)):
                self._give(worker, batch)

    def _next_batch(self, workers: int) -> list[WorkItem]:
        """Return a suspect alone, else a fair share of the queue."""
        if self._suspects:
            return [self._suspects.popleft()]
        share = min(self._options.max_batch, -(-len(self._queue) // workers))
        batch: list[WorkItem] = []
        size = 0
        while self._queue and len(batch) < share and size < _MAX_BATCH_BYTES:
            item = self._queue.popleft()
            if item.future.cancelled():
                continue
            batch.append(item)
            size += len(item.payload)
        return batch

    def _give(self, worker: _Worker, batch: list[WorkItem]) -> None:
        worker.batch = list(batch)
        worker.left = len(batch)
        worker.tasks += len(batch)
        body = b"[" + b",".join(item.payload for item in batch) + b"]"
        worker.outgoing = memoryview(LENGTH_HEAD.pack(len(body)) + body)
        self._write(worker)

    def _write(self, worker: _Worker) -> None:
        with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
            while worker.outgoing:
                worker.outgoing = worker.outgoing[worker.sock.send(worker.outgoing) :]
        writing = selectors.EVENT_WRITE if worker.outgoing else 0
        interest = selectors.EVENT_READ | writing
        self._selector.modify(worker.sock, interest, worker)

    # --- taking in

    def _read(self, worker: _Worker) -> None:
        try:
            data = worker.sock.recv(1 << 18)
        except BlockingIOError:
            return
        except ConnectionResetError:
            data = b""
        if not data:
            self._part(worker)
            return
        buffer = worker.incoming
        buffer += data
        while len(buffer) >= LENGTH_HEAD.size:
            length = LENGTH_HEAD.unpack_from(buffer)[0]
            if len(buffer) < LENGTH_HEAD.size + length:
                break
            for answer in self._answers.decode(bytes(buffer[LENGTH_HEAD.size : LENGTH_HEAD.size + length])):
                self._settle(worker, answer)
            del buffer[: LENGTH_HEAD.size + length]
        if not worker.left and worker.tasks >= self._options.max_tasks:
            self._dismiss(worker)

    def _settle(self, worker: _Worker, answer: WorkerAnswer) -> None:
        self._failed_starts = 0
        item = worker.batch[answer.at]
        if item is None:
            return
        worker.batch[answer.at] = None
        worker.left -= 1
        if answer.failed:
            _set_result(item, self._failures.decode(answer.result))
            return
        try:
            result = self._decode(answer.result)
        except msgspec.DecodeError as error:
            result = Failure(kind="NotAResult", cause="grader", message=str(error))
        _set_result(item, result)

    # --- the end of a worker

    def _dismiss(self, worker: _Worker) -> None:
        """End a worker that has done its share: its socket closes, it leaves."""
        worker.sock.shutdown(socket.SHUT_WR)
        self._part(worker)

    def _part(self, worker: _Worker) -> None:
        """Mark a worker whose socket is closed as ended (it has ended or is about to), and ask for its status, which
        tells how."""
        worker.ended = True
        self._selector.unregister(worker.sock)
        if worker.pid > 0:
            self._order(TemplateOrder(reap=worker.pid))

    def _bury(self, worker: _Worker, status: int) -> None:
        """Blame the item at work; all others of the batch go back to the front of the queue."""
        index, began = worker.progress()
        left = [(i, item) for i, item in enumerate(worker.batch) if item is not None]
        del self._workers[worker.ticket]
        worker.close()
        if not left:
            return
        if not began:
            self._queue.extendleft(item for _, item in reversed(left))
            self._note_failed_start("a worker ended before it was ready")
            return
        self._failed_starts = 0
        culprit = next((item for i, item in left if i == index), left[0][1])
        self._queue.extendleft(item for _, item in reversed(left) if item is not culprit)
        if culprit.suspect:
            _set_result(culprit, self._verdict(worker, status))
        else:
            culprit.suspect = True
            self._suspects.append(culprit)

    def _verdict(self, worker: _Worker, status: int) -> Failure:
        end = -os.waitstatus_to_exitcode(status)
        cause: Cause = "grader"
        if worker.overtime or end == signal.SIGPROF:
            cause = "timeout"
            limit = f"{self._options.cpu_seconds:g} CPU"
            if worker.overtime:
                limit = f"{self._options.wall_seconds:g}"
            what = f"no answer within {limit} seconds, twice"
        elif end > 0:
            what = f"the worker was ended by {signal.Signals(end).name}, twice"
        else:
            what = f"the worker exited with {-end}, twice"
        kind = "WorkerTimeout" if cause == "timeout" else "WorkerDied"
        return Failure(kind=kind, cause=cause, message=what)

    def _watch(self) -> None:
        """Kill each worker whose item takes longer than it may, by the wall clock."""
        now = time.monotonic()
        for worker in self._workers.values():
            if not worker.left or worker.ended or worker.overtime or worker.pid < 0:
                continue
            index, began = worker.progress()
            if index >= 0 and now - began > self._options.wall_seconds:
                worker.overtime = True
                # The template does not reap before it is told, so that this number is still the worker's.
                os.kill(worker.pid, signal.SIGKILL)

    # --- the template

    def _hire(self) -> _Worker | None:
        try:
            if self._control is None:
                self._open_template()
            worker = _Worker(self._tickets)
        except OSError as error:  # no process, no file, no memory left
            time.sleep(_TICK)
            self._note_failed_start(str(error))
            return None
        self._tickets += 1
        assert self._control is not None
        message = msgspec.json.encode(TemplateOrder(fork=worker.ticket))
        try:
            socket.send_fds(self._control, [message], [worker.theirs.fileno(), worker.memory_fd])
        except OSError:
            worker.close()
            self._template_died()
            return None
        finally:
            worker.theirs.close()
            os.close(worker.memory_fd)
        self._workers[worker.ticket] = worker
        self._selector.register(worker.sock, selectors.EVENT_READ, worker)
        return worker

    def _open_template(self) -> None:
        control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs:
                self._template = self._start_template(theirs.fileno())
        except OSError:
            control.close()
            raise
        self._control = control
        self._selector.register(self._control, selectors.EVENT_READ, "control")

    def _order(self, order: TemplateOrder) -> None:
        if self._control is not None:
            with contextlib.suppress(OSError):
                self._control.send(msgspec.json.encode(order))

    def _hear(self) -> None:
        assert self._control is not None
        try:
            message = self._control.recv(PACKET_BYTES)
        except ConnectionResetError:
            message = b""
        if not message:
            self._template_died()
            return
        notice = self._notices.decode(message)
        if notice.refused >= 0:
            self._drop_refused(self._workers.pop(notice.refused), notice.broken)
        elif notice.broken:
            self._break(notice.broken)
            self._template_died()
        elif notice.forked >= 0:
            worker = self._workers[notice.forked]
            worker.pid = notice.pid
            if worker.ended:
                self._order(TemplateOrder(reap=worker.pid))
        else:
            self._bury(next(w for w in self._workers.values() if w.pid == notice.reaped), notice.status)

    def _template_died(self) -> None:
        """Handle the template's death, with which its workers die: every item goes back; after several deaths
        without a worker, all fails."""
        self._close_template()
        for worker in list(self._workers.values()):
            if not worker.ended:
                self._selector.unregister(worker.sock)
            self._queue.extendleft(item for item in reversed(worker.batch) if item is not None)
            worker.close()
        self._workers.clear()
        self._note_failed_start("the process that forks them ended")

    def _drop_refused(self, worker: _Worker, why: str) -> None:
        """Do without a worker that the system refused; with none at all, try again a few times."""
        if not worker.ended:
            self._selector.unregister(worker.sock)
        self._queue.extendleft(item for item in reversed(worker.batch) if item is not None)
        worker.close()
        self._processes = max(1, len(self._workers))
        if not self._workers:
            time.sleep(_TICK)
            self._note_failed_start(why)

    def _note_failed_start(self, why: str) -> None:
        self._failed_starts += 1
        if self._failed_starts >= _STARTS and self._broken is None:
            self._break(why)

    def _break(self, why: str) -> None:
        limits = describe_limits()
        within = f" Limits of this process: {limits}." if limits else ""
        message = f"Worker processes cannot start: {why}.{within}"
        self._broken = Failure(kind=WORKER_START, cause="grader", message=message)

    def _close_template(self) -> None:
        if self._control is not None:
            self._selector.unregister(self._control)
            self._control.close()
            self._control = None
        if self._template is not None:
            self._template.kill()
            self._template.wait()
            self._template = None

    def _fail_all(self, failure: Failure) -> None:
        for items in (self._queue, self._suspects):
            while items:
                _set_result(items.popleft(), failure)

    def _tear_down(self) -> None:
        self._stopping = True
        self._close_template()
        with self._lock:
            left = [*self._new, *self._queue, *self._suspects]
        for worker in self._workers.values():
            left.extend(item for item in worker.batch if item is not None)
            worker.close()
        for item in left:
            item.future.cancel()
        self._selector.close()
        self._wake_read.close()
        self._wake_write.close()


def _set_result(item: WorkItem, result: object) -> None:
    """Set the result unless the caller has given up on it."""
    if item.future.set_running_or_notify_cancel():
        item.future.set_result(result)
