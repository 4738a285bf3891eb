# SPDX-License-Identifier: Apache-2.0
"""Folders with tasks for agents: what is wrong with one is said with its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from newskills.base.errors import DataError
from newskills.base.store import read_rows
from newskills.benchmarks.agent_tasks import task_rows, task_set
from newskills.benchmarks.data import load_rows, prepare

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


@pytest.mark.parametrize(
    "changed",
    [{"task.yaml": "image: b:2\ntest_command: make test\n"}, {"issue.md": "Another.\n"}, {"repository/a.py": "1"}],
    ids=lambda files: next(iter(files)),
)
def test_tasks_that_were_changed_are_prepared_again_and_not_used_before(
    tmp_path: Path, changed: dict[str, str]
) -> None:
    tasks, data = tmp_path / "tasks", tmp_path / "data"
    write(tasks, GOOD)
    benchmark = task_set("mine", tasks)
    first, second = (prepare(benchmark, data_dir=data).splits[0] for _ in range(2))
    assert (first.fresh, second.fresh) == (True, False)
    assert load_rows(benchmark, data_dir=data) == first.path
    write(tasks, changed)
    with pytest.raises(DataError, match="before the files from which it is made were changed") as caught:
        load_rows(benchmark, data_dir=data, asked_name="./mine.py")
    assert caught.value.hint == "Run: ns prepare_data ./mine.py"
    assert prepare(benchmark, data_dir=data).splits[0].fresh
    assert load_rows(benchmark, data_dir=data) == first.path
    (tasks / "one").rename(tasks / "two")
    assert prepare(benchmark, data_dir=data).splits[0].fresh
    assert [row["id"] for row in read_rows(first.path)] == ["two"]


def test_where_the_tasks_do_not_lie_their_prepared_rows_are_used(tmp_path: Path) -> None:
    write(tmp_path / "tasks", GOOD)
    benchmark = task_set("mine", tmp_path / "tasks")
    path = prepare(benchmark, data_dir=tmp_path / "data").splits[0].path
    (tmp_path / "tasks").rename(tmp_path / "gone")
    assert load_rows(benchmark, data_dir=tmp_path / "data") == path


def test_data_is_prepared_again_on_demand(tmp_path: Path) -> None:
    write(tmp_path / "tasks", GOOD)
    benchmark = task_set("mine", tmp_path / "tasks")
    made = [prepare(benchmark, data_dir=tmp_path / "data", force=force).splits[0].fresh for force in (False, True)]
    assert made == [True, True]
