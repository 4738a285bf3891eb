# SPDX-License-Identifier: Apache-2.0
"""Runs SQL statements on a SQLite file and prints their rows as JSON. The whole file is sent as a script, too."""

from __future__ import annotations

import json
import math
import os
import sqlite3
import sys
from urllib.parse import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, NoReturn

BATCH = 1000
REFUSED, CANNOT_OPEN = 1, 3


def main(database: str, text: str) -> None:
    """Run a query and print its rows. `database`: path below the folder that DATA_DIR names. Ends the process where
    SQLite refuses something."""
    try:
        connection = _open_database(os.path.join(os.environ["DATA_DIR"], database))
    except sqlite3.Error as error:
        _end_with(error, CANNOT_OPEN)
    try:
        for statement in split_statements(text):
            cursor = connection.execute(statement)
            if cursor.description is not None:
                _print_rows(cursor)
    except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
        _end_with(error, REFUSED)


def _open_database(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(f"file:{quote(path)}?mode=ro&immutable=1", uri=True, isolation_level=None)
    connection.text_factory = _decode_text
    connection.execute("PRAGMA schema_version")
    return connection


def _end_with(error: Exception, code: int) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.write(f"{type(error).__name__}: {error}\n")
    sys.exit(code)


def split_statements(text: str) -> Iterator[str]:
    """Cut behind each semicolon that ends a statement; SQLite itself knows which do."""
    start = end = 0
    while (end := text.find(";", end) + 1) > 0:
        if sqlite3.complete_statement(text[start:end]):
            yield text[start:end]
            start = end
    if text[start:].strip():
        yield text[start:]


def _print_rows(cursor: sqlite3.Cursor) -> None:
    write, separator = sys.stdout.write, "["
    while rows := cursor.fetchmany(BATCH):
        write(separator + json.dumps([[_json_value(each) for each in row] for row in rows])[1:-1])
        separator = ", "
    ending = "[]\n" if separator == "[" else "]\n"
    write(ending)


def _json_value(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if isinstance(value, float) and math.isinf(value):
        return {"float": repr(value)}
    return value


def _decode_text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
