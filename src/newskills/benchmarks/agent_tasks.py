# SPDX-License-Identifier: Apache-2.0
"""Tasks of one's own for agents: a folder for each, with the issue, the repository, the tests.

tasks/fix-sum/task.yaml         image, test_command; test_timeout, repository_dir, FAIL_TO_PASS, PASS_TO_PASS
tasks/fix-sum/issue.md          what the agent reads
tasks/fix-sum/repository/       what it changes; left out where the image holds it
tasks/fix-sum/tests/            files that are laid over the repository when it is judged
tasks/fix-sum/solution.patch    a right answer, if there is one
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import yaml
from msgspec import Struct

from newskills.base.benchmark import Benchmark
from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.base.type_errors import type_fault

TASK = "task.yaml"


class TaskFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`task.yaml`. `test_timeout` in seconds; `repository_dir` is where the repository lies in the container."""

    image: str
    test_command: str
    test_timeout: float = 1800.0
    repository_dir: str = "/testbed"
    FAIL_TO_PASS: list[str] = []
    PASS_TO_PASS: list[str] = []


KEYS = ", ".join(TaskFile.__struct_fields__)


def task_set(name: str, folder: Path | str, **fields: Any) -> Benchmark:
    """Return a benchmark of all task folders below `folder`; `fields` are further ones of `Benchmark`.

    Its `generate_rows` raises DataError for a folder that is no task.
    """

    def rows(split: str) -> Iterator[Row]:
        return task_rows(Path(folder))

    return Benchmark(
        **{
            "name": name,
            "category": "software-engineering",
            "title": name,
            "generate_rows": rows,
            "reads": str(Path(folder).expanduser().resolve()),
            "prompt": "eval/swe-bench/issue",
            "grader": "software_tests",
            "metric": "swe-bench",
            "solver": "software_agent",
            **fields,
        }
    )


def task_rows(folder: Path) -> Iterator[Row]:
    """Yield the rows of all tasks below `folder`, by name. Raises DataError."""
    tasks = sorted(file.parent for file in folder.glob(f"*/{TASK}"))
    if not tasks:
        raise DataError(f"There is no task below {folder}: a task is a folder with {TASK}.")
    for task in tasks:
        yield _task_row(task.resolve())


def _task_row(task: Path) -> Row:
    file = task / TASK
    raw: Any = None
    try:
        raw = yaml.safe_load(file.read_text("utf-8"))
        settings = msgspec.convert(raw, TaskFile)
        issue = (task / "issue.md").read_text("utf-8")
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise DataError(f"{file}{line}, is not valid YAML: {error.problem}.") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise DataError(f"{file} cannot be read: {error}.") from error
    except msgspec.ValidationError as error:
        raise DataError(f"{file}: {type_fault(error, raw)}.", hint=f"Keys of such a file: {KEYS}.") from error
    except OSError as error:
        raise DataError(f"{error.filename} cannot be read: {error.strerror}.") from error
    tests, repository, solution = task / "tests", task / "repository", task / "solution.patch"
    if not any(path.is_file() for path in tests.rglob("*")):
        raise DataError(f"Task {task.name} has no tests: put them into {tests}.")
    return {
        "id": task.name,
        "instance_id": task.name,
        "repo": task.name,
        "base_commit": "HEAD",
        "problem_statement": issue.strip(),
        "image": settings.image,
        "container_repo_dir": settings.repository_dir,
        "repository": str(repository) if repository.is_dir() else "",
        "tests": str(tests),
        "test_command": settings.test_command,
        "test_timeout": settings.test_timeout,
        "FAIL_TO_PASS": settings.FAIL_TO_PASS,
        "PASS_TO_PASS": settings.PASS_TO_PASS,
        "patch": solution.read_bytes().decode("utf-8", "replace") if solution.is_file() else "",
    }
