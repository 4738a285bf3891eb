# SPDX-License-Identifier: Apache-2.0
"""Weighted criteria of a described benchmark: a list in its file, a file of their own, or a column of its rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from newskills.base.errors import ConfigError, DataError
from newskills.base.records import Row
from newskills.base.store import read_rows
from newskills.base.type_errors import PLACE_PATTERN, type_fault
from newskills.benchmarks.files.format import BenchmarkFile, Criterion
from newskills.benchmarks.files.positions import MarkedDocument, read_document

ROLE = "rubrics"
"""Column with the criteria of one row."""
_JSON_LINES = (".jsonl", ".ndjson")


def rubric_of(file: BenchmarkFile, document: MarkedDocument, home: Path) -> tuple[Row, ...]:
    """Return the criteria of all rows, each with a name. Raises ConfigError for a file that cannot be read, and for
    criteria that do not fit."""
    rubric = file.rubric
    if rubric is None:
        return ()
    if isinstance(rubric, str):
        values = _read_criteria(home / rubric, document)
    else:
        values = msgspec.to_builtins(rubric)
    try:
        criteria = criteria_of(values)
    except ValueError as error:
        raise document.fault(("rubric",), f"{error}.") from error
    named = [{"name": f"criterion_{number}", **row} for number, row in enumerate(criteria, 1)]
    names = [row["name"] for row in named]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise document.fault(("rubric",), f"two criteria have the name '{twice}'.")
    return tuple(named)


def criteria_of(value: Any) -> list[Row]:
    """Return the criteria of a list, or of the text of one in JSON; those without a name have none. Raises ValueError
    saying which does not fit."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except json.JSONDecodeError as error:
            raise ValueError(f"{value[:60]!r} is not a list of criteria in JSON") from error
    if not isinstance(value, Sequence) or not value:
        raise ValueError("a rubric is a list of criteria: [{criterion: TEXT, points: NUMBER}, …]")
    rows = []
    for number, item in enumerate(value, 1):
        try:
            criterion = msgspec.convert(item, Criterion)
        except msgspec.ValidationError as error:
            place = PLACE_PATTERN.search(str(error))
            key = place["path"].lstrip(".") if place else ""
            wrong = item.get(key) if isinstance(item, dict) and key else item
            what = type_fault(msgspec.ValidationError(PLACE_PATTERN.sub("", str(error))), wrong)
            raise ValueError(f"criterion {number}: {f'{key}: ' if key else ''}{what}") from error
        rows.append({name: part for name, part in msgspec.to_builtins(criterion).items() if part not in ("", [])})
    return rows


def _read_criteria(path: Path, document: MarkedDocument) -> Any:
    try:
        if path.suffix in _JSON_LINES:
            return list(read_rows(path))
        return read_document(path).values["criteria"]
    except KeyError as error:
        raise document.fault(
            ("rubric",), f"{path} has no key 'criteria'.", hint="Write criteria: and below it the list."
        ) from error
    except (ConfigError, DataError) as error:
        raise document.fault(("rubric",), error.message, hint=error.hint) from error
