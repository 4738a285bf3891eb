# SPDX-License-Identifier: Apache-2.0
"""Rows of a query as text: a table of 80 columns, JSON lines, CSV, LaTeX. Texts of models cannot steer a terminal."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from newskills.base.tables import WIDTH, table_lines
from newskills.base.terminal import counted, printable
from newskills.view.analysis.arrow import json_value, python_rows

if TYPE_CHECKING:
    import pyarrow

LONGEST_CELL = 200
"""Characters of a text in a table; --json and --csv have all of it."""
NULL_TEXT = "NULL"
_LATEX_ESCAPES = str.maketrans(
    {sign: f"\\{sign}" for sign in "&%$#_{}"}
    | {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
    }
)


def as_table(reader: pyarrow.RecordBatchReader, most: int) -> Iterator[str]:
    """Yield the lines of a table with the first `most` rows, and how many there are."""
    rows: list[list[str]] = []
    has_more = False
    for row in python_rows(reader):
        if len(rows) == most:
            has_more = True
            break
        rows.append([_cell_text(value) for value in row])
    yield from table_lines(rows, [_cell_text(name) for name in reader.schema.names], WIDTH)
    if has_more:
        yield f"the first {counted(most, 'row')}; --rows N shows more"
    else:
        yield counted(len(rows), "row")


def as_json_lines(reader: pyarrow.RecordBatchReader) -> Iterator[bytes]:
    """Yield one JSON object for each row."""
    names = reader.schema.names
    for row in python_rows(reader):
        yield msgspec.json.encode(dict(zip(names, map(json_value, row), strict=True))) + b"\n"


def as_csv(reader: pyarrow.RecordBatchReader | pyarrow.Table) -> Iterator[bytes]:
    """Yield the lines of a CSV file (RFC 4180) with a head; what is missing is empty, what is nested is JSON."""
    yield _csv_line(reader.schema.names)
    for row in python_rows(reader):
        yield _csv_line(["" if value is None else _plain_json(value) for value in row])


def as_latex(reader: pyarrow.RecordBatchReader) -> Iterator[bytes]:
    """Yield the lines of a LaTeX table as booktabs wants it: figures to the right, a dash for what is missing."""
    import pyarrow.types as kinds

    is_figure = [
        kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind) for kind in reader.schema.types
    ]
    columns = "".join("r" if right else "l" for right in is_figure)
    yield f"\\begin{{tabular}}{{{columns}}}\n\\toprule\n".encode()
    yield _latex_line(reader.schema.names)
    yield b"\\midrule\n"
    for row in python_rows(reader):
        yield _latex_line(["--" if value is None else _cell_text(value) for value in row])
    yield b"\\bottomrule\n\\end{tabular}\n"


def _latex_line(cells: Sequence[str]) -> bytes:
    escaped = " & ".join(cell.translate(_LATEX_ESCAPES) for cell in cells)
    return f"{escaped} \\\\\n".encode("utf-8", "replace")


def _csv_line(cells: Sequence[str]) -> bytes:
    line = io.StringIO()
    csv.writer(line, lineterminator="\r\n").writerow(cells)
    return line.getvalue().encode("utf-8", "replace")


def _cell_text(value: Any) -> str:
    if value is None:
        text = NULL_TEXT
    elif isinstance(value, float):
        text = f"{value:.6g}"
    else:
        text = _plain_json(value)
    if len(text) > LONGEST_CELL:
        text = f"{text[:LONGEST_CELL]}…"
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def _plain_json(value: Any) -> str:
    if isinstance(value, float):
        return repr(value)
    plain = json_value(value)
    if isinstance(plain, str):
        return plain
    return msgspec.json.encode(plain).decode()
