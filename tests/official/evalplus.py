# SPDX-License-Identifier: Apache-2.0
"""HumanEval+ and MBPP+: programs that are right, wrong, or right with another kind of result."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.official.evalplus_tasks import TASKS, Task, programs
from tests.official.recording import Case, commit, write

_NEAR = """
def _near(one, two):
    if isinstance(two, float):
        return type(one) is float and abs(one - two) < 1e-6
    if isinstance(two, list):
        return type(one) is list and len(one) == len(two) and all(map(_near, one, two))
    return one == two
"""
SOURCE = "github.com/evalplus/evalplus"


def attempts() -> Iterator[tuple[int, str]]:
    """(place of the task, program)"""
    draw = random.Random("evalplus")
    for place, task in enumerate(TASKS):
        for code in dict.fromkeys(programs(task, draw)):
            yield place, code


def raw(task: Task) -> dict[str, Any]:
    """The task as EvalPlus' file of release 0.1.10 (HumanEval+) or 0.2.0 (MBPP+) would have it."""
    texts = [f"    assert _near(candidate(*{arguments!r}), _right(*{arguments!r}))" for arguments in task.base]
    right = task.code.replace(f"{task.entry}(", "_right(")
    return {
        "task_id": f"{task.dataset}/{1000 + TASKS.index(task)}",
        "entry_point": task.entry,
        "prompt": "",
        "canonical_solution": task.code,
        "base_input": task.base,
        "plus_input": task.plus,
        "atol": task.atol,
        "test": "\n".join([right, _NEAR, "def check(candidate):", *texts]),
    }


def record(checkout: Path) -> int:
    """Needs a Python with what evalplus needs, named by the variable EVALPLUS_PYTHON.

    The programs run in name spaces of their own, without network.
    """
    run = ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", os.environ["EVALPLUS_PYTHON"]]
    paths = {**os.environ, "PYTHONPATH": f"{checkout}:{Path.cwd()}"}
    program = [*run, "-m", "tests.official.evalplus"]
    printed = subprocess.run(program, stdout=subprocess.PIPE, text=True, check=True, env=paths).stdout
    cases: list[Case] = [
        {"place": place, "code": code, "official": json.loads(verdict)}
        for (place, code), verdict in zip(attempts(), printed.splitlines(), strict=True)
    ]
    return write("evalplus", SOURCE, commit(checkout), cases)


def _originals() -> Iterator[str]:
    """Runs in the other Python, which has none of this repository."""
    from evalplus.evaluate import MBPP_OUTPUT_NOT_NONE_TASKS, check_correctness  # type: ignore[import-not-found]
    from evalplus.gen.util import trusted_exec  # type: ignore[import-not-found]

    for place, code in attempts():
        task = TASKS[place]
        expected: dict[str, Any] = {}
        for kind, inputs in (("base", task.base), ("plus", task.plus)):
            expected[kind], expected[f"{kind}_time"] = trusted_exec(
                task.code,
                inputs,
                task.entry,
                record_time=True,
                output_not_none=task.entry in MBPP_OUTPUT_NOT_NONE_TASKS,
            )
        result = check_correctness(task.dataset, 0, raw(task), code, expected)
        base = result["base"][0] == "pass"
        yield json.dumps([base, base and result["plus"][0] == "pass"])


if __name__ == "__main__":
    for line in _originals():
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
