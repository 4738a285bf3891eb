# SPDX-License-Identifier: Apache-2.0
"""Checksums of what is on disk: a seal at the end of each line of a log, and sums of the blocks of a finished file.

A disk, a copy or a program may change bytes and leave sizes as they are. What does not fit its checksum is never
believed: its rows are asked again.
"""

from __future__ import annotations

import functools
import zlib
from pathlib import Path

from newskills.base.store import open_for_reading

_SEAL = b',"_async_sum":"'
_SEAL_LENGTH = len(_SEAL) + len(b'00000000"}\n')
SEAL_FIELD = "_async_sum"
_MAX_BLOCKS = 256
_MIN_BLOCK_BYTES = 4096


def seal(line: bytes) -> bytes:
    """Return a line that holds a JSON object with the checksum of its bytes as last field (CRC-32, 8 hex digits)."""
    body = line[:-2]
    return b'%b%b%08x"}\n' % (body, _SEAL, zlib.crc32(body))


def is_broken(line: bytes) -> bool:
    """Return whether a sealed line has changed; one without a seal, of an earlier version, has not."""
    if line[-_SEAL_LENGTH : -_SEAL_LENGTH + len(_SEAL)] != _SEAL:
        return False
    return line[-11:] != b'%08x"}\n' % zlib.crc32(line[:-_SEAL_LENGTH])


def block_size(size: int) -> int:
    """Return the bytes of a block of a file of `size` bytes: at most 256 blocks, of 4 KiB at least."""
    return max(_MIN_BLOCK_BYTES, -(-size // _MAX_BLOCKS))


def block_sums(path: Path) -> list[int]:
    """Return the CRC-32 of each block of a file."""
    length = block_size(path.stat().st_size)
    with open_for_reading(path, length) as file:
        return [zlib.crc32(block) for block in iter(lambda: file.read(length), b"")]


def damaged_blocks(path: Path, sums: list[int], written: int) -> list[range]:
    """Return the byte ranges of `path` that differ from `sums`; none where it was last written at `written`.

    `written` is the modification time in nanoseconds. Raises DataError for a file that cannot be read.
    """
    stat = path.stat()
    if stat.st_mtime_ns == written:
        return []
    length = block_size(stat.st_size)
    return [
        range(number * length, (number + 1) * length)
        for number, (now, before) in enumerate(
            zip(_sums_at(path, stat.st_mtime_ns, stat.st_size), sums, strict=False)
        )
        if now != before
    ]


@functools.lru_cache(maxsize=256)
def _sums_at(path: Path, changed: int, size: int) -> tuple[int, ...]:
    return tuple(block_sums(path))


def overlaps(ranges: list[range], offset: int, length: int) -> bool:
    """Return whether `length` bytes from `offset` on touch one of `ranges`."""
    return any(part.start < offset + length and offset < part.stop for part in ranges)
