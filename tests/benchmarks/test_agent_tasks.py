# SPDX-License-Identifier: Apache-2.0
"""Folders with tasks for agents: what is wrong with one is said with its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from newskills.base.errors import DataError
from newskills.benchmarks.agent_tasks import task_rows

GOOD = {"task.yaml": "image: a:1\ntest_command: make test\n", "issue.md": "An issue.\n", "tests/check": "true\n"}


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / "one" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "one" / name).write_text(text)


def test_a_folder_is_a_row(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    (row,) = task_rows(tmp_path)
    assert (row["id"], row["problem_statement"], row["test_command"]) == ("one", "An issue.", "make test")
    assert (row["repository"], row["tests"], row["patch"]) == ("", f"{tmp_path}/one/tests", "")


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({}, "There is no task below"),
        (GOOD | {"tests/check": None}, "Task one has no tests: put them into"),
        (GOOD | {"issue.md": None}, r"one/issue\.md cannot be read: No such file"),
        (GOOD | {"task.yaml": "image: [a\n"}, r"one/task\.yaml, line 2, is not valid YAML: expected ',' or ']'"),
        (
            GOOD | {"task.yaml": "image: a\n"},
            r"one/task\.yaml: .*'test_command'\. Keys of such a file: image, test",
        ),
        (
            GOOD | {"task.yaml": "image: a\ntest_commands: b\n"},
            r"'test_commands'\. Keys of such a file: image, test",
        ),
    ],
)
def test_what_is_no_task_is_named(tmp_path: Path, files: dict[str, str | None], sentence: str) -> None:
    write(tmp_path, {name: text for name, text in files.items() if text is not None})
    with pytest.raises(DataError, match=sentence):
        list(task_rows(tmp_path))
