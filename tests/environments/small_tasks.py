# SPDX-License-Identifier: Apache-2.0
"""Many tiny tasks: each asks for one file, and needs no more than a shell and git."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.commands.running import ns, rows_of
from tests.environments.images import ENGINE
from tests.environments.tasks import texts_of

BENCHMARK = """
from newskills.benchmarks.agent_tasks import task_set

BENCHMARK = task_set("small", {folder!r})
"""
REPLY = "```bash\nsleep {seconds}; echo x > new.txt; echo SUBMIT_CHANGES\n```"
"""What solves any of them."""
SOLUTION = """diff --git a/new.txt b/new.txt
new file mode 100644
--- /dev/null
+++ b/new.txt
@@ -0,0 +1 @@
+x
"""
_NUMBER = re.compile(r"new\.txt is missing \((\d+)\)")


def small_tasks(folder: Path, count: int, image: str) -> None:
    """`folder/small.py`, a benchmark of `count` tasks."""
    for number in range(count):
        task = folder / "tasks" / f"task-{number:02}"
        for name, text in (
            ("task.yaml", f"image: {image}\ntest_command: test -f new.txt && test -f tests/mark\n"),
            ("issue.md", f"The file new.txt is missing ({number})."),
            ("repository/old.txt", "old\n"),
            ("tests/tests/mark", "here\n"),
            ("solution.patch", SOLUTION),
        ):
            (task / name).parent.mkdir(parents=True, exist_ok=True)
            (task / name).write_text(text)
    (folder / "small.py").write_text(BENCHMARK.format(folder=str(folder / "tasks")))


def prepared_small_tasks(folder: Path, count: int, image: str) -> dict[str, str]:
    """The same, prepared; the environment that finds it."""
    small_tasks(folder, count, image)
    env = {"NEWSKILLS_DATA_DIR": str(folder / "data")}
    made = ns("ns prepare_data ./small.py", cwd=folder, env=env, timeout=500)
    assert made.returncode == 0, made.stderr
    return env


def evaluated(folder: Path, env: dict[str, str], url: str, *more: str) -> str:
    """What `ns eval` of them by the agent `bash` says."""
    line = (
        f"ns eval --benchmarks=./small.py ++agent=bash --server_type=vllm --server_address={url} --model=fake "
        f"--output_dir=results ++environment.engine={ENGINE}"
    )
    done = ns(line, *more, cwd=folder, env=env, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def records_of(folder: Path, results: str = "results") -> list[dict[str, Any]]:
    return rows_of(folder / results / "eval-results/small/output.jsonl")


def task_number(body: dict[str, Any]) -> int:
    """The task that a request is about."""
    match = _NUMBER.search(texts_of(body))
    assert match is not None
    return int(match[1])
