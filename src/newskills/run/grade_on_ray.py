# SPDX-License-Identifier: Apache-2.0
"""`ns grade --executor=ray`: ranges of many files are graded by tasks of Ray Data, and come back in order."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from newskills.base.errors import DataError, NewskillsError
from newskills.base.ray_data import ray_tasks
from newskills.base.reading.row_files import is_plain, place_in, row_lines
from newskills.base.records import Row
from newskills.base.store import decode_row, encode_line, open_for_reading
from newskills.graders import make_grader
from newskills.run.grade import grade_rows, with_answers, without_reasoning
from newskills.sandbox.config import SandboxConfig

RANGE_BYTES = 4 << 20
"""Bytes that a task grades; a range ends with a line."""


class FileRange(Struct, frozen=True):
    """Bytes `start` to `end` of a file, the first of which begins line `line`; `end` 0: all of a file that is packed
    or has no lines."""

    path: str
    start: int
    end: int
    line: int

    def rows(self) -> Iterator[tuple[str, Row]]:
        """Yield (file and line, row). Raises DataError, as `read_rows` does."""
        path = Path(self.path)
        with open_for_reading(path) as file:
            lines = row_lines(file, path)
            if self.end:
                file.seek(self.start)
                lines = iter(enumerate(io.BytesIO(file.read(self.end - self.start)), self.line))
            for place, line in lines:
                if line.strip():
                    yield place_in(path, place), decode_row(line, path, place)


class RangeGrader:
    """What a task does. `rows` are lines of JSON; `error` is for people, and empty where there is none."""

    def __init__(self, grader: str, config: Row, sandbox: SandboxConfig, end_reasoning: str = "") -> None:
        self.grader, self.config, self.sandbox = grader, config, sandbox
        self.end_reasoning = end_reasoning

    def __call__(self, item: dict[str, Any]) -> dict[str, Any]:
        lines: list[bytes] = []
        error = ""
        try:
            rows = with_answers(FileRange(**item).rows(), make_grader(self.grader, self.config))
            if self.end_reasoning:
                rows = without_reasoning(rows, self.end_reasoning)
            lines.extend(map(encode_line, grade_rows(rows, self.grader, self.config, self.sandbox, processes=1)))
        except NewskillsError as problem:
            error = str(problem)
        return {"rows": b"".join(lines), "error": error}


def file_ranges(files: Sequence[str], size: int = RANGE_BYTES) -> Iterator[FileRange]:
    """Yield ranges of bytes that cover all of the files, in order. Raises DataError."""
    for name in files:
        with open_for_reading(Path(name)) as file:
            if not is_plain(file, Path(name)):
                yield FileRange(name, 0, 0, 1)
                continue
            start, line = 0, 1
            while text := file.read(size):
                text += file.readline()
                yield FileRange(name, start, start + len(text), line)
                start, line = start + len(text), line + text.count(b"\n")


def grade_on_ray(
    files: Sequence[str],
    grader: str,
    config: Row,
    sandbox: SandboxConfig,
    *,
    size: int = RANGE_BYTES,
    end_reasoning: str = "",
) -> Iterator[Row]:
    """Yield all rows of these files graded, as `grade_rows` does. Raises DataError with what a task said, and as
    `ray_tasks`."""
    make_grader(grader, config)
    work = RangeGrader(grader, config, sandbox, end_reasoning)
    with ray_tasks() as do:
        for result in do(work.__call__, map(structs.asdict, file_ranges(files, size))):
            for number, line in enumerate(result["rows"].splitlines(), 1):
                yield decode_row(line, Path("a task of Ray"), number)
            if result["error"]:
                raise DataError(result["error"])
