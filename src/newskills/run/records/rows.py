# SPDX-License-Identifier: Apache-2.0
"""Input rows as a stream, each with a stable identity. Memory does not grow with the size of a row."""

from __future__ import annotations

import hashlib
import itertools
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, MutableSequence, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple

import msgspec
from msgspec import Struct

from newskills.base.errors import DataError
from newskills.base.reading.row_files import Place, is_plain, place_in, row_lines
from newskills.base.records import Row, Sample
from newskills.base.store import DIGEST_SIZE, decode_row, file_digest, open_for_reading, read_rows

_canonical = msgspec.json.Encoder(order="deterministic")


MARK_ROWS = 256
"""Rows between two places of the input that are known."""
BUCKET_COUNT = 256


class RowLine(NamedTuple):
    """A row as a line of JSON: its `place` in the file, `at` of the row from 0, `position` in its chunk."""

    line: bytes
    place: Place
    at: int
    position: int


class Input(Struct, kw_only=True):
    """What one pass over an input file found.

    rows      number of rows
    digest    hash of the file's bytes
    distinct  no two rows have the same identity
    shared    hashes of own ids that several rows carry; such rows are known by their content instead
    repeats   by position: how many earlier rows have the same identity (absent when none has)
    version   of the file, as its file system tells it; empty = not known, or too new to tell
    marks     of each `MARK_ROWS`th row: byte at which its line begins, number of the line; empty = not known, or the
              file has no lines to seek
    """

    path: Path
    rows: int
    digest: str
    distinct: bool = False
    shared: frozenset[int] = frozenset()
    repeats: array[int] | None = None
    version: tuple[int, ...] = ()
    marks: array[int] = msgspec.field(default_factory=partial(array, "Q"))

    def samples(self, bounds: range) -> Iterator[Sample]:
        """Return rows `bounds` of the file as samples, `position` counted from 0 at the first of them."""
        return map(self.sample, self.lines(bounds))

    def lines(
        self, bounds: range, order: Sequence[int] | None = None, parts: Iterable[range] | None = None
    ) -> Iterator[RowLine]:
        """Yield the rows `bounds` of the file, not decoded yet: a row that is passed over costs next to nothing.
        `order`: positions, each once; `parts`: ranges of positions, instead of all of them."""
        if order is not None:
            yield from self._lines_in_order(bounds, order)
            return
        with open_for_reading(self.path, 1 << 16 if parts is not None else 1 << 20) as file:
            if not is_plain(file, self.path):
                yield from self._between(row_lines(file, self.path), bounds, 0, bounds.start)
                return
            for part in (range(len(bounds)),) if parts is None else parts:
                yield from self._lines_from(file, bounds.start, part)

    def _lines_from(self, file: IO[bytes], first: int, part: range) -> Iterator[RowLine]:
        start, stop = first + part.start, first + part.stop
        mark = start // MARK_ROWS if 2 * (start // MARK_ROWS) < len(self.marks) else 0
        offset, number = self.marks[2 * mark : 2 * mark + 2] if self.marks else (0, 1)
        file.seek(offset)
        yield from self._between(enumerate(file, number), range(start, stop), mark * MARK_ROWS, first)

    def _between(
        self, lines: Iterable[tuple[Place, bytes]], wanted: range, at: int, first: int
    ) -> Iterator[RowLine]:
        """Yield the rows `wanted` of `lines`, which begin with row `at`; positions count from row `first`."""
        for place, line in lines:
            if not line.isspace():
                if at >= wanted.stop:
                    return
                if at >= wanted.start:
                    yield RowLine(line, place, at, at - first)
                at += 1

    def _lines_in_order(self, bounds: range, order: Sequence[int]) -> Iterator[RowLine]:
        """Yield lines in the given order; rows that cannot be sought in their file are first written to a
        temporary one."""
        offsets = array("q")
        offset = 0
        with ExitStack() as stack:
            source: IO[bytes] = stack.enter_context(open_for_reading(self.path))
            lines = row_lines(source, self.path)
            plain = is_plain(source, self.path)
            places: MutableSequence[Any] = array("q") if plain else []
            if not plain:
                source = stack.enter_context(TemporaryFile())
            for place, line in lines:
                if not line.isspace():
                    offsets.append(offset)
                    places.append(place)
                offset += len(line) if plain else source.write(line.rstrip() + b"\n")
            for position in order:
                at = bounds.start + position
                source.seek(offsets[at])
                yield RowLine(source.readline(), places[at], at, position)

    def sample(self, row_line: RowLine) -> Sample:
        """Return a row of the file as a sample. Raises DataError."""
        sample = self._sample(decode_row(row_line.line, self.path, row_line.place), row_line.at, row_line.position)
        sample.line = row_line.place
        return sample

    def with_location(self, sample: Sample, message: str) -> str:
        """Prefix `message` with the file and line of the row, which a person can open."""
        return f"{place_in(self.path, sample.line)}: {message}"

    def _sample(self, row: Row, at: int, position: int) -> Sample:
        own = row.get("id")
        if not _is_id(own):
            identity = content_id(row)
        elif self.shared and _identity_number(str(own)) in self.shared:
            identity = content_id(row)
            row = {**row, "original_id": own}
        else:
            identity = str(own)
        if self.repeats is not None and self.repeats[at]:
            identity = f"{identity}-{self.repeats[at] + 1}"
        return Sample(id=identity, row=row, position=position)


