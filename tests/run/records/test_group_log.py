# SPDX-License-Identifier: Apache-2.0
"""When lines of a log reach the kernel and the disk, and what a slow or full disk changes: to the millisecond, since
time is virtual here. The file is a real one; what its disk does is decided by each test."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest
from tests.run.virtual import simulated

from newskills.base.errors import StorageError
from newskills.base.store import AppendLog
from newskills.run.records.log import Disk, GroupLog

LINE = b'{"a":1}\n'
FULL, GONE = StorageError("The disk is full.", full=True), StorageError("The disk is gone.", hint="Look at it.")


class Thread(Executor):
    """The place of a thread of a `Disk`: what is handed to it is done at once, or, while `held`, once released."""

    def __init__(self) -> None:
        self.held = False
        self.works = 0
        self._waiting: list[tuple[Future[Any], Callable[[], Any]]] = []

    def submit(self, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.works += 1
        future: Future[Any] = Future()
        self._waiting.append((future, lambda: work(*args, **kwargs)))
        if not self.held:
            self.release()
        return future

    def release(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future, work in waiting:
            try:
                future.set_result(work())
            except StorageError as error:
                future.set_exception(error)


class Watch:
    """A log in a folder, and when its file was written and fsynced; `faults` are what the next writes meet."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = folder / "log"
        self.writes: list[float] = []
        self.fsyncs: list[float] = []
        self.faults: list[StorageError | None] = []
        self.errors: list[StorageError] = []
        self.said: list[str] = []
        self.disk = Disk(self.said.append)
        self.disk.writes = self.writer = Thread()  # type: ignore[assignment]
        self.disk.syncs = self.syncer = Thread()  # type: ignore[assignment]
        write, fsync = AppendLog.write, AppendLog.fsync

        def watched_write(log: AppendLog) -> None:
            self.writes.append(time.monotonic())
            if self.faults and (fault := self.faults.pop(0)) is not None:
                raise fault
            write(log)

        def watched_fsync(log: AppendLog) -> None:
            self.fsyncs.append(time.monotonic())
            fsync(log)

        monkeypatch.setattr(AppendLog, "write", watched_write)
        monkeypatch.setattr(AppendLog, "fsync", watched_fsync)
        self._monkeypatch = monkeypatch

    def run(self, main: Callable[[GroupLog], Coroutine[Any, Any, None]]) -> None:
        async def closed() -> None:
            log = GroupLog(self.path, self.disk, self.errors.append)
            await main(log)
            await log.close()

        simulated(self._monkeypatch, closed)

    @property
    def lines(self) -> int:
        return self.path.read_bytes().count(b"\n")


def is_full(log: GroupLog) -> bool:
    """Asked by way of a function: mypy takes a property for one that never changes."""
    return log.full


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watch:
    return Watch(tmp_path, monkeypatch)


def test_lines_are_written_together_five_milliseconds_after_the_first(watch: Watch) -> None:
    async def main(log: GroupLog) -> None:
        begun = time.monotonic()
        assert [log.append(LINE) for _ in range(2)] == [0, len(LINE)]
        await asyncio.sleep(0.003)
        assert log.append(LINE) == 2 * len(LINE)
        assert watch.writes == []
        await asyncio.sleep(0.01)
        assert [round(at - begun, 6) for at in watch.writes] == [0.005]
        assert watch.lines == 3
        log.append(LINE)
        await asyncio.sleep(0.01)
        assert [round(at - begun, 6) for at in watch.writes] == [0.005, 0.018]

    watch.run(main)
    assert watch.lines == 4


def test_sixty_four_lines_are_written_at_once(watch: Watch) -> None:
    async def main(log: GroupLog) -> None:
        for _ in range(63):
            log.append(LINE)
        assert watch.writes == []
        log.append(LINE)
        assert (len(watch.writes), watch.lines) == (1, 64)
        await asyncio.sleep(1)
        assert len(watch.writes) == 1

    watch.run(main)


def test_lines_are_fsynced_at_once_and_then_every_fifty_milliseconds(watch: Watch) -> None:
    async def main(log: GroupLog) -> None:
        begun = time.monotonic()
        for _ in range(20):
            log.append(LINE)
            await asyncio.sleep(0.01)
        await asyncio.sleep(1)
        assert [round(at - begun, 6) for at in watch.fsyncs] == [0.005, 0.055, 0.105, 0.155, 0.205]
        log.append(LINE)
        await asyncio.sleep(0.005001)
        assert len(watch.fsyncs) == 6, "the last one is long ago"

    watch.run(main)
    assert len(watch.fsyncs) == 7, "a file is fsynced as it is closed"


