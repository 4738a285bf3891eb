# SPDX-License-Identifier: Apache-2.0
"""HumanEval: completions of its own tasks that are right, wrong or odd, run by the authors' executor."""

from __future__ import annotations

import ast
import gzip
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.official.evalplus_tasks import changed
from tests.official.recording import Case, commit, write

SOURCE = "github.com/openai/human-eval"
FILE = "raw.githubusercontent.com/openai/human-eval/master/data/HumanEval.jsonl.gz"
_TASKS = 54
_ODD = (
    "    pass\n",
    "    return None\n",
    "    raise ValueError('not today')\n",
    "    import sys\n    sys.exit(0)\n",
    "    return absent_name\n",
    "    return (\n",
    "    import absent_module\n",
    "    assert False\n",
    "    return input()\n",
    "    quit()\n",
)
_AROUND = ("{code}\n\nprint('ready')\n", "{code}\n\nraise SystemExit(0)\n", "{code}\n\nassert 1 == 2\n")


Row = dict[str, Any]


def tasks() -> dict[str, Row]:
    """Id → task, out of the offline mirror."""
    path = Path(os.environ["NEWSKILLS_MIRROR"]) / FILE
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return {task["task_id"]: task for task in map(json.loads, lines)}


def attempts() -> Iterator[tuple[str, str]]:
    """(id of the task, completion, or a whole function)"""
    draw = random.Random("human-eval")
    known = tasks()
    for name in draw.sample(sorted(known), _TASKS):
        task = known[name]
        right = task["canonical_solution"]
        whole = ast.parse(task["prompt"] + right)
        mutants = [ast.unparse(tree) for tree in changed(whole)]
        yield name, right
        for text in draw.sample(mutants, min(3, len(mutants))):
            yield name, f"{text}\n"
        yield name, draw.choice(_ODD)
        yield name, draw.choice(_AROUND).format(code=right)


def record(checkout: Path) -> int:
    """The programs run in name spaces of their own, without network."""
    run = ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", sys.executable]
    paths = {**os.environ, "PYTHONPATH": f"{checkout}:{Path.cwd()}"}
    program = [*run, "-m", "tests.official.human_eval"]
    printed = subprocess.run(program, stdout=subprocess.PIPE, text=True, check=True, env=paths).stdout
    cases: list[Case] = [
        {"task": name, "code": code, "official": verdict == "true"}
        for (name, code), verdict in zip(attempts(), printed.splitlines(), strict=True)
    ]
    return write("human_eval", SOURCE, commit(checkout), cases)


def _originals() -> Iterator[str]:
    from human_eval.execution import check_correctness  # type: ignore[import-not-found]

    known = tasks()
    for name, code in attempts():
        completion = code if code.startswith(" ") else f"    pass\n\n{code}"
        yield json.dumps(check_correctness(known[name], completion, timeout=10.0)["passed"])


if __name__ == "__main__":
    for line in _originals():
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
