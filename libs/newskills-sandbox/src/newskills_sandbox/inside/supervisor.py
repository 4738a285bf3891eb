# SPDX-License-Identifier: Apache-2.0
"""One session's trusted half: process 1 of its name spaces, or the reaper of its processes.

It runs one request at a time, reads outputs up to their limit, keeps deadlines, measures memory, and after each
request leaves nothing running: the worker is stopped until the next cell, everything else is killed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import socket
import time

from newskills_sandbox.inside import linux, processes, root, wire, worker
from newskills_sandbox.inside.budget import Budget
from newskills_sandbox.inside.child import NEVER, Process, Watch
from newskills_sandbox.inside.programs import Folder, sealed_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

GRACE = 1.0
"""Seconds that a cell has to end by KeyboardInterrupt before it is killed and the state lost."""
LOOK_EVERY = 0.05
LOOK_WHILE_STOPPED = 1.0
LOOK_SHARE = 2
"""After a look at many processes, so many times what it has cost passes until the next."""
HANG_UP_PATIENCE = 0.5


def main(settings: dict[str, Any], message: dict[str, Any], descriptors: list[int]) -> NoReturn:
    """Run as the supervisor of one session. `descriptors`: the host's socket, then control groups for its workers.

    The supervisor itself stays outside of them, so that the kernel never ends it for what a worker uses.
    """
    code = 70
    try:
        host = socket.socket(fileno=descriptors[0])
        meminfo = os.open("/proc/meminfo", os.O_RDONLY | os.O_CLOEXEC)
        linux.close_descriptors({0, 1, 2, meminfo, *descriptors})
        host.setblocking(True)
        host.set_inheritable(False)
        settings = settings | {
            "folder": message.get("folder", ""),
            "uid": message.get("uid", 0),
            "groups": descriptors[1:],
        }
        try:
            _enter_place(settings)
        except OSError as error:
            host.sendall(wire.pack({"failed": f"{error}"}))
            raise
        Supervisor(settings, host, meminfo, eager=message["eager"]).serve()
        code = 0
    finally:
        os._exit(code)


def _enter_place(settings: dict[str, Any]) -> None:
    """Move into the session's own tree or folder, hide from the session, and give up rights."""
    limits = settings["limits"]
    os.setsid()  # where the kernel shares processors out by session, no crowd of workers keeps this one waiting
    if settings["isolation_level"] == "a":
        linux.mount("none", "/", flags=linux.MS_REC | linux.MS_PRIVATE)
        options = f"size={limits['disk']},nr_inodes={limits['files']},mode=755"
        linux.mount("tmpfs", "/.private", "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, options)
        for name, place in root.PRIVATE.items():
            os.mkdir(f"/.private/{name}")
            mode = 0o700 if place == root.HOME else 0o1777
            os.chmod(f"/.private/{name}", mode)
            linux.mount(f"/.private/{name}", place, flags=linux.MS_BIND)
        root.private_zeros("/.private")
        linux.umount("/.private", linux.MNT_DETACH)
        root.uncover(settings["covered"])
        if not settings["network"]:
            linux.loopback_up()
            linux.small_tcp_buffers()  # by /proc/sys, which the session's own /proc lacks
        _own_proc()
        linux.set_hostname("sandbox")
        linux.drop_capabilities()
        os.chdir(root.HOME)
    else:
        linux.subreaper()
        linux.die_with_parent()
        os.chdir(settings["folder"])
        os.environ["HOME"] = os.environ["TMPDIR"] = settings["folder"]
    if settings["isolation_level"] != "none":
        linux.no_new_privileges()
    linux.set_dumpable(False)


def _own_proc() -> None:
    flags = linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC
    try:
        linux.mount("proc", "/proc", "proc", flags, "subset=pid")
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        linux.mount("proc", "/proc", "proc", flags)  # Linux before 5.8


class Supervisor:
    """Serves one session's host socket. Its own processes are all that it can see or signal."""

    def __init__(self, settings: dict[str, Any], host: socket.socket, meminfo: int, *, eager: bool) -> None:
        self._settings, self._host = settings, host
        self._budget = Budget(settings, meminfo)
        self._wake, wake = socket.socketpair()
        self._wake.setblocking(False)
        wake.setblocking(False)
        self._wake_end = wake
        for number in range(1, signal.NSIG):
            if number not in (signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, 32, 33):
                signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        linux.only_ends_of_children()
        signal.signal(signal.SIGALRM, self._give_up_waiting)
        self._waiting = False
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        self._worker: Process | None = None
        self._fresh = True
        self._cells = 0
        self._process: Process | None = None
        self._namespaced = settings["isolation_level"] == "a"
        if eager:
            self._start_worker()

    def serve(self) -> None:
        """Serve until the host closes the socket; then everything of the session is ended."""
        self._host.sendall(wire.pack({"ready": True}))
        while (message := wire.receive(self._host)) is not None:
            if message["do"] == "cell":
                result = self._run_cell(message)
            elif message["do"] == "script":
                result = self._run_script(message)
            elif message["do"] == "program":
                result = self._run_program(message)
            else:
                continue  # to stop, go on or end what has ended meanwhile
            self._host.sendall(wire.pack(result))
        self._end_everything()

    def _run_cell(self, message: dict[str, Any]) -> dict[str, Any]:
        if self._worker is not None and not self._is_usable(self._worker):
            self._drop_worker()
        if self._worker is None:
            self._start_worker()
        process = self._worker
        assert process is not None
        fresh, self._fresh = self._fresh, False
        nonce = os.urandom(16)
        self._cells += 1
        code, stdin = message["code"].encode(), message["stdin"].encode()
        style = worker.STYLES.index(message["style"])
        head = worker.REQUEST.pack(nonce, style, self._cells, len(stdin), len(code))
        watch = self._await_answer(process, message, nonce, head + stdin + code)
        if process.status is None:
            processes.send(process.pid, signal.SIGSTOP)  # it stops while its outputs are read
            if watch.answered and watch.looked_at:  # a last time, or the next cell would answer for what it kept
                watch.excess = self._budget.exceeded(self._list_processes())
        result = self._make_result(watch, fresh=fresh)
        if not watch.answered or watch.corrupt or watch.excess or not self._freeze_worker(process):
            self._drop_worker()
            self._fresh = True
            self._start_worker()
        return result

    def _is_usable(self, process: Process) -> bool:
        """Return whether a process is alive, and silent since its last cell."""
        processes.reap(self._note_end)
        if process.status is not None or process.control is None:
            return False
        try:
            process.control.recv(1)
        except BlockingIOError:
            return True
        return False

    def _run_script(self, message: dict[str, Any]) -> dict[str, Any]:
        stdin = sealed_file(message["stdin"])

        def start(out: int, err: int, _: socket.socket | None) -> None:
            worker.script(self._settings, message["code"], stdin, out, err)

        return self._run_once(start, stdin, message)

    def _run_program(self, message: dict[str, Any]) -> dict[str, Any]:
        """Run the steps one after the other, all under one deadline; the first that fails is the last."""
        try:
            folder = Folder(message["files"])
        except OSError as error:
            return _not_begun(f"{error.filename or 'the program'}: {error.strerror}\n")
        deadline = time.monotonic() + message["timeout"]
        result: dict[str, Any] = {}
        settings = self._settings
        if message["unlimited_addresses"]:
            settings = settings | {"limits": settings["limits"] | {"address_space": False}}
        settings = settings | {"environment": {**os.environ, **message["environment"]}}
        for step, argv in enumerate(message["steps"]):
            last = step == len(message["steps"]) - 1
            text = message["stdin"] if last else ""
            stdin = sealed_file(text)

            words = folder.argv(argv)
            failure, failure_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

            def start(
                out: int, err: int, _: object, words: list[str] = words, stdin: int = stdin, end: int = failure_end
            ) -> None:
                worker.program(settings, words, stdin, out, err, end)

            result = self._run_once(start, stdin, message | {"timeout": deadline - time.monotonic()})
            os.close(failure_end)
            result["failed"] = _read_all(failure)
            if result["failed"] or result["status"] != "exited" or result["exit"] != 0:
                break
        folder.remove()
        return result

    def _run_once(
        self, start: Callable[[int, int, socket.socket | None], None], stdin: int, message: dict[str, Any]
    ) -> dict[str, Any]:
        process = Process(start, talks=False)
        os.close(stdin)
        watch = self._await_answer(process, message, b"", b"")
        result = self._make_result(watch, fresh=False)
        if self._worker is not None and not processes.undisturbed(self._worker.pid):
            self._drop_worker()
        self._process = None
        process.close()
        return result

    def _start_worker(self) -> None:
        def start(out: int, err: int, control: socket.socket | None) -> None:
            assert control is not None
            worker.cells(self._settings, control, out, err)

        self._worker = Process(start, talks=True)

    def _drop_worker(self) -> None:
        self._end_everything()
        if self._worker is not None:
            self._worker.close()
        self._worker = None
        self._fresh = True

    def _await_answer(self, process: Process, message: dict[str, Any], nonce: bytes, request: bytes) -> Watch:
        """Wait until the request is answered, its process ended, or its deadline has passed; then nothing else runs."""
        self._process = process
        for capture in (process.out, process.err):
            capture.start(message["characters"], discard=bool(nonce))
        watch = Watch(process, message, nonce, request)
        poll = select.poll()
        readers: dict[int, Callable[[], object]] = {
            process.out.descriptor: process.out.read,
            process.err.descriptor: process.err.read,
            self._wake.fileno(): self._reap_children,
            self._host.fileno(): lambda: self._hear_host(watch),
        }
        for descriptor in readers:
            poll.register(descriptor, select.POLLIN)
        self._close_ended(process, poll)
        if process.control is not None:
            readers[process.control.fileno()] = lambda: self._exchange_bytes(watch, poll)
            with contextlib.suppress(OSError):  # the worker is gone, as will be seen below
                watch.send(process.control)
            writable = select.POLLOUT if watch.unsent else 0
            poll.register(process.control, select.POLLIN | writable)
            processes.send(process.pid, signal.SIGCONT)  # after the request, so that it wakes only once
        while not watch.over:
            self._keep_limits(watch)
            wait = min(watch.deadline, watch.next_look) - time.monotonic()
            for descriptor, _ in poll.poll(max(0.0, wait * 1000)):
                readers[descriptor]()
                if descriptor in (process.out.descriptor, process.err.descriptor):
                    self._close_ended(process, poll)
        return watch

    def _close_ended(self, process: Process, poll: select.poll) -> None:
        for capture in (process.out, process.err):
            if not capture.open:
                with contextlib.suppress(KeyError):
                    poll.unregister(capture.descriptor)

    def _exchange_bytes(self, watch: Watch, poll: select.poll) -> None:
        control = watch.process.control
        assert control is not None
        try:
            if watch.unsent:
                watch.send(control)
                if not watch.unsent:
                    poll.modify(control, select.POLLIN)
                return
            piece = control.recv(worker.REPLY.size + 1)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        if not piece:  # it is ending, or has thrown the socket away
            poll.unregister(control)
            watch.deadline, watch.interrupted = min(watch.deadline, time.monotonic() + HANG_UP_PATIENCE), True
            watch.hung_up = True
            return
        watch.reply += piece
        whole = len(watch.reply) >= worker.REPLY.size
        watch.corrupt = not watch.nonce.startswith(watch.reply[:16]) or len(watch.reply) > worker.REPLY.size
        if whole and not watch.corrupt:
            watch.corrupt = watch.reply[16] > 1

    def _hear_host(self, watch: Watch) -> None:
        """Handle a message of the host, which lets others run for a while, lets this session go on, gives up on it, or
        is gone."""
        message = wire.receive(self._host)
        if message is None:
            self._end_everything()
            os._exit(0)
        if message["do"] == "stop":
            if watch.nonce and not (watch.stopped or watch.interrupted or watch.excess):
                watch.stop(processes.stop(self._list_processes))
            return
        if watch.stopped and not watch.excess:  # what was ended while it was stopped has no clock to go on
            self._go_on(watch)
        if message["do"] == "interrupt":
            watch.deadline = min(watch.deadline, time.monotonic())

    def _go_on(self, watch: Watch) -> None:
        there = set(self._list_processes())
        held = [pid for pid in watch.held if pid in there]
        watch.go()
        for pid in held:
            processes.send(pid, signal.SIGCONT)

    def _keep_limits(self, watch: Watch) -> None:
        now = time.monotonic()
        if now >= watch.deadline:
            self._stop_late(watch, now)
        elif now >= watch.next_look:
            self._check_budget(watch)

    def _check_budget(self, watch: Watch) -> None:
        began = time.process_time()
        watch.looked_at = True
        pids = self._list_processes()
        watch.excess = self._budget.exceeded(pids)
        if watch.excess:
            self._kill_request(watch)
            return
        if watch.stopped:
            watch.next_look = time.monotonic() + LOOK_WHILE_STOPPED
            return
        idle = not watch.share_out(pids, processes.running(pids))
        if watch.idle != idle:  # the host lets others begin while all here only wait
            watch.idle = idle
            self._host.sendall(wire.pack({"idle": idle}))
        watch.next_look = time.monotonic() + max(LOOK_EVERY, LOOK_SHARE * (time.process_time() - began))

    def _stop_late(self, watch: Watch, now: float) -> None:
        watch.timed_out = watch.timed_out or not watch.hung_up
        if watch.nonce and not watch.interrupted:
            watch.interrupted = True
            self._end_others(watch.process.pid)
            watch.deadline = time.monotonic() + GRACE
            processes.send(watch.process.pid, signal.SIGINT)
        else:
            self._kill_request(watch)

    def _end_others(self, worker: int) -> None:
        """End what the cell has started: a crowd would keep its interrupt, and us, from a processor."""
        if self._list_processes(worker):
            processes.send(worker, signal.SIGSTOP)
            processes.end(lambda: self._list_processes(worker), self._note_end)
            processes.send(worker, signal.SIGCONT)

    def _kill_request(self, watch: Watch) -> None:
        watch.deadline = watch.next_look = time.monotonic() + NEVER
        if watch.nonce and self._namespaced:
            processes.send(-1, signal.SIGKILL)
        else:
            frozen = self._worker.pid if self._worker and not watch.nonce else 0
            processes.end(lambda: self._list_processes(frozen), self._note_end)

    def _list_processes(self, keep: int = 0) -> list[int]:
        """List all of the session's processes but `keep`."""
        if self._namespaced:
            return processes.in_namespace(keep)
        return [pid for pid in processes.below() if pid != keep]

    def _reap_children(self) -> None:
        processes.drain(self._wake)
        processes.reap(self._note_end)

    def _note_end(self, pid: int, status: int) -> None:
        for process in (self._worker, self._process):
            if process is not None and process.pid == pid:
                process.ended(status)

    def _freeze_worker(self, process: Process) -> bool:
        """Wait until the worker is stopped, and end everything else; return False where the worker must go instead."""
        if process.status is not None or not self._await_stop(process):
            return False
        # Those that end now may have woken it.
        return processes.end(lambda: self._list_processes(process.pid)) and processes.undisturbed(process.pid)

    def _await_stop(self, process: Process) -> bool:
        """Wait until the worker has stopped; return False where it ends instead, or takes too long."""
        patience = processes.STOP_PATIENCE
        signal.setitimer(signal.ITIMER_REAL, patience, patience)  # again and again: the first may precede the wait
        try:
            self._waiting = True
            _, status = os.waitpid(process.pid, os.WUNTRACED)
            self._waiting = False
        except OSError:  # the time is up, or it ended together with all others
            self._waiting = False
            return False
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        if not os.WIFSTOPPED(status):
            process.ended(status)
        return process.status is None

    def _give_up_waiting(self, *_: object) -> None:
        if self._waiting:
            self._waiting = False
            raise TimeoutError

    def _end_everything(self) -> None:
        if self._namespaced:
            try:
                os.kill(-1, signal.SIGKILL)
            except ProcessLookupError:
                return
        processes.end(self._list_processes)
        processes.reap(self._note_end)

    def _make_result(self, watch: Watch, *, fresh: bool) -> dict[str, Any]:
        process = watch.process
        seconds = time.monotonic() - watch.began
        if not watch.nonce:
            processes.end(lambda: self._list_processes(self._worker.pid if self._worker else 0))
        for capture in (process.out, process.err):
            capture.read_all()
        if process.status is None and not watch.answered:
            self._end_everything()
        if watch.excess == "disk":
            self._end_everything()
            self._budget.clear()
        return {
            "status": _result_status(watch),
            "excess": watch.excess,
            "exit": process.status,
            "out": process.out.text(),
            "err": process.err.text(),
            "fresh": fresh,
            "seconds": seconds,
        }


def _result_status(watch: Watch) -> str:
    if watch.timed_out:
        return "timeout"
    if watch.excess:
        return "out_of_memory"
    if watch.answered and not watch.corrupt:
        if watch.reply[16]:
            return "error"
        return "completed"
    if watch.nonce or (watch.process.status or 0) < 0:
        return "crashed"
    return "exited"


def _not_begun(why: str) -> dict[str, Any]:
    return {"status": "exited", "exit": 1, "out": "", "err": why, "fresh": False, "seconds": 0.0, "excess": ""}


def _read_all(pipe: int) -> str:
    """Read what was written into a pipe that nobody writes to any more, and close it."""
    try:
        return os.read(pipe, 4096).decode("utf-8", "replace")
    except BlockingIOError:  # a child of the program's keeps it open
        return ""
    finally:
        os.close(pipe)
