# SPDX-License-Identifier: Apache-2.0
"""Workbooks (xlsx, xlsm, xlsb) as text, for prompts that hold what is in them."""

from __future__ import annotations

import io
from datetime import date, datetime, time, timedelta

from newskills.base.errors import ConfigError

SUFFIXES = (".xlsx", ".xlsm", ".xlsb")
_MIDNIGHT = time()


def workbook_text(name: str, data: bytes) -> str:
    """Return the text of all sheets: their names, and their rows with tabs between the cells; empty rows and
    columns at the edges are left out. Raises ValueError for what is no workbook, ConfigError where the reader is
    not installed."""
    try:
        from python_calamine import CalamineError, load_workbook
    except ImportError as error:
        raise ConfigError(
            "Reading workbooks needs the extra newskills[excel].",
            hint="Install it: pip install 'newskills[excel]'.",
        ) from error
    try:
        book = load_workbook(io.BytesIO(data))
        sheets = [(title, book.get_sheet_by_name(title).to_python()) for title in book.sheet_names]
    except CalamineError as error:
        raise ValueError(f"{name} is not a workbook: {error}") from error
    parts = [
        f"Sheet: {title}\n" + "\n".join("\t".join(map(_cell_text, row)).rstrip() for row in rows)
        for title, rows in sheets
    ]
    return f"Workbook: {name}\n\n" + "\n\n".join(parts)


def _cell_text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, datetime):
        return str(value.date() if value.time() == _MIDNIGHT else value)
    if isinstance(value, date | time | timedelta):
        return str(value)
    return " ".join(str(value).split())
