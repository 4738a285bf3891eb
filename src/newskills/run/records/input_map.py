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
from newskills.run.records.rows import Input, scan

MANY = 200_000
"""Rows from which on it pays."""
_SETTLED = 3.0
"""Seconds without a change after which the times of a file are trusted; coarse clocks count in seconds."""


class InputMap(Struct):
    """`version`: of the file that this tells of. `marks` as in `Input`, in the byte order of this machine."""

    version: tuple[int, ...]
    byte_order: str
    rows: int
    digest: str
    marks: bytes


def read_input(path: Path, folder: Path | None, distinct: tuple[str, int] | None = None) -> Input:
    """As `scan`, but what an earlier process has found is taken from `folder` while the file is the same. Raises
    DataError."""
    if folder is None:
        return scan(path, distinct)
    kept = folder / f".input-{hashlib.blake2b(str(path.absolute()).encode(), digest_size=8).hexdigest()}.map"
    version = _version(path)
    with contextlib.suppress(OSError, msgspec.MsgspecError):
        input_map = msgspec.msgpack.decode(kept.read_bytes(), type=InputMap)
        if input_map.version == version and input_map.byte_order == sys.byteorder:
            marks = array("Q", input_map.marks)
            return Input(path=path, rows=input_map.rows, digest=input_map.digest, distinct=True, marks=marks)
    source = scan(path, distinct)
    settled = time.time() - max(version[2:]) / 1e9 > _SETTLED
    if source.rows >= MANY and source.distinct and source.marks and settled and version == _version(path):
        _save(InputMap(version, sys.byteorder, source.rows, source.digest, source.marks.tobytes()), kept)
    return source


def _save(input_map: InputMap, path: Path) -> None:
    with contextlib.suppress(StorageError), atomic_write(path) as file:  # the next process looks itself
        file.write(msgspec.msgpack.encode(input_map))


def _version(path: Path) -> tuple[int, ...]:
    """Of the file as it is opened: a network file system asks its server then. Raises DataError."""
    with open_for_reading(path) as file:
        status = os.fstat(file.fileno())
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
