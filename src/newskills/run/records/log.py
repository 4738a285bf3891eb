# SPDX-License-Identifier: Apache-2.0
"""Append logs that never stall the event loop.

A line is handed to the kernel within milliseconds, with 63 others at most (it then survives `kill -9`), and fsynced
with its neighbours within `FSYNC_EVERY` seconds and the time of an fsync (it then survives a power cut).
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import msgspec
from msgspec import Struct

from newskills.base.errors import StorageError, storage_error
from newskills.base.records import Row, Score
from newskills.base.store import AppendLog, atomic_write, encode_line, open_for_reading, read_rows
from newskills.run.records.damage import SEAL_FIELD, is_broken, seal_line

WRITE_EVERY = 0.005
FSYNC_EVERY = 0.05
MAX_WAITING_LINES = 64
"""Lines that may wait in memory."""
QUICK_WRITE_SECONDS = 0.01
"""Seconds of a write; after one that took longer, a thread writes for `SLOW_FOR` seconds, and the loop goes on."""
SLOW_FOR = 1.0
MAX_LATE_SECONDS = 0.05
"""Seconds that lines may wait for a slow disk before no further row is begun."""
FULL_DISK_SECONDS = 120.0
"""Seconds to wait for space on a full disk."""
RETRY_EVERY = 0.5
KEY_FIELD = "_async_key"
SETTINGS_FIELD = "_async_settings"

record_decoder = msgspec.json.Decoder(Row)


class Disk:
    """What all logs of a run share: the threads that write and fsync, and the wait for space.

    Two threads, so that no line waits behind an fsync. `say` is told of a full disk, once, and of space again.
    """

    def __init__(self, say: Callable[[str], None] = lambda text: None) -> None:
        self.writes = ThreadPoolExecutor(1, "newskills-log")
        self.syncs = ThreadPoolExecutor(1, "newskills-fsync")
        self._say = say
        self._full: dict[int, float] = {}
        self._given_up = False

    async def space(self, device: int, error: StorageError) -> bool:
        """Wait a moment for somebody to make space; return False when that has taken too long."""
        now = time.monotonic()
        if device not in self._full:
            self._full[device] = now
            self._say(
                f"{error.message} Finished replies wait in memory: "
                f"free some disk space within {FULL_DISK_SECONDS:.0f} s."
            )
        if self._given_up or now - self._full[device] > FULL_DISK_SECONDS:
            return False
        await asyncio.sleep(RETRY_EVERY)
        return True

    def has_space(self, device: int) -> None:
        """Note that a write to `device` went well."""
        if self._full.pop(device, None) is not None:
            self._say("The disk has space again; the run continues.")

    def give_up(self) -> None:
        """Stop all logs from waiting for disk space."""
        self._given_up = True

    def __enter__(self) -> Disk:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.writes.shutdown()
        self.syncs.shutdown()


class GroupLog:
    """An AppendLog with group commit: `append` is called on the event loop and returns at once.

    No more than `MAX_WAITING_LINES` lines are in memory alone, and none for longer than some milliseconds, as long as
    the disk is quick: then the loop itself hands them to the kernel. A slow disk gets a thread. A full one is waited
    for, with the lines in memory.

    `on_error` is called on the loop, once, when the disk refuses for good; later lines are dropped, since the run is
    about to stop and its work up to the last whole line is safe.
    """

    def __init__(self, path: Path, disk: Disk, on_error: Callable[[StorageError], None]) -> None:
        self._log = AppendLog(path)
        self._disk = disk
        self._on_error = on_error
        self._end = self._log.end
        self._device = self._log.device
        self._lines: list[bytes] = []
        self._oldest = self._slow_until = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._write: asyncio.Task[None] | None = None
        self._sync_timer: asyncio.TimerHandle | None = None
        self._sync: asyncio.Future[None] | None = None
        self._volatile = self._broken = self._closed = self._starved = False
        self._synced = 0.0

    @property
    def full(self) -> bool:
        """The disk is slower than the run: `await written()` before going on."""
        return self._starved or (
            len(self._lines) >= MAX_WAITING_LINES and time.monotonic() - self._oldest > MAX_LATE_SECONDS
        )

    def append(self, line: bytes) -> int:
        """Queue a line made by `encode_line` for writing; return the byte offset it will have."""
        offset = self._end
        if not self._broken:
            if not self._lines:
                self._oldest = time.monotonic()
            self._end += len(line)
            self._lines.append(line)
            if len(self._lines) >= MAX_WAITING_LINES:
                self._start_write()
            elif self._timer is None and self._write is None:
                self._timer = asyncio.get_running_loop().call_later(WRITE_EVERY, self._start_write)
        return offset

    async def await_written(self) -> None:
        """Return when everything appended so far is with the kernel, or the disk has refused."""
        end = self._end
        while not self._broken and self._log.written < end:
            self._start_write()
            if self._write is not None:
                await asyncio.wait([self._write])
                await asyncio.sleep(0)

    async def flush(self) -> None:
        """Return when everything appended so far is on the disk, or the disk has refused."""
        while not self._broken and (self._lines or self._write or self._volatile or self._sync):
            await self.await_written()
            if self._volatile and self._sync is None:
                self._start_sync()
            if self._sync is not None:
                await asyncio.wait([self._sync])
            await asyncio.sleep(0)

    async def close(self) -> None:
        """Flush and close the log; further calls do nothing."""
        await self.flush()
        if self._closed:
            return
        self._closed = True
        for timer in (self._timer, self._sync_timer):
            if timer is not None:
                timer.cancel()
        if running := [task for task in (self._write, self._sync) if task is not None]:
            await asyncio.wait(running)
        with contextlib.suppress(StorageError):
            self._log.close()

    def _start_write(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._write is not None or self._broken or not (self._lines or self._log.waiting):
            return
        lines, self._lines = self._lines, []
        for line in lines:
            self._log.append_line(line)
        if time.monotonic() >= self._slow_until:
            try:
                self._put()
            except StorageError as error:
                self._write = asyncio.create_task(self._write_when_there_is_space(error))
            else:
                self._after_write()
                return
        else:
            self._write = asyncio.create_task(self._write_in_thread())
        self._write.add_done_callback(self._await_flush)

    def _put(self) -> None:
        begun = time.monotonic()
        self._log.write()
        ended = time.monotonic()
        if ended - begun > QUICK_WRITE_SECONDS:
            self._slow_until = ended + SLOW_FOR

    async def _write_in_thread(self) -> None:
        try:
            await asyncio.get_running_loop().run_in_executor(self._disk.writes, self._put)
        except StorageError as error:
            await self._write_when_there_is_space(error)

    async def _write_when_there_is_space(self, error: StorageError) -> None:
        loop = asyncio.get_running_loop()
        self._starved = True
        while error.full and await self._disk.space(self._device, error):
            try:
                await loop.run_in_executor(self._disk.writes, self._put)
            except StorageError as again:
                error = again
            else:
                self._starved = False
                self._disk.has_space(self._device)
                return
        raise error

    def _await_flush(self, write: asyncio.Future[None]) -> None:
        self._write = None
        if self._has_failed(write):
            return
        self._after_write()
        self._start_write()

    def _after_write(self) -> None:
        self._volatile = True
        if self._sync is None and self._sync_timer is None:
            wait = self._synced + FSYNC_EVERY - time.monotonic()
            self._sync_timer = asyncio.get_running_loop().call_later(wait, self._start_sync)

    def _start_sync(self) -> None:
        if self._sync_timer is not None:
            self._sync_timer.cancel()
            self._sync_timer = None
        if self._sync is not None or self._broken or self._closed or not self._volatile:
            return
        self._volatile = False
        self._sync = asyncio.get_running_loop().run_in_executor(self._disk.syncs, self._log.fsync)
        self._sync.add_done_callback(self._after_sync)

    def _after_sync(self, sync: asyncio.Future[None]) -> None:
        self._sync = None
        self._synced = time.monotonic()
        if not self._has_failed(sync) and self._volatile and self._sync_timer is None:
            self._sync_timer = asyncio.get_running_loop().call_later(FSYNC_EVERY, self._start_sync)

    def _has_failed(self, done: asyncio.Future[None]) -> bool:
        if done.cancelled():  # the run is ending; what waits in memory is written by the next attempt
            return True
        error = done.exception()
        if isinstance(error, StorageError) and not self._broken:
            self._broken = True
            self._on_error(self._with_loss(error))
        return error is not None

    def _with_loss(self, error: StorageError) -> StorageError:
        """Return `error` with the amount of work it costs in its hint."""
        lost = self._log.waiting + len(self._lines)
        if not lost:
            return error
        hint = f"{lost:,} finished lines are lost and will be generated again; earlier lines of the file are safe."
        return StorageError(error.message, hint=f"{hint} Fix that, then run again.", full=error.full)


class LogReader:
    """Lines of a log by byte offset; what lies nearer than `block` bytes costs no system call."""

    def __init__(self, path: Path, block: int = 1 << 20) -> None:
        self._file = open_for_reading(path, block)

    def line(self, offset: int) -> bytes:
        self._file.seek(offset)
        return self._file.readline()

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()


class GradeLine(Struct, omit_defaults=True):
    """One line of the grades log. `sum` ties the verdict to the very record that was graded."""

    position: int
    sum: int
    score: Score


class GradeReader(LogReader):
    """Verdicts of a grades log."""

    def score(self, offset: int, position: int, checksum: int) -> Score | None:
        """Return the score on row `position`, whose record has `checksum`; None: what is at `offset` is something
        else."""
        grade: GradeLine | None = decode_sound_line(_grade, self.line(offset))
        if grade is None or (grade.position, grade.sum) != (position, checksum):
            return None
        return grade.score


_grade = msgspec.json.Decoder(GradeLine)


class Damage(NamedTuple):
    """A line of a log that cannot be read, and where it begins."""

    offset: int
    line: bytes


def set_aside(log: Path, damaged: Sequence[Damage], aside: Path) -> None:
    """Move damaged lines to the end of the file `aside`; blanks take their place in the log. Raises StorageError."""
    try:
        with aside.open("ab") as kept:
            kept.writelines(line for _, line in damaged)
            kept.flush()
            os.fsync(kept.fileno())
        with log.open("r+b") as file:
            for offset, line in damaged:
                file.seek(offset)
                file.write(b" " * (len(line) - 1))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise storage_error(error, log) from error


def decode_sound_line(decoder: Any, line: bytes) -> Any:
    """Return the decoded line, or None where it is damaged; what the decoder passes over is looked at, too."""
    if is_broken(line):
        return None
    try:
        if not line.isascii():
            line.decode()
        return decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def content_key(identity: str, key: str) -> int:
    """Return 64 bits of a hash of a sample's identity and what it asks the model."""
    return int.from_bytes(hashlib.blake2b(f"{identity}\0{key}".encode("utf-8", "replace"), digest_size=8).digest())


