# SPDX-License-Identifier: Apache-2.0
"""Columns as Arrow: types, schemas with their documentation, batches."""

from __future__ import annotations

import decimal
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from newskills.base.errors import ConfigError
from newskills.view.filters.columns import Column, Kind, number_or_none, text_or_none, whole_or_none

if TYPE_CHECKING:
    import pyarrow

SCHEMA_VERSION = 1
"""Raised whenever a column changes its name, type, unit or meaning, or is removed; new columns leave it."""
VERSION_KEY = b"newskills.schema_version"
EXTRA_HINT = "Run: pip install 'newskills[analysis]'."


def import_pyarrow() -> Any:
    """Return the package. Raises ConfigError where it is missing."""
    try:
        import pyarrow
    except ImportError as error:
        raise ConfigError("Tables of results need pyarrow, which is not installed.", hint=EXTRA_HINT) from error
    return pyarrow


def import_duckdb() -> Any:
    """Return the package. Raises ConfigError where it is missing."""
    try:
        import duckdb
    except ImportError as error:
        raise ConfigError("SQL over results needs duckdb, which is not installed.", hint=EXTRA_HINT) from error
    return duckdb


def arrow_type(kind: Kind) -> pyarrow.DataType:
    """Return the type of a kind of column, as the page of the schema names it."""
    pa = import_pyarrow()
    types = {
        "word": lambda: pa.dictionary(pa.int32(), pa.string()),
        "text": pa.large_string,
        "whole": pa.int64,
        "number": pa.float64,
        "flag": pa.bool_,
        "time": lambda: pa.timestamp("us", tz="UTC"),
    }
    return types[kind]()


def schema_of(columns: Sequence[Column], notes: Sequence[str] = ()) -> pyarrow.Schema:
    """Return the schema of a table; units and meanings are metadata of its fields."""
    pa = import_pyarrow()
    fields = [
        pa.field(column.name, arrow_type(column.kind), metadata={"meaning": column.meaning, "unit": column.unit})
        for column in columns
    ]
    metadata = {VERSION_KEY: str(SCHEMA_VERSION), b"newskills.notes": "\n".join(notes)}
    return pa.schema(fields, metadata=metadata)


def batch_of(schema: pyarrow.Schema, columns: Sequence[Column], values: Sequence[list[Any]]) -> Any:
    """Return a batch of the schema. A value that its type cannot hold is missing."""
    pa = import_pyarrow()
    arrays = [
        _arrow_array(pa, own, field.type, column)
        for own, field, column in zip(values, schema, columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def table_of(columns: Sequence[Column], rows: Iterable[Sequence[Any]], notes: Sequence[str] = ()) -> pyarrow.Table:
    """Return a table of rows, for tables that fit into memory."""
    pa = import_pyarrow()
    listed = list(rows)
    values = [[row[number] for row in listed] for number in range(len(columns))]
    schema = schema_of(columns, notes)
    return pa.Table.from_batches([batch_of(schema, columns, values)], schema=schema)


def _arrow_array(pa: Any, values: list[Any], kind: Any, column: Column) -> Any:
    if column.kind == "word":
        return _dictionary_array(pa, values)
    try:
        return pa.array(values, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError, UnicodeEncodeError):
        return pa.array([_fit_value(value, column.kind) for value in values], kind)


def _dictionary_array(pa: Any, values: list[Any]) -> Any:
    """Return a dictionary array; each different text is looked at once."""
    numbers: dict[Any, int] = {}
    try:
        indices = [None if value is None else numbers.setdefault(value, len(numbers)) for value in values]
    except TypeError:  # a list, where a text belongs
        return _dictionary_array(pa, [text_or_none(value) for value in values])
    words = [_whole_text(str(word)) for word in numbers]
    if len(set(words)) < len(words):
        return _dictionary_array(pa, [None if value is None else _whole_text(str(value)) for value in values])
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), pa.array(words, pa.string()))


def _fit_value(value: Any, kind: Kind) -> Any:
    if kind == "text":
        text = text_or_none(value)
        if text is None:
            return None
        return _whole_text(text)
    if kind == "whole":
        return whole_or_none(value)
    if kind == "flag":
        if isinstance(value, bool):
            return value
        return None
    if kind == "number":
        return number_or_none(value)
    return value


def _whole_text(text: str) -> str:
    """Replace halves of surrogate pairs, which other programs write and UTF-8 lacks."""
    return text.encode("utf-8", "replace").decode()


def batches_of(rows: pyarrow.RecordBatchReader | pyarrow.Table) -> Iterator[pyarrow.RecordBatch]:
    """Return the batches of a reader, or of a table."""
    if hasattr(rows, "to_batches"):
        return iter(rows.to_batches())
    return iter(rows)


def python_rows(rows: pyarrow.RecordBatchReader | pyarrow.Table) -> Iterator[list[Any]]:
    """Yield rows as Python values."""
    for batch in batches_of(rows):
        columns = [column.to_pylist() for column in batch.columns]
        yield from (list(row) for row in zip(*columns, strict=True))


def json_value(value: Any) -> Any:
    """Return a value of SQL as JSON has it: numbers as numbers, times and the like as texts."""
    if isinstance(value, float):
        return number_or_none(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, decimal.Decimal):
        return number_or_none(float(value))
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    if isinstance(value, dict):
        return {str(name): json_value(item) for name, item in value.items()}
    if isinstance(value, bytes):
        return value.hex()
    return str(value)