def content_id(row: Row) -> str:
    """Return 16 hex digits of a hash of the row's content; order of keys and blanks do not matter."""
    return hashlib.blake2b(_canonical.encode(row), digest_size=8).hexdigest()


def scan_rows(path: Path, distinct: tuple[str, int] | None = None) -> Input:
    """Scan `path` in one pass. Raises DataError: missing, empty, invalid JSON (with the line).

    `distinct`: digest and number of rows of a file that an earlier process found to be distinct; where it is this one,
    no row is decoded.
    """
    if distinct is not None and file_digest(path) == distinct[0]:
        return Input(path=path, rows=distinct[1], digest=distinct[0], distinct=True)
    digest = hashlib.blake2b(digest_size=DIGEST_SIZE)
    identities = [array("Q") for _ in range(BUCKET_COUNT)]
    marks = array("Q")
    rows = offset = 0
    with open_for_reading(path) as file:
        plain = is_plain(file, path)
        for place, line in row_lines(file, path):
            if plain:
                digest.update(line)
            if line.strip():
                if plain and rows % MARK_ROWS == 0:
                    marks.extend((offset, int(place)))
                number = _identity_number(_row_identity(decode_row(line, path, place)))
                identities[number % BUCKET_COUNT].append(number)
                rows += 1
            offset += len(line)
    if not rows:
        raise DataError(f"{path} is empty: there are no rows to generate from.")
    shared = _duplicate_numbers(identities)
    file_hash = digest.hexdigest() if plain else file_digest(path)
    input_file = Input(path=path, rows=rows, digest=file_hash, distinct=not shared, marks=marks)
    if not shared:
        return input_file
    repeats = array("I", bytes(4 * rows))
    seen: Counter[int] = Counter()
    own: set[int] = set()
    for at, row in enumerate(read_rows(path)):
        if (number := _identity_number(_row_identity(row))) in shared:
            own.update({number} if _is_id(row.get("id")) else ())
            number = _identity_number(content_id(row))
            repeats[at] = seen[number]
            seen[number] += 1
    input_file.shared = frozenset(own)
    input_file.repeats = repeats if any(repeats) else None
    return input_file


def chunk_bounds(rows: int, num_chunks: int | None, chunk_id: int | None, max_samples: int) -> range:
    """Return the rows of a chunk: contiguous, the first `rows mod num_chunks` chunks get one more; then
    `max_samples`.

    >>> [bounds(10, 3, k, -1) for k in range(3)]
    [range(0, 4), range(4, 7), range(7, 10)]
    """
    start, stop = 0, rows
    if num_chunks is not None and chunk_id is not None:
        size, more = divmod(rows, num_chunks)
        start = chunk_id * size + min(chunk_id, more)
        stop = start + size + (chunk_id < more)
    if max_samples >= 0:
        stop = min(stop, start + max_samples)
    return range(start, stop)


def _is_id(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool) and value != ""


def _row_identity(row: Row) -> str:
    own = row.get("id")
    if _is_id(own):
        return str(own)
    return content_id(row)


def _identity_number(identity: str) -> int:
    return int.from_bytes(hashlib.blake2b(identity.encode("utf-8", "replace"), digest_size=8).digest(), "big")


def _duplicate_numbers(identities: Sequence[array[int]]) -> set[int]:
    """Return numbers that occur twice, bucket by bucket: sorting all at once would take ten times their memory."""
    pairs = chain.from_iterable(itertools.pairwise(sorted(bucket)) for bucket in identities)
    return {a for a, b in pairs if a == b}
