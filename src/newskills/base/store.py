# SPDX-License-Identifier: Apache-2.0
"""Files that survive a kill: append-only JSON lines, atomic replacement, locks, streaming reads.

A line counts only when its newline is on disk; a torn last line is dropped by readers and overwritten by the next
writer. A final file appears by rename, whole or not at all.
"""

from __future__ import annotations

import bisect
import contextlib
import errno
import fcntl
import hashlib
import itertools
import math
import os
import re
import shutil
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import msgspec

from newskills.base.errors import DataError, LockedError, StorageError, storage_error
from newskills.base.reading.row_files import Place, place_in, row_lines
from newskills.base.records import Row
from newskills.base.replacing import replacing_file, sync_folder
from newskills.base.terminal import listed
from newskills.base.type_errors import type_fault

DIGEST_SIZE = 16
_decoder = msgspec.json.Decoder(Row)
_encoder = msgspec.json.Encoder()
_NO_NUMBER = re.compile(rb"[:,\[]\s*-?(?:NaN|Infinity)\b")
"""As Python writes numbers that JSON does not have."""
LONGEST_LINE = 32 << 20
"""Bytes of a line that is still read where files may be those of others."""
_PIECE_BYTES = 1 << 20


def encode_line(record: object) -> bytes:
    """Encode one JSON line with its newline. Lone surrogates (possible in model text) become `?`."""
    try:
        return _encoder.encode(record) + b"\n"
    except UnicodeEncodeError:
        return _encoder.encode(_without_surrogates(record)) + b"\n"


def read_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a file in any of the forms of `base.reading.row_files`; blank lines are skipped.

    Raises DataError naming file, line and what is wrong; ConfigError where a package is missing that reads it.
    """
    with open_for_reading(path) as file:
        for place, line in row_lines(file, path):
            if line.strip():
                yield decode_row(line, path, place)


def decode_row(line: bytes, path: Path, place: Place) -> Row:
    """Decode one line to one JSON object. Raises DataError."""
    try:
        return _decoder.decode(line)
    except msgspec.ValidationError as error:
        fault = type_fault(error).replace("an object", "a JSON object")
        raise DataError(f"{place_in(path, place)}: {fault}.") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        hint = ""
        if _NO_NUMBER.search(line):
            hint = "Write null where there is no number."
        raise DataError(f"{place_in(path, place)}: invalid JSON ({error}).", hint=hint) from error


def count_rows(path: Path) -> int:
    """Count the lines that end with a newline and are not blank; 0 where there is no file. Raises DataError for what
    cannot be read."""
    if not path.exists():
        return 0
    with open_for_reading(path) as file:
        return sum(line.endswith(b"\n") and not line.isspace() for line in file)


def open_for_reading(path: Path, block: int = 1 << 20) -> IO[bytes]:
    """Open a file; `block`: bytes that are read at a time. Raises DataError for a missing or unreadable file."""
    try:
        return path.open("rb", buffering=block)
    except FileNotFoundError as error:
        if path.parent.is_dir():
            near = sorted(other.name for other in path.parent.glob("*.jsonl"))
        else:
            near = []
        hint = f"That folder has: {listed(near)}." if near else ""
        raise DataError(f"There is no file {path}.", hint=hint) from error
    except IsADirectoryError as error:
        raise DataError(f"{path} is a folder; expected a JSONL file.") from error
    except OSError as error:
        raise DataError(f"Cannot read {path}: {error.strerror}.") from error


def no_folder(path: Path, hint: str = "") -> DataError:
    """Return the error that `path` is no folder: there is none, or it is a file."""
    if not path.exists():
        return DataError(f"There is no folder {path}.", hint=hint)
    return DataError(
        f"{path} is a file; expected a folder.", hint=hint or f"Give the folder of the results: {path.parent}"
    )


def bounded_lines(file: IO[bytes], most: int = LONGEST_LINE) -> Iterator[bytes | None]:
    """Yield the lines of a file in bounded memory; None stands for one that is longer than `most` bytes."""
    while line := file.readline(most):
        if len(line) < most or line.endswith(b"\n"):
            yield line
            continue
        while (piece := file.readline(_PIECE_BYTES)) and not piece.endswith(b"\n"):
            pass
        yield None


def file_digest(path: Path) -> str:
    """Hash of the file's bytes, in hexadecimal. Raises DataError."""
    digest = hashlib.blake2b(digest_size=DIGEST_SIZE)
    with open_for_reading(path) as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


