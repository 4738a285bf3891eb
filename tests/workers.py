# SPDX-License-Identifier: Apache-2.0
"""`python -m pytest -p tests.workers --workers=4`: tests are collected once, then processes fork and share the files.

Each worker of pytest-xdist would import and collect everything itself, which here takes half a minute of a core. A
worker takes one file after another, as with `--dist=loadfile`, and has a session of fixtures and a folder of its own,
named as those of pytest-xdist.
"""

from __future__ import annotations

import atexit
import gc
import itertools
import os
import random
import signal
import struct
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from tests import forkserver

_NUMBER = struct.Struct("=I")


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "processes that share the tests, which are collected once; auto: one for each CPU"
    parser.addoption("--workers", metavar="N", default="0", help=text)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    config.stash[_WRITES] = sys.dont_write_bytecode
    sys.dont_write_bytecode = (
        False  # so that what tests import is compiled once, also where a machine forbids that
    )


def pytest_collection_finish(session: pytest.Session) -> None:
    sys.dont_write_bytecode = session.config.stash[_WRITES]


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    wanted = session.config.getoption("--workers")
    count = len(os.sched_getaffinity(0)) if wanted == "auto" else int(wanted)
    if count == 0 or session.config.option.collectonly or session.testsfailed:
        return None
    with forkserver.shared():
        _Pool(session).run(count)
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    return True


_WRITES = pytest.StashKey[bool]()


class _Worker:
    """A process as this one sees it. `left`: what it has not yet finished of its file."""

    def __init__(self, pid: int, name: str, results: Connection) -> None:
        self.pid = pid
        self.name = name
        self.gateway = SimpleNamespace(
            id=name
        )  # it stands for a node of pytest-xdist where pytest tells of reports
        self._workerinfocache = f"[{name}]"
        self.results = results
        self.exited = os.pidfd_open(pid)
        self.left: list[pytest.Item] = []


class _Pool:
    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        by_file = itertools.groupby(session.items, key=lambda item: item.path)
        self._files = [list(items) for _, items in by_file]
        self._items = {item.nodeid: item for item in session.items}
        self._queue, tickets = os.pipe()
        for number in range(len(self._files)):
            os.write(tickets, _NUMBER.pack(number))
        os.close(tickets)
        self._names = (f"gw{number}" for number in itertools.count())

    def run(self, count: int) -> None:
        """Until all tests have run, or pytest has had enough. A worker that dies is replaced."""
        self._session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        gc.collect()
        gc.freeze()
        workers = [self._fork() for _ in range(count)]
        try:
            while workers and not self._session.shouldfail:
                wait([*(worker.results for worker in workers), *(worker.exited for worker in workers)])
                for worker in workers.copy():
                    over = bool(wait([worker.exited], 0))  # first: what it sent until then is read now
                    self._take_all(worker)
                    if over:
                        workers.remove(worker)
                        workers += self._bury(worker)
        finally:
            for worker in workers:
                os.kill(worker.pid, signal.SIGINT)
            for worker in workers:
                os.waitpid(worker.pid, 0)

    def _fork(self, *first: list[pytest.Item]) -> _Worker:
        name = next(self._names)
        results, sender = Pipe(duplex=False)
        pid = os.fork()
        if pid == 0:
            results.close()
            _work(self._session, name, sender, itertools.chain(first, self._taken()))
        sender.close()
        return _Worker(pid, name, results)

    def _taken(self) -> Iterator[list[pytest.Item]]:
        while ticket := os.read(self._queue, _NUMBER.size):  # each goes to one reader, whole
            yield self._files[_NUMBER.unpack(ticket)[0]]

    def _take_all(self, worker: _Worker) -> None:
        with suppress(EOFError, OSError):  # it has died
            while worker.results.poll():
                self._take(worker, *worker.results.recv())

    def _take(self, worker: _Worker, kind: str, content: Any) -> None:
        config = self._session.config
        if kind == "file":
            worker.left = [self._items[name] for name in content]
        elif kind == "end":
            worker.left.pop(0)
        else:
            report = config.hook.pytest_report_from_serializable(config=config, data=content)
            report.node = worker
            config.hook.pytest_runtest_logreport(report=report)

    def _bury(self, worker: _Worker) -> list[_Worker]:
        """The worker that goes on where it died. Raises AssertionError where it died between tests."""
        code = os.waitstatus_to_exitcode(os.waitpid(worker.pid, 0)[1])
        os.close(worker.exited)
        worker.results.close()
        text = f"worker {worker.name} ended with {code}"
        if not worker.left:
            assert code == 0, text
            return []
        item, *rest = worker.left
        self._session.config.hook.pytest_runtest_logreport(report=_failure(item.nodeid, item.location, text))
        return [self._fork(rest) if rest else self._fork()]


def _failure(nodeid: str, location: tuple[str, int | None, str], text: str) -> pytest.TestReport:
    return pytest.TestReport(nodeid, location, {}, "failed", text, "call")


# ---- In a worker ----------------------------------------------------------------------------------------------------


class _Sender:
    """Sends what there is to tell of a test to the process that shows it."""

    def __init__(self, config: pytest.Config, connection: Connection) -> None:
        self._config = config
        self._connection = connection

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._connection.send(("report", data))

    def send_file(self, items: Sequence[pytest.Item]) -> None:
        self._connection.send(("file", [item.nodeid for item in items]))

    def pytest_runtest_logfinish(self) -> None:
        self._connection.send(("end", None))


def _work(
    session: pytest.Session, name: str, connection: Connection, files: Iterator[list[pytest.Item]]
) -> NoReturn:
    """Never returns into what this process was forked from."""
    code = 1
    try:
        sender = _separate(session.config, name, connection)
        for items in files:
            sender.send_file(items)
            for item, following in zip(items, [*items[1:], session], strict=True):  # fixtures of the session stay
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        try:
            session._setupstate.teardown_exact(None)
        except Exception:
            report = _failure(f"fixtures of {name}", ("", None, ""), traceback.format_exc())
            sender.pytest_runtest_logreport(report)
        code = 0
    except KeyboardInterrupt:
        pass
    except BaseException:
        traceback.print_exc(file=sys.__stderr__)
    _exit(code)


def _exit(code: int) -> NoReturn:
    """Ends this process as Python does, but for what the tests' reports are still needed for."""
    try:
        atexit._run_exitfuncs()
    finally:
        os._exit(code)


def _separate(config: pytest.Config, name: str, connection: Connection) -> _Sender:
    """From here on this process shares no file with those that it was forked beside."""
    os.environ.update(PYTEST_XDIST_WORKER=name, PYTEST_XDIST_TESTRUNUID=str(os.getppid()))
    random.seed()
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.read_global_capture()
        capture.stop_global_capturing()
    nowhere = open(os.devnull, "w")  # noqa: SIM115 - as long as this process
    config.get_terminal_writer()._file = nowhere
    if capture is not None:
        capture.start_global_capturing()
    factory = config._tmp_path_factory  # type: ignore[attr-defined]
    factory._basetemp = factory.getbasetemp() / f"popen-{name}"
    factory._basetemp.mkdir(mode=0o700)
    sender = _Sender(config, connection)
    config.pluginmanager.register(sender)
    return sender
