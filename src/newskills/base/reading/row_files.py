# SPDX-License-Identifier: Apache-2.0
"""Rows in the forms that people have them in → lines of JSON, one object each.

JSON lines, a JSON array, CSV, TSV and Parquet; packed with gzip or zstd; in UTF-8 with or without a byte-order mark,
or in UTF-16 with one. Packing, Parquet and arrays are known by their first bytes, tables by the end of their name.
All but arrays are read in bounded memory.
"""

from __future__ import annotations

import csv
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from newskills.base.errors import ConfigError, DataError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

Place = int | str
"""Where a row stands in its file: the number of a line, or words."""

COMPRESSED_SUFFIXES = (".gz", ".zst")
TABLE_SEPARATORS = {".csv": "", ".tsv": "\t"}
"""End of a name → what separates cells; empty: what the first line tells."""
_SEPARATORS_OF_PROGRAMS = (",", ";", "\t")
"""What programs write between the cells of a `.csv` file: Excel uses `;` where a comma stands in numbers."""
ROW_FILE_SUFFIXES = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".json", ".csv", ".tsv", ".parquet")
"""Ends of the name of a file of rows, where only the rest of it is given; the first that exists is taken."""
ROWS_AT_ONCE = 256
"""Rows of a Parquet or Arrow file in memory: each may hold an image."""
_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_GZIP, _ZSTD, _PARQUET = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1"
_GZIP_BLOCK = 1 << 14
_ZSTD_BLOCK = 1 << 11
"""Bytes that are unpacked at a time. One of gzip becomes 1,032 at most, four of zstd 128 KB."""
_PIECE_BYTES = 1 << 20
_LONGEST_CELL = 1 << 27
_BYTE_AT = re.compile(r"\(byte (\d+)\)")
_encoder = msgspec.json.Encoder()


def row_lines(
    file: IO[bytes], path: Path, table: TableForm | None = None, encoding: str = ""
) -> Iterator[tuple[Place, bytes]]:
    """Return the rows of `file`, which has a buffer, as (place, line of JSON); blank lines of JSON lines are kept.

    `path` tells a table by its name, where `table` does not say how it is written, and is named in errors. `encoding`:
    of a table that is not in UTF-8. Raises DataError for what is damaged or has no such form,
    ConfigError where a package is missing.
    """
    table = table or _table_of(path)
    if table is None and is_plain(file, path):
        return iter(enumerate(file, 1))
    return _converted_lines(file, path, table, encoding)


def is_plain(file: IO[bytes], path: Path) -> bool:
    """Return whether the rows are the lines of `file` as they stand, so that one can seek among them."""
    head = _peek_bytes(file)
    marked = head.startswith((_GZIP, _ZSTD, _PARQUET, _UTF8_MARK, *_UTF16_MARKS))
    return not marked and not head.lstrip().startswith(b"[") and _table_of(path) is None


def place_in(path: Path, place: Place) -> str:
    """Return `rows.csv, line 7`, or the like."""
    if isinstance(place, int):
        return f"{path}, line {place}"
    return f"{path}, {place}"


class TableForm(NamedTuple):
    """How a table is written. `separator`: empty where the first line tells it; `columns`: their names, where no first
    line tells them."""

    separator: str = ","
    columns: Sequence[str] = ()
    quoted: bool = True
    strict: bool = False