def decode_record(line: bytes, position_key: str) -> Row:
    """Return a record as users see it, out of a line of the generation log."""
    record = record_decoder.decode(line)
    del record[position_key], record[KEY_FIELD]
    record.pop(SETTINGS_FIELD, None)
    record.pop(SEAL_FIELD, None)
    return record


def log_line(record: Row, position_key: str, position: int, key: str, settings: str = "") -> bytes:
    """Return the line of a record as the generation log holds it. `settings`: hash of those that it was made with."""
    return seal_line(encode_line({**record, position_key: position, KEY_FIELD: key, SETTINGS_FIELD: settings}))


def restore_log(
    output: Path, log: Path, position_key: str, drop: frozenset[str], lacking: str | None = None, *, settings: str
) -> None:
    """Turn a finished file back into a generation log without the fields `drop` (to grade it again).

    Records with the field `lacking` are left out: they are to be made again.
    """
    with atomic_write(log) as file:
        for position, record in enumerate(read_rows(output)):
            if lacking in record:
                continue
            file.write(log_line(ungraded_record(record, drop), position_key, position, "", settings))


def ungraded_record(record: Row, drop: frozenset[str]) -> Row:
    """Return `record` without the fields `drop` of its grading; a failed generation keeps its outcome."""
    raw = {name: value for name, value in record.items() if name not in drop}
    if record.get("outcome") == "unscored" and "error" in record:
        raw |= {name: record[name] for name in ("outcome", "outcome_cause") if name in record}
    return raw


def log_lines(path: Path, start: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield (byte offset, line) of a log from byte `start`; blank lines and a torn last one are left out, a
    missing file is empty."""
    if not path.exists():
        return
    with open_for_reading(path) as file:
        file.seek(start)
        offset = start
        for line in file:
            if line.endswith(b"\n") and not line.isspace():
                yield offset, line
            offset += len(line)


def log_records(
    path: Path, is_damaged: Callable[[int, bytes], bool] = lambda offset, line: False
) -> Iterator[Row]:
    """Yield the records of a log or a finished file as it holds them; damaged ones are left out."""
    for offset, line in log_lines(path):
        if not is_damaged(offset, line) and (record := decode_sound_line(record_decoder, line)) is not None:
            yield record
