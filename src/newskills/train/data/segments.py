# SPDX-License-Identifier: Apache-2.0
"""A file of byte segments, one for each of `count` buckets: a table of offsets, then the segments.

It appears whole or not at all; the content of each bucket depends on what was put into it alone.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path

from newskills.base.errors import storage_error
from newskills.base.replacing import replacing_file


def write_segments(path: Path, buckets: Sequence[Sequence[bytes]]) -> None:
    """Write a file with a segment for each bucket. Raises StorageError."""
    sizes = [sum(map(len, pieces)) for pieces in buckets]
    head = struct.Struct(f"<{len(buckets) + 1}Q")
    offsets = list(accumulate(sizes, initial=head.size))
    try:
        with replacing_file(path, durable=False) as file:
            file.write(head.pack(*offsets))
            for pieces in buckets:
                file.writelines(pieces)
    except OSError as error:
        raise storage_error(error, path) from error


def read_bucket(paths: Iterable[Path], bucket: int) -> bytes:
    """Return the segments of `bucket` of all `paths`, one after the other."""
    return b"".join(_read_segment(path, bucket) for path in paths)


def _read_segment(path: Path, bucket: int) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        start, end = struct.unpack("<2Q", os.pread(fd, 16, 8 * bucket))
        pieces = []
        while start < end:
            piece = os.pread(fd, end - start, start)
            if not piece:
                raise OSError(f"{path} is shorter than when it was written")
            pieces.append(piece)
            start += len(piece)
        return b"".join(pieces)
    finally:
        os.close(fd)
