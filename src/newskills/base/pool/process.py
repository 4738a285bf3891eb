# SPDX-License-Identifier: Apache-2.0
"""The other side of `pool`: a template process that imports once and forks workers on demand, and the workers.

Started by `WorkerPool`, never by hand. Nothing here imports the parent's `__main__`. Messages are JSON; on the control
socket one per packet, on a worker's socket with a length of 4 bytes in front.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import logging
import mmap
import os
import resource
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from newskills.base.errors import NewskillsError, boundary, guard
from newskills.base.records import Failure, Row
from newskills.base.store import encode_line

LENGTH_HEAD = struct.Struct("<I")
PROGRESS = struct.Struct("<qd")
PACKET_BYTES = 1 << 16
_FLUSH_BYTES = 1 << 15
_FLUSH_SECONDS = 0.005
_PR_SET_PDEATHSIG = 1

Work = Callable[[Row], Any]


class TemplateSetup(Struct, kw_only=True):
    """What the template is told at its start. Seconds of CPU per item, bytes of address space per worker."""

    factory: str
    config: Row
    cpu_seconds: float
    memory: int


class TemplateOrder(Struct, omit_defaults=True):
    """Parent → template: `fork` (with two descriptors attached) or `reap` a process that ended."""

    fork: int = -1
    reap: int = -1


class TemplateNotice(Struct, omit_defaults=True):
    """Template → parent: worker `forked` runs as `pid`; or `reaped` with the wait `status`; or `broken`; or worker
    `refused` could not be forked, for which `broken` says why."""

    forked: int = -1
    refused: int = -1
    pid: int = -1
    reaped: int = -1
    status: int = 0
    broken: str = ""


def main(control_fd: int, setup_json: bytes) -> None:
    """Run the template: answer orders until the parent's end of the control socket closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.disable(logging.CRITICAL)
    setup = msgspec.json.decode(setup_json, type=TemplateSetup)
    control = socket.socket(fileno=control_fd)
    loaded = guard(lambda: _load_factory(setup.factory))
    if isinstance(loaded, Failure):
        control.send(msgspec.json.encode(TemplateNotice(broken=loaded.message)))
        while control.recv(
            PACKET_BYTES
        ):  # leaving with orders unread would reset the socket, and the notice could be lost
            pass
        return
    make, preload = loaded
    gc.freeze()
    orders = msgspec.json.Decoder(TemplateOrder)
    while True:
        if preload is not None and not select.select([control], [], [], 0.02)[0]:
            warm, preload = preload, None
            guard(lambda warm=warm: warm(setup.config))  # type: ignore[misc]
            gc.freeze()
        message, fds, _, _ = socket.recv_fds(control, PACKET_BYTES, 2)
        if not message:
            return
        order = orders.decode(message)
        if order.reap > 0:
            _, status = os.waitpid(order.reap, 0)
            control.send(msgspec.json.encode(TemplateNotice(reaped=order.reap, status=status)))
        else:
            _fork_worker(control, order.fork, fds, setup, make)


def _load_factory(spec: str) -> tuple[Callable[[Row], Work], Callable[[Row], None] | None]:
    """Load `module:factory`, and the module's `preload(config)` if it has one."""
    name, _, attr = spec.partition(":")
    module = importlib.import_module(name)
    return getattr(module, attr), getattr(module, "preload", None)


def _fork_worker(
    control: socket.socket, ticket: int, fds: list[int], setup: TemplateSetup, make: Callable[[Row], Work]
) -> None:
    template = os.getpid()
    try:
        pid = os.fork()
    except OSError as error:
        for fd in fds:
            os.close(fd)
        control.send(msgspec.json.encode(TemplateNotice(refused=ticket, broken=str(error))))
        return
    if pid == 0:
        control.close()
        code = 1
        try:
            _die_with(template)
            _run_worker(socket.socket(fileno=fds[0]), mmap.mmap(fds[1], PROGRESS.size), setup, make)
            code = 0
        finally:
            os._exit(code)
    for fd in fds:
        os.close(fd)
    control.send(msgspec.json.encode(TemplateNotice(forked=ticket, pid=pid)))


def _die_with(template: int) -> None:
    """Ask the kernel to kill this process when the template ends, however it ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != template:
        os._exit(1)


def _run_worker(
    sock: socket.socket, progress: mmap.mmap, setup: TemplateSetup, make: Callable[[Row], Work]
) -> None:
    """Run a worker: read batches of records, and write one answer per record."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if hard == resource.RLIM_INFINITY:
        memory = setup.memory
    else:
        memory = min(setup.memory, hard)
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    work = guard(lambda: make(setup.config))
    _note_idle(progress)
    decode = msgspec.json.Decoder(list[Row]).decode
    stream = sock.makefile("rb", buffering=1 << 18)
    while head := stream.read(LENGTH_HEAD.size):
        batch = decode(stream.read(LENGTH_HEAD.unpack(head)[0]))
        if not _answer_batch(sock, progress, setup.cpu_seconds, work, batch):
            return


def _answer_batch(
    sock: socket.socket, progress: mmap.mmap, cpu_seconds: float, work: Work | Failure, batch: list[Row]
) -> bool:
    """Answer every item; return False where memory ran out, so that a fresh worker should take over.

    Before an item the progress page says which it is and when it began, and the CPU clock is set: when that runs
    out the kernel ends this process (the signal's default action), even inside C code.
    """
    answers: list[bytes] = []
    size, flushed = 0, time.monotonic()
    healthy = True
    for index, record in enumerate(batch):
        PROGRESS.pack_into(progress, 0, index, time.monotonic())
        signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
        result = work if isinstance(work, Failure) else _answer_record(work, record)
        signal.setitimer(signal.ITIMER_PROF, 0)
        failed = isinstance(result, Failure)
        healthy = healthy and not (isinstance(result, Failure) and result.kind == "MemoryError")
        failed_json = b"true" if failed else b"false"
        answers.append(b'{"at":%d,"failed":%s,"result":%s}' % (index, failed_json, _encode_result(result)))
        size += len(answers[-1])
        now = time.monotonic()
        if size > _FLUSH_BYTES or now - flushed > _FLUSH_SECONDS:
            _send_answers(sock, answers)
            answers, size, flushed = [], 0, now
    _note_idle(progress)
    _send_answers(sock, answers)
    return healthy


def _note_idle(progress: mmap.mmap) -> None:
    """Say that no item is at work; without a time, this worker has never been ready."""
    PROGRESS.pack_into(progress, 0, -1, time.monotonic())


def _answer_record(work: Work, record: Row) -> Any:
    try:
        return work(record)
    except NewskillsError as error:
        return boundary(error)
    except Exception as error:  # noqa: BLE001 - a worker is a boundary: what its function raises is data
        return Failure(
            kind=type(error).__name__, cause="grader", message=f"{type(error).__name__}: {error}"[:2000]
        )


def _encode_result(result: Any) -> bytes:
    encoded = guard(lambda: encode_line(result))
    if isinstance(encoded, Failure):
        return encode_line(Failure(kind="NotJson", cause="grader", message=encoded.message[:2000]))[:-1]
    return encoded[:-1]


def _send_answers(sock: socket.socket, answers: list[bytes]) -> None:
    if answers:
        body = b"[" + b",".join(answers) + b"]"
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            sock.sendall(LENGTH_HEAD.pack(len(body)) + body)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2].encode())
