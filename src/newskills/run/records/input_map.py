# SPDX-License-Identifier: Apache-2.0
"""What one pass over a large input has found, kept beside the output: a resume, and each chunk, need not read it again.

It holds as long as the file is the very same by what its file system says: number, size, and both times. A file that
was written a moment ago is not trusted so, since its times cannot tell another change.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import time
from array import array
from pathlib import Path

import msgspec
from msgspec import Struct

from newskills.base.errors import StorageError
from newskills.base.store import atomic_write, open_for_reading
from newskills.run.records.rows import Input, scan_rows

MIN_MAPPED_ROWS = 200_000
"""Rows from which on it pays."""
_SETTLED_SECONDS = 3.0
"""Seconds without a change after which the times of a file are trusted; coarse clocks count in seconds."""


class InputMap(Struct):
    """`version`: of the file that this tells of. `marks` as in `Input`, in the byte order of this machine."""

    version: tuple[int, ...]
    byte_order: str
    rows: int
    digest: str
    marks: bytes


def read_input(path: Path, folder: Path | None, distinct: tuple[str, int] | None = None) -> Input:
    """Scan the input, using what an earlier process has kept in `folder` while the file is the same. Raises
    DataError."""
    if folder is None:
        return scan_rows(path, distinct)
    version = _file_version(path)
    with contextlib.suppress(OSError, msgspec.MsgspecError):
        kept = msgspec.msgpack.decode(_map_of(path, folder).read_bytes(), type=InputMap)
        if kept.version == version and kept.byte_order == sys.byteorder:
            marks = array("Q", kept.marks)
            return Input(path=path, rows=kept.rows, digest=kept.digest, distinct=True, marks=marks)
    source = scan_rows(path, distinct)
    if time.time() - max(version[2:]) / 1e9 > _SETTLED_SECONDS and version == _file_version(path):
        source.version = version
    return source


def keep_input(source: Input, folder: Path) -> None:
    """Save in `folder`, which exists, what `read_input` uses; only for large inputs, where it pays."""
    if source.rows < MIN_MAPPED_ROWS or not source.version or not source.distinct or not source.marks:
        return
    path = _map_of(source.path, folder)
    kept = InputMap(source.version, sys.byteorder, source.rows, source.digest, source.marks.tobytes())
    with contextlib.suppress(StorageError), atomic_write(path) as file:  # the next process looks itself
        file.write(msgspec.msgpack.encode(kept))


def _map_of(path: Path, folder: Path) -> Path:
    return folder / f".input-{hashlib.blake2b(str(path.absolute()).encode(), digest_size=8).hexdigest()}.map"


def _file_version(path: Path) -> tuple[int, ...]:
    """Return the version of the file by opening it: a network file system asks its server then. Raises
    DataError."""
    with open_for_reading(path) as file:
        status = os.fstat(file.fileno())
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
