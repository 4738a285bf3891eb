# SPDX-License-Identifier: Apache-2.0
"""A chunk of an input file → rows that are wanted, with the fields that are needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from newskills.base.errors import DataError, suggest
from newskills.base.judgement import parse_judgement
from newskills.base.records import Row
from newskills.base.store import decode_row, open_for_reading
from newskills.train.data.filters.contamination import CHECKED
from newskills.train.data.job import BuildJob, InputFile
from newskills.train.data.published import Schema, resembling_schema, schema_of
from newskills.train.data.row_fields import TOLD, lost_field

EMPTY, UNLABELED, CORRECT, INCORRECT, UNFIT = (
    "empty rows",
    "rows without a verdict",
    "correct solutions",
    "wrong solutions",
    "rows that the data set marks as not for training",
)
"""Why a row is left out before any filter looks at it."""


class Chunk(Struct, frozen=True, kw_only=True):
    """Lines of file `file` that begin in the bytes from `start` up to `end`."""

    number: int
    file: int
    start: int
    end: int


class SourceLine(NamedTuple):
    """A row and its byte offset in the file."""

    offset: int
    row: Row


class ChunkReader:
    """Reads chunks; `left_out` counts by reason, `seen` rows in all."""

    def __init__(self, job: BuildJob, needed: frozenset[str]) -> None:
        """Create the reader; `needed`: fields that the prompt asks for."""
        self._config = job.config
        self._inputs = job.inputs
        config = job.config
        own = {config.input_key, CHECKED}
        if config.output_key:
            own.add(config.output_key)
        self._told = {name for name in (*TOLD, "input") if name not in own | needed}
        self._kept = None if job.recipe.kept is None else job.recipe.kept | own | needed
        self._decode = msgspec.json.Decoder(dict[str, Any]).decode
        self._schemas = {file.schema: schema_of(file.schema) for file in job.inputs if file.schema}
        self._labelled = config.output_key is not None and not (
            config.add_correct and config.add_incorrect and config.add_unlabeled
        )
        self.left_out: Counter[str] = Counter()
        self.seen = 0

    def rows(self, chunk: Chunk) -> Iterator[SourceLine]:
        """Yield the selected rows, checked to have the texts. Raises DataError naming file and line."""
        file = self._inputs[chunk.file]
        labelled = file.graded and self._labelled
        named = file.graded and not self._config.exclude_optional_keys
        schema = self._schemas.get(file.schema)
        for offset, line in lines_of(Path(file.path), chunk):
            if not line.strip():
                continue
            self.seen += 1
            try:
                row = self._decode(line)
            except RecursionError as error:
                raise DataError(f"{_line_place(file, offset)}: invalid JSON (nested too deeply).") from error
            except (msgspec.MsgspecError, UnicodeDecodeError):
                row = decode_row(line, Path(file.shown), line_number(Path(file.path), offset))
            mapped = self._map_row(row, schema, file, offset)
            if mapped is None:
                continue
            row = mapped
            if labelled and (reason := self._drop_reason(row)) is not None:
                self.left_out[reason] += 1
                continue
            self._check(row, file, offset)
            if self._kept is not None:
                row = {key: value for key, value in row.items() if key in self._kept}
            if named:
                row["filename"] = file.shown
            yield SourceLine(offset, row)

    def _map_row(self, row: Row, schema: Schema | None, file: InputFile, offset: int) -> Row | None:
        if not row:
            self.left_out[EMPTY] += 1
            return None
        if schema is None:
            return row
        mapped = schema.map_row(row, lambda: _line_place(file, offset))
        if mapped is None:
            self.left_out[UNFIT] += 1
        return mapped

    def _drop_reason(self, row: Row) -> str | None:
        verdict = self._verdict(row)
        if verdict is None:
            if self._config.add_unlabeled:
                return None
            return UNLABELED
        if verdict:
            if self._config.add_correct:
                return None
            return CORRECT
        if self._config.add_incorrect:
            return None
        return INCORRECT

    def _verdict(self, row: Row) -> bool | None:
        """Return the verdict of a row; None where nobody has decided, as an instrument that failed says nothing
        about the solution."""
        if self._config.use_judgement:
            return parse_judgement(row.get("judgement"))
        return recorded_verdict(row)

    def _check(self, row: Row, file: InputFile, offset: int) -> None:
        config = self._config
        if type(row.get(config.input_key)) is str and (
            config.output_key is None or type(row.get(config.output_key)) is str
        ):
            self._check_lost(row, file, offset)
            return
        option, wrong = "input_key", config.input_key
        if type(row.get(wrong)) is str:
            option, wrong = "output_key", str(config.output_key)
        keys, end, state = sorted(row), ".", "is missing"
        if wrong in row:
            state = f"is not text but {type(row[wrong]).__name__}"
        published, close = resembling_schema(row), suggest(wrong, keys)
        hint = f"Name the right field: ++{option}=FIELD."
        if published:
            hint = f"These are the fields of {published}: add --dataset={published}."
        elif wrong not in row and "did you mean" in close:
            end = close
        raise DataError(
            f"{_line_place(file, offset)}: the field '{wrong}' {state}; the row has {', '.join(keys)}{end}",
            hint=hint,
        )

    def _check_lost(self, row: Row, file: InputFile, offset: int) -> None:
        """Raise DataError for what a model was told beside the problem, and would not be told in training."""
        if file.schema or self._told.isdisjoint(row):
            return
        names = [name for name in self._told if name != "input" or row.get("instruction")]
        shown = row[self._config.input_key] + str(row.get("prompt_messages") or "")
        name = lost_field(row, names, shown)
        if name is not None:
            raise DataError(
                f"{_line_place(file, offset)}: the field `{name}` would be lost.",
                hint="Use it in the prompt (++prompt_config=FILE), or remove the field.",
            )


def recorded_verdict(row: Row) -> bool | None:
    """Return whether the grader judged the reply of a record correct; None where nobody has decided."""
    if row.get("outcome") == "unscored":
        return None
    label = row.get("symbolic_correct")
    if not isinstance(label, bool) and row.get("outcome") in ("correct", "wrong", "no_answer"):
        return bool(row["outcome"] == "correct")  # a share, or nothing: the outcome knows the threshold
    if label is None:
        return None
    return bool(label)


def _line_place(file: InputFile, offset: int) -> str:
    return f"{file.shown}, line {line_number(Path(file.path), offset)}"


def lines_of(path: Path, chunk: Chunk) -> Iterator[tuple[int, bytes]]:
    """Yield (offset, line) of lines that begin inside the chunk. Raises DataError."""
    with open_for_reading(path) as file:
        at = chunk.start
        if at:
            file.seek(at - 1)
            at += len(file.readline()) - 1
        while at < chunk.end:
            line = file.readline()
            if not line:
                return
            yield at, line
            at += len(line)


def line_number(path: Path, offset: int) -> int:
    """Return the 1-based number of the line at `offset`; reads all that stands before."""
    number, left = 1, offset
    with open_for_reading(path) as file:
        while left > 0 and (block := file.read(min(left, 1 << 20))):
            number += block.count(b"\n")
            left -= len(block)
    return number


def offset_after(path: Path, lines: int) -> int:
    """Return the byte offset of the line that follows the first `lines`."""
    at = 0
    if lines:
        with open_for_reading(path) as file:
            for _ in range(lines):
                at += len(file.readline())
    return at
