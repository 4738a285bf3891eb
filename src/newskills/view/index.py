# SPDX-License-Identifier: Apache-2.0
"""An index of a file of records: one linear pass, kept beside the records, continued where the file has grown.

`.view/<file>.rows` holds 40 bytes for each record (view.rows); `.view/<file>.json` says of which file, up to which
byte, and names what the rows number. The latter is replaced last and counts: rows beyond it are written again. Where
the folder cannot be written, both lie in the user's cache. One process at a time writes; others read what it has done.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple

import msgspec
from msgspec import Struct

from newskills.base.errors import DataError, LockedError, StorageError, storage_error
from newskills.base.store import LONGEST_LINE, hold_lock, write_json
from newskills.view.discovery import ASYNC_SUFFIX, OutputFile
from newskills.view.folders import KEPT_FOLDER, Folders
from newskills.view.rows import (
    DAMAGED_CODE,
    NO_TOKENS,
    OUTCOME_NAMES,
    ROW_STRUCT,
    Head,
    column_values,
    decoder,
    outcome_of,
    sample_identity,
    subset_of,
    tokens_of,
)

FORMAT_VERSION = 1
SAVE_EVERY = 10_000
"""Records between two times that the index is brought to disk, and is there for readers."""
_ENDING_BYTES = 4096
_READ_BYTES = 1 << 20


class IndexHead(Struct, kw_only=True):
    """What a kept index is about.

    file      inode of the records; another one means another file
    changed   time of their last change when the index was brought up to date, in ns
    size      bytes that are indexed; `ending`: hash of the last of them
    damaged   lines that are no record, or are too long to be read
    """

    format: int = FORMAT_VERSION
    file: int = 0
    changed: int = 0
    size: int = 0
    ending: str = ""
    rows: int = 0
    damaged: int = 0
    subsets: list[str] = msgspec.field(default_factory=lambda: [""])
    causes: list[str] = msgspec.field(default_factory=lambda: [""])
    finishes: list[str] = msgspec.field(default_factory=lambda: [""])


class Line(NamedTuple):
    """`text` None: longer than `LONGEST_LINE`, and known by its place alone. `ended`: with a newline."""

    offset: int
    length: int
    text: bytes | None
    ended: bool


class _Score(Struct):
    outcome: str = ""
    cause: str | None = None


class _Grade(Struct):
    position: int
    score: _Score


# Made once: two threads must not be the first to decode a struct at the same time.
_heads = msgspec.json.Decoder(IndexHead)
_verdicts = msgspec.json.Decoder(_Grade)


class FileIndex:
    """The index of one output file. `update` brings it up to date; everything else may be called meanwhile."""

    def __init__(self, file: OutputFile, folders: Folders, cache: Path) -> None:
        self.file = file
        self.head = IndexHead()
        self.target = file.size
        self._folders, self._cache = folders, cache
        self._kept = file.path.parent / KEPT_FOLDER
        self._busy = threading.Lock()
        self._grades: dict[int, tuple[int, str, int]] = {}
        self._graded = 0
        self._load()

    @property
    def rows(self) -> int:
        """Records that are indexed."""
        return self.head.rows

    @property
    def progress(self) -> float:
        """Share of the file that is indexed, 0–1."""
        if self.target <= 0:
            return 1.0
        return min(1.0, self.head.size / self.target)

    def update(self) -> None:
        """Index what has come since. Raises DataError where the file cannot be read, StorageError."""
        with self._busy, self._folders.open(self.file.path) as source:
            self.target = os.fstat(source.fileno()).st_size
            try:
                self._update(source)
            except StorageError:
                own = hashlib.blake2b(bytes(self.file.path.parent), digest_size=12).hexdigest()
                if self._kept == self._cache / own:
                    raise
                self._kept = self._cache / own
                self._update(source)
            if self.file.unfinished:
                self._read_grades()

    def columns(self, *names: str) -> list[array[int]]:
        """Return the columns of all records that are indexed; verdicts of a run at work come from its log of
        verdicts."""
        rows = self._rows(0, self.head.rows)
        columns = [column_values(rows, name) for name in names]
        if self._grades and "outcome" in names:
            outcomes = columns[names.index("outcome")]
            for number, position in enumerate(column_values(rows, "position")):
                if position in self._grades:
                    outcomes[number] = self._grades[position][0]
        return columns

    def line(self, number: int, most: int) -> tuple[bytes, int]:
        """Read (at most the first `most` bytes of a record's line, bytes that the line has). Raises DataError."""
        if not 0 <= number < self.head.rows:
            name = self.file.path.name
            raise DataError(f"{name} has {self.head.rows:,} records; there is none with number {number}.")
        offset, length, *_ = ROW_STRUCT.unpack(self._rows(number, 1))
        with self._folders.open(self.file.path) as source:
            source.seek(offset)
            return source.read(min(length, most)), length

    def lines(self, numbers: Sequence[int], most: int) -> Iterator[bytes | None]:
        """Yield the lines of these records, the file opened once; None for one longer than `most` bytes. Raises
        DataError."""
        offsets, lengths = self.columns("offset", "length")
        with self._folders.open(self.file.path) as source:
            for number in numbers:
                if lengths[number] > most:
                    yield None
                    continue
                source.seek(offsets[number])
                yield source.read(lengths[number])

    def verdict(self, number: int) -> bytes | None:
        """Return the line of the log of verdicts that is about a record of a run at work; None where there is none."""
        position = ROW_STRUCT.unpack(self._rows(number, 1))[4]
        if position not in self._grades:
            return None
        with self._folders.open(_grades_of(self.file)) as source:
            source.seek(self._grades[position][2])
            return source.readline(LONGEST_LINE)

    def _rows(self, first: int, count: int) -> bytes:
        try:
            with self._path(".rows").open("rb") as rows:
                rows.seek(first * ROW_STRUCT.size)
                return rows.read(count * ROW_STRUCT.size)
        except FileNotFoundError:
            return b""

    def _path(self, suffix: str) -> Path:
        return self._kept / f"{self.file.path.name}{suffix}"

    def _load(self) -> None:
        """Load the index that is kept, if it is of this file and can be read."""
        with contextlib.suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
            head = _heads.decode(self._path(".json").read_bytes())
            status = self.file.path.stat()
            if (
                head.format == FORMAT_VERSION
                and head.file == status.st_ino
                and head.size <= status.st_size
                and self._path(".rows").stat().st_size >= head.rows * ROW_STRUCT.size
            ):
                self.head = head

    def _update(self, source: IO[bytes]) -> None:
        try:
            with hold_lock(self._path(".lock"), f"The index of {self.file.path.name}"):
                self._load()
                self._bring_up_to_date(source)
        except LockedError:
            self._load()

    def _bring_up_to_date(self, source: IO[bytes]) -> None:
        status = os.fstat(source.fileno())
        if not self._continues(source, status):
            self.head = IndexHead(file=status.st_ino)
            self._path(f"{ASYNC_SUFFIX}.rows").unlink(missing_ok=True)
            self._path(f"{ASYNC_SUFFIX}.json").unlink(missing_ok=True)
        if status.st_mtime_ns != self.head.changed:
            try:
                self._read_on(source)
            except OSError as error:
                raise storage_error(error, self._path(".rows")) from error
            self.head.changed = status.st_mtime_ns
            self._save(source)

    def _continues(self, source: IO[bytes], status: os.stat_result) -> bool:
        """Return whether the file still begins with what was indexed."""
        head = self.head
        if head.file != status.st_ino or status.st_size < head.size:
            return False
        if status.st_size == head.size:
            return status.st_mtime_ns == head.changed
        return not head.size or _ending_digest(source, head.size) == head.ending

    def _save(self, source: IO[bytes]) -> None:
        self.head.ending = _ending_digest(source, self.head.size)
        write_json(self._path(".json"), self.head)

    def _read_on(self, source: IO[bytes]) -> None:
        """Index the lines behind those that are indexed. A last line that is cut off waits for the rest of it."""
        with self._path(".rows").open("ab") as rows, self._folders.open(self.file.path) as beside:
            rows.truncate(self.head.rows * ROW_STRUCT.size)
            packed, upto, number = [], self.head.size, self.head.rows
            for line in _index_lines(source, self.head.size):
                if line.text is None or not line.text.isspace():
                    row = self._row(number, line)
                    if row is None and not line.ended:
                        break
                    packed.append(row or self._damage(number, line))
                    number += 1
                upto = line.offset + line.length
                if len(packed) >= SAVE_EVERY:
                    self._publish(rows, packed, upto)
                    self._save(beside)
                    packed = []
            self._publish(rows, packed, upto)

    def _publish(self, rows: IO[bytes], packed: list[bytes], upto: int) -> None:
        rows.write(b"".join(packed))
        rows.flush()
        self.head.size = upto
        self.head.rows += len(packed)

    def _row(self, number: int, line: Line) -> bytes | None:
        """Pack a line as a row; None for what is no record."""
        if line.text is None:
            return None
        try:
            head: Head = decoder.decode(line.text)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None
        has_position = isinstance(head.position, int) and 0 <= head.position < NO_TOKENS
        position = head.position if has_position else number
        return ROW_STRUCT.pack(
            line.offset,
            line.length,
            sample_identity(head.id, position),
            tokens_of(head.num_generated_tokens),
            position,
            _name_number(self.head.subsets, subset_of(head.subset_for_metrics), 0xFFFF),
            outcome_of(head),
            _name_number(self.head.causes, str(head.outcome_cause or "")[:40], 0xFF),
            _name_number(self.head.finishes, str(head.finish_reason or "")[:40], 0xFF),
        )

    def _damage(self, number: int, line: Line) -> bytes:
        self.head.damaged += 1
        return ROW_STRUCT.pack(
            line.offset, line.length, sample_identity(None, number), NO_TOKENS, number, 0, DAMAGED_CODE, 0, 0
        )

    def _read_grades(self) -> None:
        """Read verdicts of a run at work, which stand in a log of their own; a torn last line is read when it is
        whole."""
        path = _grades_of(self.file)
        if not path.is_file():
            return
        with self._folders.open(path) as source:
            for line in _index_lines(source, self._graded):
                if not line.ended:
                    break
                self._graded = line.offset + line.length
                with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
                    grade = _verdicts.decode(line.text or b"")
                    if grade.score.outcome in OUTCOME_NAMES:
                        outcome = OUTCOME_NAMES.index(grade.score.outcome)
                        self._grades[grade.position] = (outcome, grade.score.cause or "", line.offset)


def _grades_of(file: OutputFile) -> Path:
    return file.output.with_name(f"{file.output.name}-grades")


def _ending_digest(source: IO[bytes], size: int) -> str:
    start = max(0, size - _ENDING_BYTES)
    source.seek(start)
    return hashlib.blake2b(source.read(size - start), digest_size=8).hexdigest()


def _index_lines(source: IO[bytes], start: int) -> Iterator[Line]:
    """Yield the lines from byte `start` on; of one that is too long nothing is held."""
    source.seek(start)
    offset = start
    while text := source.readline(LONGEST_LINE):
        length, ended = len(text), text.endswith(b"\n")
        if not ended and length == LONGEST_LINE:
            while piece := source.readline(_READ_BYTES):
                length += len(piece)
                if ended := piece.endswith(b"\n"):
                    break
            yield Line(offset, length, None, True)
        else:
            yield Line(offset, length, text, ended)
        offset += length


def _name_number(table: list[str], name: str, most: int) -> int:
    """Return the name's number in the table, which grows; 0, no name, where it is full."""
    try:
        return table.index(name)
    except ValueError:
        if len(table) > most:
            return 0
        table.append(name)
        return len(table) - 1
