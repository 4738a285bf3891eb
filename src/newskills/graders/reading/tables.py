# SPDX-License-Identifier: Apache-2.0
"""Tables in the texts of models: JSON, JSON lines, CSV, TSV, HTML. Nothing is executed, whatever a text holds."""

from __future__ import annotations

import ast
import csv
import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from itertools import takewhile, zip_longest
from typing import Any

Table = list[dict[str, Any]]

_LONGEST = 200_000
_LONGEST_LITERAL = 20_000
_FENCE = "```"
_TAG, _END = "<solution>", "</solution>"
_FENCED = tuple(re.compile(rf"```{kind}(.*?)```") for kind in ("python", "json", ""))
_QUOTED = re.compile(r"\\text\{(['\"][^{}]*['\"])\}")
_NULL = re.compile(r"\bnull\b")
_NOTHING = frozenset(("", "#N/A", "#NA", "<NA>", "N/A", "n/a", "NA", "NULL", "null", "NaN", "nan", "None"))
"""Cells of CSV, TSV and HTML that hold nothing, as readers of such files take them."""


def last_solution(text: str) -> str | None:
    """Return what the last `<solution>…</solution>` holds; None where there is none."""
    end = text.rfind(_END)
    start = text.rfind(_TAG, 0, max(end, 0))
    if start >= 0:
        return text[start + len(_TAG) : end].strip()
    return None


def last_block(text: str) -> str:
    """Return the last code block, without its first line; else the text."""
    text = last_solution(text) or text
    parts = text.split(_FENCE)
    if len(parts) < 3:
        return text.strip()
    inner = parts[-2]
    first, newline, rest = inner.partition("\n")
    if newline and (first.strip().isalnum() or not first.strip()):
        content = rest
    else:
        content = inner
    return content.strip()


def all_solutions(text: str) -> list[str]:
    """Return what each `<solution>…</solution>` of a line holds."""
    return [
        inner for part in text.split(_END)[:-1] if "\n" not in (inner := part.rpartition(_TAG)[2]) and _TAG in part
    ]


def read_mapping(text: str) -> dict[str, Any] | None:
    """Return the dictionary that a reply is, without what is None; as Python or JSON writes it. None where there is
    none.

    It is the whole reply or the tag, or the last code block, or the box; a dictionary amid words is none.
    """
    text = last_solution(text) or text
    for plain in (text.strip(), _fenced_code(text.replace("\n", "")) or _from_box(text) or text):
        if len(plain) > _LONGEST_LITERAL:
            return None
        try:
            value = ast.literal_eval(_NULL.sub("None", plain).strip())
        except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
            continue
        if isinstance(value, dict):
            return {key: other for key, other in value.items() if other is not None}
        return None
    return None


def _fenced_code(text: str) -> str | None:
    """Return the last code block of Python, else of JSON, else of any kind; None where there is none."""
    for pattern in _FENCED:
        if blocks := pattern.findall(text):
            return str(blocks[-1])
    return None


def _from_box(text: str) -> str | None:
    start, end = text.rfind("\\boxed{"), text.rfind("}")
    if not 0 <= start < end:
        return None
    return _QUOTED.sub(r"\1", text[start + len("\\boxed{") : end]).replace("\\", "")


def read_table(form: str, text: str, columns: Sequence[str] = ()) -> Table | None:
    """Return the table in `text`, in the form json, jsonl, csv, tsv or html; None where there is none.

    `columns`: the names that are expected, by which a table is found between other lines.
    """
    if len(text) > _LONGEST:
        return None
    plain = last_block(text)
    table: Table | None
    if form == "json":
        table = _read_json(plain)
    elif form == "jsonl":
        table = _json_lines(plain)
    elif form in ("csv", "tsv"):
        separator = "," if form == "csv" else "\t"
        table = _read_delimited(last_solution(text) or text, separator, columns)
    else:
        table = _read_html(plain)
    if table and form not in ("json", "jsonl"):  # those tell an empty text from nothing
        table = [{name: _filled_cell(cell) for name, cell in row.items()} for row in table]
    if table:
        return [_named_columns(row) for row in table]
    return None


def _filled_cell(cell: str | None) -> str | None:
    if cell is None or cell.strip() in _NOTHING:
        return None
    return cell


def are_same_tables(first: Table, second: Table) -> bool:
    """Return whether both have the same rows in order, with the same columns in any order; numbers to 1e-6."""
    if len(first) != len(second):
        return False
    return all(
        a.keys() == b.keys() and all(_same_cell(a[name], b[name]) for name in a)
        for a, b in zip(first, second, strict=True)
    )


def _same_cell(first: Any, second: Any) -> bool:
    a, b = _cell_value(first), _cell_value(second)
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) < 1e-6
    return a == b


def _cell_value(value: Any) -> float | str | None:
    """Return a number, a text without blanks around it, or None for what is missing."""
    if value is None:
        return None
    text = str(value).strip()
    try:
        number = float(text)
    except ValueError:
        return text
    if math.isfinite(number):
        return number
    return None


def _named_columns(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        str(name).strip(): value
        for name, value in row.items()
        if name is not None and str(name).strip() != "index"
    }


def _read_json(text: str) -> Table | None:
    starts = [at for at in (text.find("{"), text.find("[")) if at >= 0]
    if not starts:
        return None
    try:
        value, _ = json.JSONDecoder().raw_decode(text, min(starts))
    except (ValueError, RecursionError):
        return None
    if isinstance(value, dict) and value and all(isinstance(row, dict) for row in value.values()):
        value = list(value.values())
    if isinstance(value, dict) and len(rows := _json_lines(text) or []) > 1:
        value = rows
    if isinstance(value, dict):
        value = value.get("data", [value])
    if isinstance(value, list) and all(isinstance(row, dict) for row in value):
        return value
    return None


def _json_lines(text: str) -> Table | None:
    rows: Table = []
    for line in text.splitlines():
        bare = line.strip().rstrip(",")
        if not bare.startswith("{") or not bare.endswith("}"):
            continue
        try:
            value = json.loads(bare)
        except (ValueError, RecursionError):
            continue
        rows.append(value)
    return rows or None


def _read_delimited(text: str, separator: str, columns: Sequence[str]) -> Table | None:
    """Read from the line of the names to the end of the text, or to a line with too many cells; leave out fences.

    Words behind the table are a row of it, as they are to the readers of such files.
    """
    lines = [line for line in text.strip().splitlines() if not line.startswith(_FENCE)]
    names = [name.replace('"', "").strip() for name in columns]
    heads = ([name.replace('"', "").strip() for name in line.split(separator)] for line in lines)
    start = next((place for place, head in enumerate(heads) if head == names), 0)
    try:
        cells = list(csv.reader(io.StringIO("\n".join(lines[start:])), delimiter=separator))
    except csv.Error:
        return None
    if len(cells) < 2:
        return None
    names = [name.strip() for name in cells[0]]
    rows = takewhile(lambda line: len(line) <= len(names), filter(None, cells[1:]))
    return [dict(zip_longest(names, line)) for line in rows]


class _Cells(HTMLParser):
    """Rows of cells, in document order."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th") and self.rows:
            self.rows[-1].append("")
            self._inside = True

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside and self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


def _read_html(text: str) -> Table | None:
    start = text.find("<table")
    if start < 0:
        return None
    parser = _Cells()
    parser.feed(text[start:])
    rows = [row for row in parser.rows if row]
    if len(rows) < 2 or any(len(row) != len(rows[0]) for row in rows):
        return None
    return [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]
