# SPDX-License-Identifier: Apache-2.0
"""Paid tasks of freelance engineers on one application (Miserendino et al. 2025, arXiv:2502.12115)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row


def row(raw: Row, index: int) -> Row:
    """Map a row; `price` in dollars, `manager_data` only where the task is to choose among proposals."""
    return {
        "id": f"{raw['question_id']}-{raw['variant']}",
        "question": raw["prompt"],
        "variant": raw["variant"],
        "price": float(raw["price"]),
        "manager_data": raw["manager_data"],
        "subset_for_metrics": raw["variant"],
    }


BENCHMARK = Benchmark(
    name="swe-lancer",
    category="software-engineering",
    title="SWE-Lancer: freelance tasks with their prices",
    sources=(
        Source(
            github="openai/preparedness",
            ref="main",
            members="project/swelancer/all_swelancer_tasks.csv",
            format="csv",
        ),
    ),
    row=row,
    grader="",
    metric="swe-bench",
    solver="software_agent",
    items={"test": 463},
    licence="MIT",
    homepage="https://github.com/openai/preparedness",
    citation="arXiv:2502.12115",
    unverified=True,
    traps=(
        "Agents and tests run in a container per task, outside of newskills: it prepares the tasks only.",
        "The score of the paper is dollars earned, which is not computed; `price` has what a task pays.",
    ),
)
