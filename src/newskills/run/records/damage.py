# SPDX-License-Identifier: Apache-2.0
"""Checksums of what is on disk: a seal at the end of each line of a log, and sums of the blocks of a finished file.

A disk, a copy or a program may change bytes and leave sizes as they are. What does not fit its checksum is never
believed: its rows are asked again.
"""

from __future__ import annotations

import functools
import zlib
from itertools import islice
from pathlib import Path

from newskills.base.store import open_for_reading

_SEAL = b',"_async_sum":"'
_SEAL_LENGTH = len(_SEAL) + len(b'00000000"}\n')
SEAL_FIELD = "_async_sum"
_MAX_BLOCKS = 512


def seal_line(line: bytes) -> bytes:
    """Return a line that holds a JSON object with the checksum of its bytes as last field (CRC-32, 8 hex digits)."""
    body = line[:-2]
    return b'%b%b%08x"}\n' % (body, _SEAL, zlib.crc32(body))


def is_broken(line: bytes) -> bool:
    """Return whether a sealed line has changed; one without a seal, of an earlier version, has not."""
    if line[-_SEAL_LENGTH : -_SEAL_LENGTH + len(_SEAL)] != _SEAL:
        return False
    return line[-11:] != b'%08x"}\n' % zlib.crc32(line[:-_SEAL_LENGTH])


def block_sums(path: Path, rows: int) -> list[tuple[int, int]]:
    """Return (bytes, CRC-32) of each block of a finished file of `rows` lines: whole lines, 512 blocks at most."""
    lines_of_a_block = max(1, -(-rows // _MAX_BLOCKS))
    with open_for_reading(path) as file:
        blocks = iter(lambda: b"".join(islice(file, lines_of_a_block)), b"")
        return [(len(block), zlib.crc32(block)) for block in blocks]


def damaged_blocks(path: Path, sums: list[tuple[int, int]], written: int) -> list[range]:
    """Return the byte ranges of `path` that differ from `sums`; none where it was last written at `written`.

    `written` is the modification time in nanoseconds. Raises DataError for a file that cannot be read.
    """
    changed = path.stat().st_mtime_ns
    if changed == written:
        return []
    return _damaged_at(path, changed, tuple(sums))


@functools.lru_cache(maxsize=256)
def _damaged_at(path: Path, changed: int, sums: tuple[tuple[int, int], ...]) -> list[range]:
    damaged, offset = [], 0
    with open_for_reading(path) as file:
        for length, checksum in sums:
            if zlib.crc32(file.read(length)) != checksum:
                damaged.append(range(offset, offset + length))
            offset += length
    return damaged


def overlaps_range(ranges: list[range], offset: int, length: int) -> bool:
    """Return whether `length` bytes from `offset` on touch one of `ranges`."""
    return any(part.start < offset + length and offset < part.stop for part in ranges)