def test_what_comes_during_an_fsync_gets_another(watch: Watch) -> None:
    async def main(log: GroupLog) -> None:
        watch.syncer.held = True
        log.append(LINE)
        await asyncio.sleep(0.01)
        log.append(LINE)
        await asyncio.sleep(1)
        assert (watch.lines, watch.syncer.works, watch.fsyncs) == (2, 1, [])
        watch.syncer.held = False
        watch.syncer.release()
        await asyncio.sleep(0.04)
        assert len(watch.fsyncs) == 1
        await asyncio.sleep(0.02)
        assert [round(at - watch.fsyncs[0], 6) for at in watch.fsyncs] == [0, 0.05]

    watch.run(main)


def test_flush_returns_when_all_is_on_the_disk(watch: Watch) -> None:
    async def main(log: GroupLog) -> None:
        for _ in range(3):
            log.append(LINE)
            await log.flush()
            assert watch.writes[-1] <= watch.fsyncs[-1] == time.monotonic()
        assert (watch.lines, len(watch.writes), len(watch.fsyncs)) == (3, 3, 3)
        await log.flush()
        await log.await_written()
        assert len(watch.writes) == 3

    watch.run(main)


def test_flush_does_not_wait_for_the_next_fsync(watch: Watch) -> None:
    """What is written already, and not on the disk, is put there at once."""

    async def main(log: GroupLog) -> None:
        for _ in range(2):
            log.append(LINE)
            await log.await_written()
            await asyncio.sleep(0.001)
        assert (watch.lines, len(watch.fsyncs)) == (2, 1)
        await log.flush()
        assert len(watch.fsyncs) == 2

    watch.run(main)


