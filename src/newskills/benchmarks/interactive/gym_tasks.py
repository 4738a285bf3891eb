# SPDX-License-Identifier: Apache-2.0
"""Tasks of NeMo Gym: rows of a file in its own form, whose answers a resources server verifies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from newskills.base.errors import DataError
from newskills.base.reading.row_files import place_in, row_lines
from newskills.base.records import Row

IDENTITIES = ("id", "uuid", "task_id", "instance_id", "problem_id")
"""Fields of a row that may name it; taken where all rows have one of their own."""


def gym_rows(file: Path, environment: str) -> Iterator[Row]:
    """Yield the tasks of a file for a server: its address, or the name of its configuration. Raises DataError for a
    row that is none."""
    from newskills.solve.interactive.gym_environment import read_task

    rows = list(_read_tasks(file))
    names = _task_ids([row for _, row in rows])
    for name, (where, row) in zip(names, rows, strict=True):
        messages = read_task(row, where).messages
        questions = [message.content for message in messages if message.role == "user"]
        last = questions[-1] if questions else messages[-1].content
        if isinstance(last, str):
            problem = last
        else:
            problem = "\n".join(str(part.get("text", "")) for part in last or ())
        yield {"id": name, "problem": problem, "environment": environment, "gym_row": row}


def _read_tasks(file: Path) -> Iterator[tuple[str, Row]]:
    try:
        with file.open("rb") as opened:
            for place, line in row_lines(opened, file):
                if not line.strip():
                    continue
                where = place_in(file, place)
                try:
                    row = msgspec.json.decode(line)
                except msgspec.DecodeError as error:
                    raise DataError(f"{where}: invalid JSON ({error}).") from error
                if not isinstance(row, dict):
                    raise DataError(f"{where}: expected a JSON object.")
                yield where, row
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror}.") from error


def _task_ids(rows: list[Row]) -> list[str]:
    for field in IDENTITIES:
        names = [str(row[field]) for row in rows if isinstance(row.get(field), str | int)]
        if len(set(names)) == len(rows):
            return names
    return [str(number) for number in range(len(rows))]
