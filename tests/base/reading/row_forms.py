# SPDX-License-Identifier: Apache-2.0
"""The same rows in every form that can be read."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable
from typing import Any

import pyarrow
import pyarrow.parquet
import zstandard

Rows = list[dict[str, Any]]


def json_lines(rows: Rows) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def table(rows: Rows, delimiter: str) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def parquet(rows: Rows) -> bytes:
    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), file)
    return file.getvalue()


def in_two_members(pack: Callable[[bytes], bytes], rows: Rows) -> bytes:
    data = json_lines(rows)
    return pack(data[: len(data) // 2]) + pack(data[len(data) // 2 :])


FORMS: dict[str, Callable[[Rows], bytes]] = {
    "rows.jsonl": json_lines,
    "windows.jsonl": lambda rows: json_lines(rows).replace(b"\n", b"\r\n"),
    "bom.jsonl": lambda rows: b"\xef\xbb\xbf" + json_lines(rows),
    "utf16.jsonl": lambda rows: json_lines(rows).decode().encode("utf-16"),
    "rows.jsonl.gz": lambda rows: in_two_members(gzip.compress, rows),
    "bom.jsonl.gz": lambda rows: gzip.compress(b"\xef\xbb\xbf" + json_lines(rows)),
    "rows.jsonl.zst": lambda rows: in_two_members(zstandard.compress, rows),
    "named_wrongly.jsonl": lambda rows: gzip.compress(json_lines(rows)),
    "lines.json": json_lines,
    "array.json": lambda rows: json.dumps(rows).encode(),
    "indented.json": lambda rows: b"\xef\xbb\xbf\n" + json.dumps(rows, indent=2).replace("\n", "\r\n").encode(),
    "array.json.gz": lambda rows: gzip.compress(json.dumps(rows).encode()),
    "rows.csv": lambda rows: table(rows, ","),
    "bom.CSV": lambda rows: b"\xef\xbb\xbf" + table(rows, ","),
    "rows.csv.gz": lambda rows: gzip.compress(table(rows, ",")),
    "rows.tsv": lambda rows: table(rows, "\t"),
    "excel.tsv": lambda rows: table(rows, "\t").decode().encode("utf-16"),
    "rows.parquet": parquet,
}
