# SPDX-License-Identifier: Apache-2.0
"""Many tiny tasks: each asks for one file, and needs no more than a shell and git."""

from __future__ import annotations

from pathlib import Path

BENCHMARK = """
from newskills.benchmarks.agent_tasks import task_set

BENCHMARK = task_set("small", {folder!r})
"""
REPLY = "```bash\nsleep {seconds}; echo x > new.txt; echo SUBMIT_CHANGES\n```"
"""What solves any of them."""


def small_tasks(folder: Path, count: int, image: str) -> None:
    """`folder/small.py`, a benchmark of `count` tasks."""
    for number in range(count):
        task = folder / "tasks" / f"task-{number:02}"
        for name, text in (
            ("task.yaml", f"image: {image}\ntest_command: test -f new.txt && test -f tests/mark\n"),
            ("issue.md", f"The file new.txt is missing ({number})."),
            ("repository/old.txt", "old\n"),
            ("tests/tests/mark", "here\n"),
        ):
            (task / name).parent.mkdir(parents=True, exist_ok=True)
            (task / name).write_text(text)
    (folder / "small.py").write_text(BENCHMARK.format(folder=str(folder / "tasks")))
