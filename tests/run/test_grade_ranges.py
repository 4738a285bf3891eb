# SPDX-License-Identifier: Apache-2.0
"""What tasks of Ray grade: ranges of files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.base.reading.row_forms import FORMS

from newskills.base.errors import DataError
from newskills.base.store import read_rows
from newskills.run.grade_on_ray import RangeGrader, file_ranges
from newskills.sandbox.config import SandboxConfig


def files(folder: Path) -> list[str]:
    paths = [folder / f"{name}.jsonl" for name in ("first", "empty", "second")]
    for path in paths:
        rows = [
            {
                "id": f"{path.stem}-{number}",
                "expected_answer": str(number),
                "generation": f"\\boxed{{{number % 7}}}",
            }
            for number in range(0 if path.stem == "empty" else 40)
        ]
        path.write_text("".join(f"{json.dumps(row)}\n\n" for row in rows).rstrip("\n"))
    return [str(path) for path in paths]


@pytest.mark.parametrize("size", [1, 100, 1 << 20])
def test_ranges_are_all_rows_in_order(tmp_path: Path, size: int) -> None:
    paths = files(tmp_path)
    parts = list(file_ranges(paths, size))
    assert [row for part in parts for _, row in part.rows()] == [
        row for path in paths for row in read_rows(Path(path))
    ]
    assert {part.path for part in parts} == {paths[0], paths[2]}


def test_a_row_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"generation": "1"}\n\n{"generation": "2"}\nnonsense\n')
    *_, last = file_ranges([str(path)], 10)
    with pytest.raises(DataError, match=r"bad.jsonl, line 4: invalid JSON"):
        list(last.rows())
    result = RangeGrader("math", {}, SandboxConfig())({"path": str(path), "start": 0, "end": 100, "line": 1})
    assert "bad.jsonl, line 4: invalid JSON" in result["error"]
    path.write_text('{"generation": "1"}\n\n{"reply": "2"}\n')
    result = RangeGrader("math", {}, SandboxConfig())({"path": str(path), "start": 0, "end": 100, "line": 1})
    assert "bad.jsonl, line 3 has no `generation`" in result["error"]


@pytest.mark.parametrize("name", ["rows.jsonl.gz", "rows.csv", "array.json"])
def test_files_without_lines_to_seek_are_one_range(tmp_path: Path, name: str) -> None:
    rows = [{"id": str(n), "expected_answer": "1", "generation": f"It is {n}."} for n in range(9)]
    path = tmp_path / name
    path.write_bytes(FORMS[name](rows))
    (part,) = file_ranges([str(path)], 10)
    assert [row for _, row in part.rows()] == rows
