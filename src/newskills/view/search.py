# SPDX-License-Identifier: Apache-2.0
"""A text in the records, in turns: each looks on from where the one before ended, for a moment."""

from __future__ import annotations

import bisect
import time
from collections.abc import Iterator

import msgspec

from newskills.base.errors import ConfigError
from newskills.base.records import Row
from newskills.view.folders import Folders
from newskills.view.index import FileIndex
from newskills.view.library import IndexedBenchmark

TURN_SECONDS = 0.25
"""Seconds that one turn may take, and one block longer."""
BLOCK_BYTES = 8 << 20
MOST_HITS = 2_000
LONGEST_QUERY = 500


def search_records(folders: Folders, indexed: IndexedBenchmark, query: str, file: int, offset: int) -> Row:
    """Search for records, as [file, number], whose line holds `query`; letters of ASCII in either case.

    `next` is where to go on ([file, byte]), or None at the end; `done` and `total` are bytes. Raises ConfigError.
    """
    needles = _needle_forms(query)
    until = time.monotonic() + TURN_SECONDS
    hits: list[list[int]] = []
    at: list[int] | None = None
    for place in range(max(0, file), len(indexed.indexes)):
        index = indexed.indexes[place]
        offsets = list(index.columns("offset")[0])
        start = offset if place == file else 0
        for number, end in _record_hits(folders, index, needles, offsets, start):
            if number is not None and hits[-1:] != [[place, number]]:
                hits.append([place, number])
            if time.monotonic() > until or len(hits) >= MOST_HITS:
                at = [place, end]
                break
        if at is not None:
            break
    sizes = [index.head.size for index in indexed.indexes]
    done = sum(sizes)
    if at is not None:
        done = sum(sizes[: at[0]]) + at[1]
    return {"hits": hits, "next": at, "done": done, "total": sum(sizes)}


def _needle_forms(query: str) -> list[bytes]:
    """Return the forms that the text may have in JSON: as UTF-8, and with escapes for what is not ASCII. Raises
    ConfigError for an empty or too long text."""
    if not query or len(query) > LONGEST_QUERY:
        raise ConfigError(f"A search has 1 to {LONGEST_QUERY} characters.")
    plain = msgspec.json.encode(query.encode("utf-8", "replace").decode())[1:-1].lower()
    escaped = "".join(map(_escape_character, plain.decode())).encode()
    return list(dict.fromkeys([plain, escaped]))


def _escape_character(char: str) -> str:
    if ord(char) < 128:
        return char
    return "".join(f"\\u{unit:04x}" for unit in _utf16_units(char))


def _utf16_units(char: str) -> list[int]:
    data = char.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(data[place : place + 2], "big") for place in range(0, len(data), 2)]


def _record_hits(
    folders: Folders, index: FileIndex, needles: list[bytes], offsets: list[int], start: int
) -> Iterator[tuple[int | None, int]]:
    """Yield (record, byte from which to go on) of each hit, and (None, byte) after each block without one."""
    overlap = max(map(len, needles)) - 1
    with folders.open(index.file.path) as source:
        while start < index.head.size:
            source.seek(start)
            block = source.read(min(BLOCK_BYTES, index.head.size - start)).lower()
            if not block:
                return
            places = sorted({place for needle in needles for place in _line_hits(block, needle)})
            for place in places:
                number = bisect.bisect_right(offsets, start + place) - 1
                if number >= 0:
                    yield number, start + place + 1
            if start + len(block) < index.head.size:
                start += max(1, len(block) - overlap)
            else:
                start += len(block)
            yield None, start


def _line_hits(block: bytes, needle: bytes) -> Iterator[int]:
    """Yield the hits, at most one for each line of the block."""
    place = block.find(needle)
    while place >= 0:
        yield place
        end = block.find(b"\n", place)
        if end < 0:
            return
        place = block.find(needle, end)