class AppendLog:
    """An append-only JSON-lines file. `append` returns the byte offset of its line.

    Lines reach the kernel on `write` and the disk on `fsync`; the caller decides how many share one. Opening
    truncates a torn last line.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            self._end = whole_length(self._fd)
            os.ftruncate(self._fd, self._end)
        except OSError as error:
            raise storage_error(error, path) from error
        self._buffer: list[bytes] = []
        self._pending = 0

    @property
    def end(self) -> int:
        """Byte offset at which the next line will begin."""
        return self._end + self._pending

    @property
    def written(self) -> int:
        """Bytes that are with the kernel."""
        return self._end

    @property
    def waiting(self) -> int:
        """Lines that are not with the kernel yet."""
        return len(self._buffer)

    @property
    def device(self) -> int:
        """Number of the file system."""
        return os.fstat(self._fd).st_dev

    def append(self, record: object) -> int:
        return self.append_line(encode_line(record))

    def append_line(self, line: bytes) -> int:
        """Append a line, one JSON object and its newline, as `encode_line` makes it."""
        offset = self.end
        self._buffer.append(line)
        self._pending += len(line)
        return offset

    def sync(self) -> None:
        """Write and fsync what was appended. Raises as `write` and `fsync`."""
        self.write()
        self.fsync()

    def write(self) -> None:
        """Write what was appended to the kernel: it survives a kill.

        Raises StorageError; the lines for which there was room are written then, and the others wait for another call.
        """
        data = b"".join(self._buffer)
        view, written = memoryview(data), 0
        try:
            while written < len(data):
                written += os.pwrite(self._fd, view[written:], self._end + written)
        except OSError as error:
            ends = list(itertools.accumulate(map(len, self._buffer)))
            self._advance(bisect.bisect_right(ends, written))
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, self._end)
            raise storage_error(error, self.path) from error
        self._advance(len(self._buffer))

    def _advance(self, lines: int) -> None:
        written = sum(map(len, self._buffer[:lines]))
        self._end += written
        self._pending -= written
        del self._buffer[:lines]

    def fsync(self) -> None:
        """Wait until what was written is on the disk: it survives a power cut. Any thread may call this. Raises
        StorageError."""
        try:
            os.fdatasync(self._fd)
        except OSError as error:
            raise storage_error(error, self.path) from error

    def close(self) -> None:
        try:
            self.sync()
        finally:
            os.close(self._fd)


def whole_length(fd: int) -> int:
    """Return the bytes of the file up to and including its last newline."""
    size = os.fstat(fd).st_size
    step = 1 << 16
    end = size
    while end > 0:
        start = max(0, end - step)
        block = os.pread(fd, end - start, start)
        cut = block.rfind(b"\n")
        if cut >= 0:
            return start + cut + 1
        end = start
    return 0


@contextlib.contextmanager
def atomic_write(path: Path) -> Iterator[IO[bytes]]:
    """Yield a binary file that replaces `path` on success and leaves no trace on failure. Raises StorageError."""
    try:
        with replacing_file(path) as file:
            yield file
    except OSError as error:
        raise storage_error(error, path) from error


@contextlib.contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield a folder that becomes `path` on success, with all its files on disk, and leaves no trace on failure.

    What a killed process left is removed by the next one; two at once need a lock. Raises StorageError, at once where
    `path` holds something.
    """
    if path.is_dir() and any(path.iterdir()):
        raise StorageError(
            f"{path} contains files, which are not overwritten.",
            hint="Give another folder, or move that one away.",
        )
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        yield temporary
        for file in temporary.rglob("*"):
            if file.is_file():
                with file.open("rb") as written:
                    os.fsync(written.fileno())
        sync_folder(temporary)
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise storage_error(error, path) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def private_folder(path: Path, purpose: str, hint: str = "") -> Path:
    """Return the folder, which this user alone may enter; make it where it is missing. It stands where every user of
    the machine may write, as in /tmp. Raises StorageError where it cannot be made, is a link or belongs to another
    user."""
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        status = path.lstat()
    except OSError as error:
        raise StorageError(f"Cannot create the folder {path} for {purpose}: {error.strerror}.") from error
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise StorageError(f"{path} belongs to another user.", hint=hint)
    if stat.S_IMODE(status.st_mode) != 0o700:
        path.chmod(0o700)
    return path


def write_json(path: Path, value: Any) -> None:
    """Write `value` as JSON with an indent of 2, atomically."""
    with atomic_write(path) as file:
        file.write(msgspec.json.format(_encoder.encode(value), indent=2) + b"\n")


def write_rows(path: Path, rows: Iterable[Row]) -> int:
    """Write JSON lines, atomically; return how many."""
    count = 0
    with atomic_write(path) as file:
        for row in rows:
            file.write(encode_line(row))
            count += 1
    return count


@contextlib.contextmanager
def hold_lock(path: Path, what: str) -> Iterator[str]:
    """Hold an exclusive lock on `path` (released by the kernel when the process dies); yield who had it before.

    Raises LockedError where another process has it, StorageError where the file system has no locks.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise storage_error(error, path) from error
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise StorageError(
                    f"{path.parent} has no file locks ({error.strerror}).",
                    hint="Mount it with locks (NFS without nolock, Lustre with flock), or use another folder.",
                ) from error
            owner = os.pread(fd, 200, 0).decode(errors="replace").strip() or "another process"
            raise LockedError(f"{what} is in use by {owner}.", hint="Wait for it, or stop it.") from error
        before = os.pread(fd, 200, 0).decode(errors="replace")
        with contextlib.suppress(OSError):  # a full disk takes no name, and keeps the lock all the same
            os.ftruncate(fd, 0)
            os.pwrite(fd, f"process {os.getpid()} on {os.uname().nodename}".encode(), 0)
        yield before
    finally:
        os.close(fd)


@contextlib.contextmanager
def waiting_lock(path: Path, what: str, patience: float = math.inf) -> Iterator[None]:
    """Lock as `locked` does, but wait for the other one to end. Raises LockedError after `patience` seconds."""
    until = time.monotonic() + patience
    with contextlib.ExitStack() as stack:
        while True:
            try:
                stack.enter_context(hold_lock(path, what))
                break
            except LockedError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)
        yield


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list | tuple):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(k): _without_surrogates(v) for k, v in value.items()}
    if isinstance(value, msgspec.Struct):
        return _without_surrogates(msgspec.to_builtins(value))
    return value
