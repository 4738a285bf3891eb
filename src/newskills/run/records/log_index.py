# SPDX-License-Identifier: Apache-2.0
"""What the logs of a unit hold, by row; for many rows kept beside the log, so that a resume need not read all of it."""

from __future__ import annotations

import contextlib
import os
import zlib
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Annotated, Any

import msgspec
from msgspec import Meta, Struct

from newskills.base.records import Outcome
from newskills.run.records.log import (
    KEY_FIELD,
    SETTINGS_FIELD,
    Damage,
    LogReader,
    content_key,
    decode_sound_line,
    log_lines,
)
from newskills.run.records.paths import OutputPaths

ABSENT_OFFSET = -1
NOT_GRADED = -2
MIN_KEPT_ROWS = 200_000
"""Rows from which on the index is kept in a file: reading the log again takes a second."""
_BLOCK_BYTES = 1 << 16
_OWN_OUTCOME = 1 << 63
_LOW = 0xFFFFFFFF
_NEAR_BYTES = 1 << 14
"""Bytes to read for one line among many that lie far apart."""


class LogIndex:
    """What the logs hold, by position: 12 bytes a row, and 8 more where there is a grader (`graded`).

    `offsets` of generation records (`ABSENT_OFFSET`), `sums` (checksum of the line), `grade_at` (offset of the verdict,
    `ABSENT_OFFSET`, or `NOT_GRADED` where the record carries its outcome already).
    `settings`: hashes of the settings that the records were made with, empty where a record has none.
    """

    def __init__(self, rows: int, *, graded: bool = True) -> None:
        self.rows, self.graded = rows, graded
        self.settings: set[str] = set()
        self.clear()

    def clear(self) -> None:
        """Reset the index to the state without any record."""
        self.done = 0
        self.offsets = array("q", [ABSENT_OFFSET]) * self.rows
        self.sums = array("I", bytes(4)) * self.rows
        grade_rows = self.rows if self.graded else 0
        self._grades = array("q", [ABSENT_OFFSET]) * grade_rows
        self.settings.clear()

    def add(self, position: int, offset: int, line: bytes, *, gradable: bool) -> None:
        self.done += self.offsets[position] == ABSENT_OFFSET
        self.offsets[position] = offset
        self.sums[position] = zlib.crc32(line)
        if self._grades:
            self._grades[position] = ABSENT_OFFSET if gradable else NOT_GRADED

    def grade_at(self, position: int) -> int:
        if self._grades:
            return self._grades[position]
        return ABSENT_OFFSET

    def add_grade(self, position: int, offset: int) -> None:
        if self._grades:
            self._grades[position] = offset

    def ungraded_positions(self) -> Iterator[int]:
        return (p for p in range(self.rows) if self.offsets[p] >= 0 and self.grade_at(p) == ABSENT_OFFSET)

    def all_done(self, first: int, last: int) -> bool:
        """Return whether there is a record of each row from `first` to before `last`."""
        return min(self.offsets[first:last], default=0) >= 0

    def load(self, log: Path, position_key: str, kept: IndexFile | None = None) -> list[Damage]:
        """Read the generation log, but for a torn last line; return the lines that are no record of a row.

        What `kept` tells of is not read again, and what is read is added to it.
        """
        decoder = msgspec.json.Decoder(_head_struct(position_key))
        damaged = []
        start = 0
        if kept is not None and (start := kept.load_into(self, log)):
            self.settings.add(kept.settings)
        for offset, line in log_lines(log, start):
            record = decode_sound_line(decoder, line)
            if record is None or record.position >= self.rows:
                damaged.append(Damage(offset, line))
                continue
            gradable = record.outcome is None
            self.add(record.position, offset, line, gradable=gradable)
            if kept is not None:
                kept.add(record.position, offset, self.sums[record.position], gradable=gradable)
            self.settings.add(record.settings)
        return damaged

    def load_grades(self, log: Path, kept: GradesFile | None = None) -> list[Damage]:
        """Read the grades log; pass over verdicts on records that are gone, and those that a sandbox failed.

        Returns what is no verdict. What `kept` tells of is not read again, and what is read is added to it.
        """
        damaged = []
        start = 0 if kept is None else kept.load_into(self, log)
        for offset, line in log_lines(log, start):
            grade = decode_sound_line(_grade_head, line)
            if grade is None:
                damaged.append(Damage(offset, line))
            elif grade.score.cause != "sandbox":
                self._add_known_grade(grade.position, offset, grade.sum)
                if kept is not None:
                    kept.add(grade.position, offset, grade.sum)
        return damaged

    def _add_known_grade(self, position: int, offset: int, checksum: int) -> None:
        if position < self.rows and self.offsets[position] >= 0 and self.sums[position] == checksum:
            self.add_grade(position, offset)

    def add_entries(self, words: array[int], size: int) -> int:
        """Add what an IndexFile tells; return how many entries are of lines before byte `size` of the log.

        Written out, as it is done for millions of records before the first request.
        """
        offsets, sums, grades, rows = self.offsets, self.sums, self._grades, self.rows
        good = new = 0
        for word, at in zip(words[::2], words[1::2], strict=True):
            position, offset = word & _LOW, at & ~_OWN_OUTCOME
            if offset >= size or position >= rows:
                break
            new += offsets[position] < 0
            offsets[position] = offset
            sums[position] = word >> 32
            if grades:
                grades[position] = ABSENT_OFFSET if at == offset else NOT_GRADED
            good += 1
        self.done += new
        return good

    def add_grade_entries(self, words: array[int], size: int) -> int:
        """Add what a GradesFile tells; return how many entries are of lines before byte `size` of the log. Verdicts on
        records that are gone are passed over."""
        offsets, sums, grades, rows = self.offsets, self.sums, self._grades, self.rows
        good = 0
        for word, offset in zip(words[::2], words[1::2], strict=True):
            position = word & _LOW
            if offset >= size or position >= rows:
                break
            if grades and sums[position] == word >> 32 and offsets[position] >= 0:
                grades[position] = offset
            good += 1
        return good

    def clear_grades(self) -> None:
        """Reset all verdicts of the grades log."""
        self._grades = array("q", (min(at, ABSENT_OFFSET) for at in self._grades))