class Slow(Watch):
    """Each write in the loop's own thread takes `seconds` of the clock that the log reads."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
        super().__init__(folder, monkeypatch)
        self._late = 0.0
        write = AppendLog.write

        def slow_write(log: AppendLog) -> None:
            write(log)
            self._late += seconds

        monkeypatch.setattr(AppendLog, "write", slow_write)

    def run(self, main: Callable[[GroupLog], Coroutine[Any, Any, None]]) -> None:
        async def later(log: GroupLog) -> None:
            virtual = time.monotonic
            with self._monkeypatch.context() as patch:  # undone before the virtual clock is, not behind it
                patch.setattr(time, "monotonic", lambda: virtual() + self._late)
                await main(log)

        super().run(later)


@pytest.mark.parametrize(("seconds", "in_thread"), [(0.0099, False), (0.0101, True)])
def test_after_a_slow_write_a_thread_writes_for_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, in_thread: bool
) -> None:
    slow = Slow(tmp_path, monkeypatch, seconds)

    async def main(log: GroupLog) -> None:
        for wait in (0.0, 0.9, 1.1):
            await asyncio.sleep(wait)
            log.append(LINE)
            await log.await_written()
        assert (slow.lines, len(slow.writes)) == (3, 3)
        assert slow.writer.works == int(in_thread)

    slow.run(main)
    assert not slow.errors


def test_a_disk_that_is_slower_than_the_run_is_full_after_sixty_four_lines_and_fifty_milliseconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Slow(tmp_path, monkeypatch, 0.02)

    async def main(log: GroupLog) -> None:
        log.append(LINE)
        await log.await_written()
        slow.writer.held = True
        log.append(LINE)
        await asyncio.sleep(0.006)
        assert slow.writer.works == 1
        for _ in range(63):
            log.append(LINE)
        await asyncio.sleep(0.051)
        assert not is_full(log)
        log.append(LINE)
        assert is_full(log), "the first of them waits for more than 50 milliseconds"
        slow.writer.held = False
        slow.writer.release()
        await log.await_written()
        assert not is_full(log)
        assert slow.lines == 66

    slow.run(main)


def test_young_lines_are_not_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(tmp_path, monkeypatch, 0.02)

    async def main(log: GroupLog) -> None:
        log.append(LINE)
        await log.await_written()
        slow.writer.held = True
        log.append(LINE)
        await asyncio.sleep(0.006)
        for _ in range(200):
            log.append(LINE)
        await asyncio.sleep(0.049)
        assert not is_full(log)
        await asyncio.sleep(0.002)
        assert is_full(log)
        slow.writer.held = False
        slow.writer.release()

    slow.run(main)
    assert slow.lines == 202


def test_a_full_disk_is_asked_each_half_second_and_no_line_is_lost(watch: Watch) -> None:
    async def main(log: GroupLog) -> None:
        watch.faults = [FULL] * 3
        begun = time.monotonic()
        log.append(LINE)
        await asyncio.sleep(0.2)
        assert is_full(log)
        log.append(LINE)
        await log.await_written()
        assert [round(at - begun, 3) for at in watch.writes[:4]] == [0.005, 0.505, 1.005, 1.505]
        assert not is_full(log)
        await asyncio.sleep(0.1)

    watch.run(main)
    assert (watch.lines, watch.errors) == (2, [])
    assert watch.said == [
        "The disk is full. Finished replies wait in memory: free some disk space within 120 s.",
        "The disk has space again; the run continues.",
    ]


@pytest.mark.timeout(20)
def test_lines_whose_write_was_cancelled_are_written_by_who_waits_for_them(watch: Watch) -> None:
    """As where a run is stopped while its disk is full."""

    async def main(log: GroupLog) -> None:
        watch.faults = [FULL] * 2
        log.append(LINE)
        await asyncio.sleep(0.2)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await log.await_written()
        assert watch.lines == 1

    watch.run(main)
    assert watch.errors == []


def test_a_disk_that_is_full_for_two_minutes_stops_the_run_and_tells_what_is_lost(watch: Watch) -> None:
    async def main(log: GroupLog) -> None:
        watch.faults = [FULL] * 1000
        begun = time.monotonic()
        log.append(LINE)
        await asyncio.sleep(0.2)
        log.append(LINE)
        log.append(LINE)
        await log.await_written()
        assert 120 < time.monotonic() - begun < 121
        before = log.append(LINE)
        assert log.append(LINE) == before, "what comes later is dropped"
        await asyncio.sleep(1)

    watch.run(main)
    assert [str(error) for error in watch.errors] == [
        "The disk is full. 3 finished lines are lost and will be generated again; earlier lines of the file are safe. "
        "Fix that, then run again."
    ]
    assert watch.errors[0].full
    assert watch.lines == 0


def test_a_disk_that_refuses_otherwise_is_not_waited_for(watch: Watch) -> None:
    async def main(log: GroupLog) -> None:
        log.append(LINE)
        await log.flush()
        watch.faults = [FULL, GONE, GONE]
        log.append(LINE)
        await asyncio.sleep(0.6)
        log.append(LINE)

    watch.run(main)
    assert ["The disk is gone. 1 finished lines are lost" in str(error) for error in watch.errors] == [True]
    assert not watch.errors[0].full
    assert watch.lines == 1


def test_an_fsync_that_fails_loses_no_line_that_is_counted(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(log: AppendLog) -> None:
        raise GONE

    monkeypatch.setattr(AppendLog, "fsync", broken)

    async def main(log: GroupLog) -> None:
        log.append(LINE)
        await log.flush()

    watch.run(main)
    assert (watch.errors, watch.lines) == ([GONE], 1)


def test_space_is_waited_for_on_each_device_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []

    async def main() -> None:
        disk = Disk(said.append)
        begun = time.monotonic()
        waits = 0
        while await disk.space(1, FULL):
            waits += 1
        assert (waits, time.monotonic() - begun) == (241, pytest.approx(120.5))
        assert await disk.space(2, FULL)
        disk.has_space(3)
        assert len(said) == 2
        disk.has_space(1)
        disk.has_space(1)
        assert len(said) == 3
        assert await disk.space(1, FULL)
        assert len(said) == 4
        disk.give_up()
        now = time.monotonic()
        assert not await disk.space(1, FULL)
        assert time.monotonic() == now

    simulated(monkeypatch, main)


def test_the_threads_of_a_disk_end_with_it(tmp_path: Path) -> None:
    with Disk() as disk:
        names = {disk.writes.submit(threading.current_thread).result().name for _ in range(3)}
        names |= {disk.syncs.submit(threading.current_thread).result().name for _ in range(3)}
    assert names == {"newskills-log_0", "newskills-fsync_0"}
    for pool in (disk.writes, disk.syncs):
        with pytest.raises(RuntimeError, match="after shutdown"):
            pool.submit(int)


def test_the_clock_of_the_machine_is_back() -> None:
    before = time.monotonic()
    time.sleep(0.001)
    assert time.monotonic() > before
