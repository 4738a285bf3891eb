# SPDX-License-Identifier: Apache-2.0
"""Raw files → rows: JSON lines, JSON, YAML, CSV, TSV, XML, parquet, Arrow, text; alone, gzipped, or in an archive.

Nothing is unpickled or executed, whatever a file holds.
"""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple, cast
from xml.etree import ElementTree

import msgspec

from newskills.base.benchmark import Asset, Source
from newskills.base.errors import DataError
from newskills.base.reading.row_files import (
    TABLE_SEPARATORS,
    Place,
    TableForm,
    import_pyarrow,
    parquet_rows,
    place_in,
    row_lines,
    table_rows,
)
from newskills.base.records import Row
from newskills.base.store import decode_row
from newskills.benchmarks.downloads.patterns import select_names

_BYTE_ORDER = b"\xef\xbb\xbf"
_GZIP_MARK = b"\x1f\x8b"


class RawRow(NamedTuple):
    """A row as the source has it, and where it stands (`file, line 7`)."""

    row: Row
    where: str


def read_source(path: Path, source: Source, *, shown: str = "", name: str = "") -> Iterator[RawRow]:
    """Yield rows of the file at `path` in the form that `source` describes, in file order; of all members of an
    archive.

    `shown` is the name for messages; `name` becomes `_file` of the rows, members of archives add their own.
    Raises DataError naming file, line and what is wrong; ConfigError where a reader is not installed.
    """
    shown = shown or str(path)
    if source.members and not source.github:
        for member, file in open_members(path, source.members, shown):
            if member.endswith(".gz"):
                file = cast(IO[bytes], gzip.GzipFile(fileobj=file))
            path_of_member = f"{name}/{member}" if name else member
            yield from _read_open_file(file, source, f"{shown}, {member}", path_of_member)
    else:
        yield from _read_open_file(_open_decompressed(path), source, shown, name)


def _read_open_file(file: IO[bytes], source: Source, shown: str, name: str) -> Iterator[RawRow]:
    with file:
        if source.format == "asset":
            yield RawRow({"_file": name, "asset": Asset(name or Path(shown).name, file.read())}, shown)
            return
        read = _READERS.get(source.format)
        if read is None:
            raise DataError(f"{shown}: there is no reader for the format '{source.format}'.")
        try:
            for raw in read(file, source, shown):
                if name:
                    raw.row.setdefault("_file", name)
                yield raw
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DataError(f"{shown}: the packed data are damaged ({error}).") from error


def _open_decompressed(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        zipped = file.read(len(_GZIP_MARK)) == _GZIP_MARK
    if zipped:
        return cast(IO[bytes], gzip.open(path, "rb"))
    return path.open("rb")


def open_members(path: Path, pattern: str, shown: str) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield (name, open file) of the members of a zip or tar whose path matches. Raises DataError where none
    does."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as zipped:
            for name in _matching_members(
                [info.filename for info in zipped.infolist() if not info.is_dir()], pattern, shown
            ):
                yield name, zipped.open(name)
    elif tarfile.is_tarfile(path):
        with tarfile.open(path) as archive:
            files = {member.name: member for member in archive if member.isfile()}
            for name in _matching_members(files, pattern, shown):
                opened = archive.extractfile(files[name])
                assert opened is not None, "a regular file can be extracted"
                yield name, opened
    else:
        raise DataError(f"{shown} is neither a zip nor a tar archive.")


def _matching_members(names: Iterable[str], pattern: str, shown: str) -> list[str]:
    wanted = select_names(names, pattern)
    if not wanted:
        raise DataError(f"{shown} has no member like '{pattern}'.")
    return wanted


def _read_jsonl(file: IO[bytes], source: Source, shown: str) -> Iterator[RawRow]:
    for number, line in enumerate(file, 1):
        if number == 1:
            line = line.removeprefix(_BYTE_ORDER)
        if line.strip():
            yield RawRow(_decode_line(line, shown, number), f"{shown}, line {number}")


def _any_rows(file: IO[bytes], source: Source, shown: str) -> Iterator[RawRow]:
    """Yield the rows of a file whose form its first bytes and the end of its name tell."""
    path = Path(shown)
    table = None
    if source.separator or source.columns:
        separator = source.separator
        if not separator and ".tsv" in path.suffixes:
            separator = TABLE_SEPARATORS[".tsv"]
        table = TableForm(separator, source.columns, source.quoted, strict=True)
    for place, line in row_lines(file, path, table, source.encoding):
        if line.strip():
            yield RawRow(_decode_line(line, shown, place), place_in(path, place))


def _decode_line(line: bytes, shown: str, number: Place) -> Row:
    """Decode a line; Python writes numbers that are not in JSON, and reads them again."""
    try:
        return decode_row(line, Path(shown), number)
    except DataError:
        if b"Infinity" not in line and b"NaN" not in line:
            raise
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place_in(Path(shown), number)}: invalid JSON ({error}).") from error
    if not isinstance(row, dict):
        raise DataError(f"{place_in(Path(shown), number)}: expected a JSON object.")
    return row


def _json_value(file: IO[bytes], shown: str) -> Any:
    try:
        return msgspec.json.decode(file.read().removeprefix(_BYTE_ORDER))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{shown}: invalid JSON ({error}).") from error


