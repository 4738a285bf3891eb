# SPDX-License-Identifier: Apache-2.0
"""Output files → problems with all their samples, in the order of the files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, TypedDict

import msgspec

from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.base.store import decode_row, encode_line, open_for_reading
from newskills.base.type_errors import type_fault
from newskills.run.reporting.results import file_parts

Decoder = msgspec.json.Decoder[Row]
Key = tuple[str, int]


def read_problems(files: Sequence[Path], fields: Mapping[str, Any]) -> Iterator[list[Row]]:
    """Yield the samples of one problem, one of each file, with only the keys of `fields`.

    Files belong together by `id` where all have it, else by line. They are read side by side as long as their ids
    line up; from the first difference on the rest is held in memory. Raises DataError: a line that is no JSON
    object or has a field of another type (with file and line), or a problem that is not in all files (named).
    """
    decoder = decoder_of({"id": Any, **fields})
    if len(files) == 1:
        yield from ([row] for row in _prediction_rows(files[0], decoder))
        return
    streams = [_prediction_rows(file, decoder) for file in files]
    by_line: bool | None = None
    for number, group in enumerate(zip_longest(*streams), 1):
        if by_line is None:
            by_line = any(row is None or "id" not in row for row in group)
        if None in group and by_line:
            raise _incomplete_error(
                f"in line {number}", [f for f, row in zip(files, group, strict=True) if row is None]
            )
        if by_line or _is_aligned(group):
            yield list(group)
        else:
            rest = [chain([row] if row else [], stream) for row, stream in zip(group, streams, strict=True)]
            yield from _join_by_id(files, rest)


def decoder_of(fields: Mapping[str, Any]) -> Decoder:
    """Return a decoder that skips all other keys; a missing key stays missing."""
    row = TypedDict("row", dict(fields), total=False)  # type: ignore[misc] # noqa: UP013 - known at run time only
    return msgspec.json.Decoder(row)


def _is_aligned(group: Sequence[Row | None]) -> bool:
    first = group[0]
    return first is not None and all(row is not None and row.get("id") == first.get("id") for row in group)


def _join_by_id(files: Sequence[Path], rows: Sequence[Iterator[Row]]) -> Iterator[list[Row]]:
    records_by_id = [_by_id(rest) for rest in rows]
    for key in dict.fromkeys(chain.from_iterable(records_by_id)):
        lacking = [
            file for file, records_of_file in zip(files, records_by_id, strict=True) if key not in records_of_file
        ]
        if lacking:
            raise _incomplete_error(f"'{key[0]}'", lacking)
    for key in records_by_id[0]:
        yield [records_of_file[key] for records_of_file in records_by_id]


def _by_id(rows: Iterator[Row]) -> dict[Key, Row]:
    """Index rows by id; rows that share an id are told apart by their order."""
    seen: Counter[str] = Counter()
    records = {}
    for row in rows:
        identity = str(row.get("id"))
        records[identity, seen[identity]] = row
        seen[identity] += 1
    return records


def _incomplete_error(problem: str, lacking: Sequence[Path]) -> DataError:
    more = ", …" if len(lacking) > 5 else ""
    names = ", ".join(file.name for file in lacking[:5]) + more
    return DataError(
        f"Problem {problem} has no prediction in {names} of {lacking[0].parent}; the other files have one.",
        hint="Let the run finish, or move the incomplete files away.",
    )


def _prediction_rows(output: Path, decoder: Decoder) -> Iterator[Row]:
    for path in file_parts(output):
        yield from _rows_of(path, decoder)


def _rows_of(path: Path, decoder: Decoder) -> Iterator[Row]:
    with open_for_reading(path) as file:
        decode = decoder.decode
        for number, line in enumerate(file, 1):
            try:
                yield decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                if not line.isspace():
                    yield decode_record(line, decoder, path, number)


def rows_between(path: Path, decoder: Decoder, begin: int, end: int) -> Iterator[Row]:
    """Yield rows of the lines from byte `begin`, where one begins, to byte `end`. Raises DataError without their
    number."""
    with open_for_reading(path) as file:
        file.seek(begin)
        decode = decoder.decode
        for line in file:
            begin += len(line)
            try:
                yield decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                if not line.isspace():
                    yield decode_record(line, decoder, path, 0)
            if begin >= end:
                return


def decode_record(line: bytes, decoder: Decoder, path: Path, number: int) -> Row:
    """Decode a line of an output file. Other programs write NaN and halves of surrogate pairs, which strict JSON lacks.

    Raises DataError that names `path` and the line's `number` from 1.
    """
    try:
        return decoder.decode(line)
    except msgspec.ValidationError as misfit:
        raise DataError(f"{path}, line {number}: {type_fault(misfit)}.") from misfit
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _decode_patiently(line, decoder, path, number)


def _decode_patiently(line: bytes, decoder: Decoder, path: Path, number: int) -> Row:
    try:
        return decoder.decode(encode_line(json.loads(line, parse_constant=lambda _: None)))
    except msgspec.ValidationError as misfit:
        raise DataError(f"{path}, line {number}: {type_fault(misfit)}.") from misfit
    except (ValueError, OverflowError, RecursionError):
        return decode_row(line, path, number)
