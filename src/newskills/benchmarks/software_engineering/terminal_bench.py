# SPDX-License-Identifier: Apache-2.0
"""Tasks to be done in a terminal (The Terminal-Bench Team 2025, https://www.tbench.ai)."""

import yaml

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row


def row(raw: Row, index: int) -> Row:
    """`task.yaml` of a task's folder; its container and tests stay in the repository."""
    task = yaml.safe_load(raw["text"])
    return {
        "id": raw["_file"].split("/")[-2],
        "question": task["instruction"],
        "difficulty": task["difficulty"],
        "category": task["category"],
        "tags": task["tags"],
        "max_agent_timeout_sec": task["max_agent_timeout_sec"],
        "subset_for_metrics": task["difficulty"],
    }


BENCHMARK = Benchmark(
    name="terminal-bench",
    category="software-engineering",
    title="Terminal-Bench: tasks in a terminal",
    sources=(
        Source(github="laude-institute/terminal-bench", ref="main", members="*tasks/*/task.yaml", format="text"),
    ),
    row=row,
    grader="",
    metric="swe-bench",
    solver="software_agent",
    licence="Apache-2.0",
    homepage="https://www.tbench.ai",
    unverified=True,
    traps=(
        "Agents and tests run in a container per task, outside of newskills: it prepares the instructions only.",
    ),
)