def table_rows(text: IO[str], table: TableForm, shown: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield (number of the line, row) of a CSV or TSV file. Raises DataError naming file and line."""
    csv.field_size_limit(_LONGEST_CELL)
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if table.quoted else csv.QUOTE_NONE
    before, end = 0, 0
    try:
        first = next(text, "")
        separator = table.separator or _separator_of(first)
        if not table.separator and first.strip() == f"sep={separator}":
            first, before = next(text, ""), 1
        lines = csv.reader(chain([first], text), delimiter=separator, quoting=quoting, strict=table.strict)
        columns = list(table.columns) or next(lines, [])
        end = lines.line_num
        if table.strict:
            while columns and not columns[-1].strip():
                columns.pop()
        if table.strict and (twice := {name for name in columns if columns.count(name) > 1}):
            raise DataError(f"{shown}, line {before + 1}: the column '{min(twice)}' occurs twice.")
        for cells in lines:
            number, end = before + end + 1, lines.line_num
            if not cells or (table.strict and not any(cells) and len(cells) >= len(columns)):
                continue
            if table.strict and not any(cells[len(columns) :]):
                del cells[len(columns) :]
            if len(cells) != len(columns):
                raise DataError(
                    f"{shown}, line {number}: {len(columns)} columns are expected, there are {len(cells)}."
                )
            yield number, dict(zip(columns, cells, strict=True))
    except UnicodeError as error:
        raise _encoding_error(error, shown) from error
    except csv.Error as error:
        raise DataError(f"{shown}, line {before + lines.line_num}: {error}.") from error


def _separator_of(first: str) -> str:
    """Return what separates cells: what a line `sep=;` of Excel says, else the comma, or what parts a first line
    without one."""
    named = first.strip().removeprefix("sep=")
    if first.startswith("sep=") and len(named) <= 1:
        return named or "\t"
    counts = {
        separator: len(next(csv.reader([first], delimiter=separator), [])) for separator in _SEPARATORS_OF_PROGRAMS
    }
    if counts[","] > 1:
        return ","
    return max(_SEPARATORS_OF_PROGRAMS, key=counts.__getitem__)


def _encoding_error(error: UnicodeError, shown: str) -> DataError:
    """Return the error for a text in another encoding, with what stands beside the first byte that does not fit."""
    why = str(error)
    if isinstance(error, UnicodeDecodeError):
        beside = error.object[max(error.start - 20, 0) : error.start + 10].decode("ascii", "replace")
        why = f"it is not in {error.encoding.upper()}, or damaged, at {beside!r}"
    return DataError(
        f"{shown}: {why}.",
        hint="Save it as 'CSV UTF-8', or name its encoding in a YAML file: data: {path: FILE.csv, encoding: cp1252}",
    )


def parquet_rows(file: IO[bytes], shown: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a Parquet file that can seek. Raises DataError, and ConfigError as `import_pyarrow`."""
    pyarrow = import_pyarrow(shown)
    from pyarrow import parquet

    try:
        for batch in parquet.ParquetFile(file).iter_batches(ROWS_AT_ONCE):
            yield from batch.to_pylist()
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{shown}: invalid parquet ({' '.join(str(error).split())}).") from error


def import_pyarrow(shown: str) -> Any:
    """Return the package. Raises ConfigError where it is missing."""
    try:
        import pyarrow
        import pyarrow.ipc
    except ImportError as error:
        raise ConfigError(
            f"{shown} is a parquet or Arrow file; reading it needs the extra newskills[hf].",
            hint="Install it: pip install 'newskills[hf]'.",
        ) from error
    return pyarrow


def _peek_bytes(file: IO[bytes]) -> bytes:
    """Return the first bytes, as many as are there; they are read again later."""
    return file.peek(64)  # type: ignore[attr-defined, no-any-return]


def _table_of(path: Path) -> TableForm | None:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSED_SUFFIXES:
        suffixes.pop()
    if not suffixes or suffixes[-1] not in TABLE_SEPARATORS:
        return None
    return TableForm(TABLE_SEPARATORS[suffixes[-1]], strict=True)


def _converted_lines(
    file: IO[bytes], path: Path, table: TableForm | None, table_encoding: str
) -> Iterator[tuple[Place, bytes]]:
    head = _peek_bytes(file)
    if head.startswith(_GZIP):
        file = io.BufferedReader(_Unpacked(_gunzipped_pieces(file), path), _PIECE_BYTES)
    elif head.startswith(_ZSTD):
        file = io.BufferedReader(_Unpacked(_unzstd_pieces(file, path), path), _PIECE_BYTES)
    head = _peek_bytes(file)
    if head.startswith(_PARQUET):
        yield from _parquet_lines(file, path)
        return
    encoding = "utf-16" if head.startswith(_UTF16_MARKS) else "utf-8-sig"
    if table is not None:
        with io.TextIOWrapper(file, table_encoding or encoding, newline="") as text:
            for number, row in table_rows(text, table, str(path)):
                yield number, _encoder.encode(row)
        return
    if encoding == "utf-16":
        file = io.BufferedReader(_Unpacked(_as_utf8(file), path), _PIECE_BYTES)
    elif head.startswith(_UTF8_MARK):
        file.read(len(_UTF8_MARK))
    if _peek_bytes(file).lstrip().startswith(b"["):
        yield from _array_items(file.read(), path)
    else:
        yield from enumerate(file, 1)


def _parquet_lines(file: IO[bytes], path: Path) -> Iterator[tuple[Place, bytes]]:
    if not file.seekable():
        raise DataError(f"{path}: Parquet can only be read from a file that is not packed.")
    for number, row in enumerate(parquet_rows(file, str(path)), 1):
        try:
            yield f"row {number}", _encoder.encode(row)
        except (TypeError, ValueError) as error:
            raise DataError(f"{path}, row {number}: cannot be written as JSON ({error}).") from error


def _array_items(data: bytes, path: Path) -> Iterator[tuple[Place, bytes]]:
    """Yield the items of an array, each as one line: JSON has no line breaks within texts."""
    try:
        items = msgspec.json.decode(data, type=list[msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        at = _BYTE_AT.search(str(error))
        line = 1 + data.count(b"\n", 0, int(at[1]) if at else len(data.rstrip()))
        raise DataError(f"{path}, line {line}: invalid JSON ({error}).") from error
    start = end = 0
    line = 1
    for number, raw in enumerate(items, 1):
        item = bytes(raw)
        start = data.index(item, end)
        line += data.count(b"\n", end, start)
        yield f"line {line}, item {number}", item.replace(b"\r", b" ").replace(b"\n", b" ")
        end = start + len(item)
        line += item.count(b"\n")


class _Unpacked(io.RawIOBase):
    """Blocks of bytes as a file; an error in them is a DataError that tells the line."""

    def __init__(self, blocks: Iterator[bytes], path: Path) -> None:
        self._blocks, self._path = blocks, path
        self._rest = memoryview(b"")
        self._lines = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        while not self._rest:
            try:
                block = next(self._blocks, None)
            except _DamagedError as error:
                raise DataError(f"{self._path}, line {self._lines + 1}: {error}.") from error
            if block is None:
                return 0
            self._rest = memoryview(block)
            self._lines += block.count(b"\n")
        target = memoryview(buffer).cast("B")
        count = min(len(target), len(self._rest))
        target[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


class _DamagedError(Exception):
    """Packed or encoded bytes end too early, or make no sense."""


def _gunzipped_pieces(file: IO[bytes]) -> Iterator[bytes]:
    """Yield one member after the other; zeros between them fill blocks of tapes."""
    member, begun, packed = zlib.decompressobj(wbits=31), False, b""
    while packed := packed or file.read(_GZIP_BLOCK):
        if not begun and not (packed := packed.lstrip(b"\0")):
            continue
        begun = True
        try:
            yield member.decompress(packed)
        except zlib.error as error:
            raise _DamagedError(f"the gzip data are damaged ({error})") from error
        packed = b""
        if member.eof:
            packed, member, begun = member.unused_data, zlib.decompressobj(wbits=31), False
    if begun:
        raise _DamagedError("the gzip data end too early")


def _unzstd_pieces(file: IO[bytes], path: Path) -> Iterator[bytes]:
    """Yield one frame after the other. Raises ConfigError where the package is missing."""
    try:
        import zstandard
    except ImportError as error:
        raise ConfigError(
            f"{path} is packed with zstd, which cannot be read here.", hint="Run: pip install 'newskills[inspect]'"
        ) from error
    frame, begun, packed = zstandard.ZstdDecompressor().decompressobj(), False, b""
    while packed := packed or file.read(_ZSTD_BLOCK):
        begun = True
        try:
            yield frame.decompress(packed)
        except zstandard.ZstdError as error:
            raise _DamagedError(f"the zstd data are damaged ({error})") from error
        packed = b""
        if frame.eof:
            packed, begun = frame.unused_data, False
            frame = zstandard.ZstdDecompressor().decompressobj()
    if begun:
        raise _DamagedError("the zstd data end too early")


def _as_utf8(file: IO[bytes]) -> Iterator[bytes]:
    with io.TextIOWrapper(file, "utf-16", newline="") as text:
        try:
            while piece := text.read(_PIECE_BYTES):
                yield piece.encode()
        except UnicodeError as error:
            raise _DamagedError(f"the text is not UTF-16 ({error})") from error