def _yaml_value(file: IO[bytes], shown: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(file.read())
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise DataError(f"{shown}: invalid YAML ({error}).") from error


def _records_reader(
    decode: Callable[[IO[bytes], str], Any],
) -> Callable[[IO[bytes], Source, str], Iterator[RawRow]]:
    """Return a reader that yields one row per item of the list at `records`, or per key; items that are no objects
    become `{"value": item}`."""

    def read(file: IO[bytes], source: Source, shown: str) -> Iterator[RawRow]:
        value = decode(file, shown)
        for key in source.records:
            if not isinstance(value, dict) or key not in value:
                raise DataError(f"{shown}: there is no '{key}' on the way {' → '.join(source.records)}.")
            value = value[key]
        if isinstance(value, dict):
            value = [{"_key": key, **_as_row(item)} for key, item in value.items()]
        if not isinstance(value, list):
            raise DataError(f"{shown}: expected a list of objects, not {type(value).__name__}.")
        for number, item in enumerate(value, 1):
            yield RawRow(_as_row(item), f"{shown}, record {number}")

    return read


def _as_row(value: Any) -> Row:
    if isinstance(value, dict):
        return value
    return {"value": value}


def _whole_object(file: IO[bytes], source: Source, shown: str) -> Iterator[RawRow]:
    value = _json_value(file, shown)
    if not isinstance(value, dict):
        raise DataError(f"{shown}: expected an object, not {type(value).__name__}.")
    yield RawRow(value, shown)


def _delimited_reader(delimiter: str) -> Callable[[IO[bytes], Source, str], Iterator[RawRow]]:
    def read(file: IO[bytes], source: Source, shown: str) -> Iterator[RawRow]:
        table = TableForm(source.separator or delimiter, source.columns, source.quoted)
        with io.TextIOWrapper(file, encoding=_encoding_of(source), newline="") as text:
            for number, row in table_rows(text, table, shown):
                yield RawRow(row, f"{shown}, line {number}")

    return read


def _read_xml(file: IO[bytes], source: Source, shown: str) -> Iterator[RawRow]:
    """Yield one row per element named by the last of `records`: its attributes, and its children.

    A child is its text, or an object of the same form, with `text`, where it has attributes or children itself;
    children of one name are a list. Namespaces do not count. Entity declarations are refused, so that nothing outside
    the file is read and nothing is expanded.
    """
    data = file.read()
    if b"<!ENTITY" in data.replace(b"\0", b""):  # as UTF-16 writes it, too
        raise DataError(f"{shown}: declarations of entities are not accepted.")
    try:
        root = ElementTree.fromstring(data)  # noqa: S314 - declarations of entities were refused above
    except ElementTree.ParseError as error:
        raise DataError(f"{shown}: invalid XML ({error}).") from error
    wanted = source.records[-1]
    for number, element in enumerate((element for element in root.iter() if _local_name(element) == wanted), 1):
        yield RawRow(_element_fields(element), f"{shown}, {wanted} {number}")


def _element_fields(element: ElementTree.Element) -> Row:
    children: dict[str, list[Any]] = {}
    for child in element:
        form: Any = "".join(child.itertext())
        if child.attrib or len(child):
            form = {**_element_fields(child), "text": form}
        children.setdefault(_local_name(child), []).append(form)
    fields: Row = {**element.attrib}
    for tag, forms in children.items():
        fields[tag] = forms[0] if len(forms) == 1 else forms
    return fields


def _local_name(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _read_text(file: IO[bytes], source: Source, shown: str) -> Iterator[RawRow]:
    yield RawRow({"text": _decode_text(file.read(), source, shown)}, shown)


def _read_lines(file: IO[bytes], source: Source, shown: str) -> Iterator[RawRow]:
    for number, line in enumerate(file, 1):
        where = f"{shown}, line {number}"
        yield RawRow({"text": _decode_text(line, source, where).rstrip("\r\n")}, where)


def _encoding_of(source: Source) -> str:
    return source.encoding or "utf-8-sig"


def _decode_text(data: bytes, source: Source, where: str) -> str:
    try:
        return data.decode(_encoding_of(source))
    except UnicodeDecodeError as error:
        raise DataError(f"{where}: {error}.") from error


def _read_parquet(file: IO[bytes], source: Source, shown: str) -> Iterator[RawRow]:
    for number, row in enumerate(parquet_rows(file, shown), 1):
        yield RawRow(row, f"{shown}, row {number}")


def _read_arrow(file: IO[bytes], source: Source, shown: str) -> Iterator[RawRow]:
    """Yield the rows of an Arrow stream, as the datasets library writes it, or of an Arrow file."""
    pyarrow = import_pyarrow(shown)
    try:
        try:
            batches = pyarrow.ipc.open_stream(file)
        except pyarrow.ArrowInvalid:
            file.seek(0)
            whole = pyarrow.ipc.open_file(file)
            batches = map(whole.get_batch, range(whole.num_record_batches))
        yield from _batch_rows(batches, shown)
    except pyarrow.ArrowException as error:
        raise DataError(f"{shown}: invalid Arrow data ({error}).") from error


def _batch_rows(batches: Iterable[Any], shown: str) -> Iterator[RawRow]:
    number = 0
    for batch in batches:
        for row in batch.to_pylist():
            number += 1
            yield RawRow(row, f"{shown}, row {number}")


_READERS: dict[str, Callable[[IO[bytes], Source, str], Iterator[RawRow]]] = {
    "rows": _any_rows,
    "jsonl": _read_jsonl,
    "json": _records_reader(_json_value),
    "yaml": _records_reader(_yaml_value),
    "object": _whole_object,
    "csv": _delimited_reader(","),
    "tsv": _delimited_reader("\t"),
    "xml": _read_xml,
    "text": _read_text,
    "lines": _read_lines,
    "parquet": _read_parquet,
    "arrow": _read_arrow,
}