class IndexFile:
    """Where each record of a generation log begins, in the order of the log: 16 bytes a record.

    The log alone decides: what is told of lines that are not there, or of a log with other `settings`, does not count,
    and what the file lacks after a kill is read from the log. It is no harm to lose it.
    """

    magic = b"ns-log1\n"

    def __init__(self, path: Path, settings: str) -> None:
        self.path, self.settings = path, settings
        self._head = self.magic + settings.encode().ljust(8)
        self._file: IO[bytes] | None = None

    def load_into(self, index: LogIndex, log: Path) -> int:
        """Load what the file tells into `index`; return the byte of `log` from which on nothing is known."""
        end, good = self._read(index, log)
        try:
            self._file = self.path.open("r+b" if good else "wb", buffering=_BLOCK_BYTES)
            if good:
                self._file.truncate(good)
                self._file.seek(good)
            else:
                self._file.write(self._head)
        except OSError:
            self.drop()
        return end

    def add(self, position: int, offset: int, checksum: int, *, gradable: bool = True) -> None:
        """Append the entry of a line that is or will be in the log."""
        if self._file is None:
            return
        own_outcome = 0 if gradable else _OWN_OUTCOME
        words = array("Q", [position | checksum << 32, offset | own_outcome])
        try:
            self._file.write(words.tobytes())
        except OSError:
            self.drop()

    def close(self) -> None:
        """Close the file; what is not written yet is read from the log next time."""
        file, self._file = self._file, None
        with contextlib.suppress(OSError):
            if file is not None:
                file.close()

    def drop(self) -> None:
        """Delete the file; the log is read as a whole next time."""
        self.close()
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)

    def _read(self, index: LogIndex, log: Path) -> tuple[int, int]:
        """Read entries into `index`; return (bytes of the log, bytes of this file) that are sound, (0, 0) where
        the last line is not."""
        try:
            size = os.path.getsize(log)
            with self.path.open("rb", buffering=0) as file, LogReader(log, _NEAR_BYTES) as reader:
                if file.read(len(self._head)) != self._head:
                    return 0, 0
                good, last = 0, array("Q")
                while block := file.read(16 * _BLOCK_BYTES):
                    words = array("Q", block[: len(block) // 16 * 16])
                    added = self._add_entries(index, words, size)
                    good += added
                    last = words[2 * added - 2 : 2 * added] or last
                    if 2 * added < len(words):
                        break
                return self._checked(index, reader, last, len(self._head) + 16 * good)
        except OSError:
            return 0, 0

    def _checked(self, index: LogIndex, reader: LogReader, last: Sequence[int], good: int) -> tuple[int, int]:
        if not last:
            return 0, 0
        offset = last[1] & ~_OWN_OUTCOME
        line = reader.line(offset)
        if not line.endswith(b"\n") or not self._is(line, last[0] & _LOW, last[0] >> 32):
            self._forget(index)
            return 0, 0
        return offset + len(line), good

    def _add_entries(self, index: LogIndex, words: array[int], size: int) -> int:
        return index.add_entries(words, size)

    def _is(self, line: bytes, position: int, checksum: int) -> bool:
        return zlib.crc32(line) == checksum

    def _forget(self, index: LogIndex) -> None:
        index.clear()


class GradesFile(IndexFile):
    """The same of a grades log, with the checksums of the records that were graded. The records are known first."""

    magic = b"ns-grd1\n"

    def _add_entries(self, index: LogIndex, words: array[int], size: int) -> int:
        return index.add_grade_entries(words, size)

    def _is(self, line: bytes, position: int, checksum: int) -> bool:
        grade = decode_sound_line(_grade_head, line)
        return grade is not None and (grade.position, grade.sum) == (position, checksum)

    def _forget(self, index: LogIndex) -> None:
        index.clear_grades()


class KeptIndex:
    """The files of both logs of a unit with `settings`."""

    def __init__(self, paths: OutputPaths, settings: str) -> None:
        self.records = IndexFile(paths.index, settings)
        self.grades = GradesFile(paths.grades_index, settings)

    def close(self) -> None:
        self.records.close()
        self.grades.close()

    def drop(self) -> None:
        """Drop both indexes, so that both logs are read as a whole next time."""
        self.records.drop()
        self.grades.drop()


class RecordKeys:
    """What the records of a log were asked, by the place of their lines."""

    def __init__(self, log: Path, position_key: str) -> None:
        self._reader = LogReader(log, _NEAR_BYTES)
        self._decoder = msgspec.json.Decoder(_head_struct(position_key))

    def key(self, offset: int) -> int:
        """Return the `content_key` of the record at `offset`; 0 if unknown."""
        record = decode_sound_line(self._decoder, self._reader.line(offset))
        if record is not None and record.key:
            return content_key(str(record.id), record.key)
        return 0

    def close(self) -> None:
        self._reader.close()


_Position = Annotated[int, Meta(ge=0)]


class _ScoreHead(Struct):
    cause: str | None = None


class _GradeHead(Struct):
    position: _Position
    sum: int
    score: _ScoreHead


_grade_head = msgspec.json.Decoder(_GradeHead)


def _head_struct(position_key: str) -> Any:
    return msgspec.defstruct(
        "Head",
        [
            ("position", _Position),
            ("key", str),
            ("id", str | int),
            ("outcome", Outcome | None, None),
            ("settings", str, ""),
        ],
        rename={"position": position_key, "key": KEY_FIELD, "settings": SETTINGS_FIELD},
    )
