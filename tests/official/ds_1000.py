# SPDX-License-Identifier: Apache-2.0
"""DS-1000: invented tasks in its form, but for its libraries, and code that is right, wrong or odd, by its executor."""

from __future__ import annotations

import ast
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from tests.official.evalplus_tasks import changed
from tests.official.recording import Case, commit, write

SOURCE = "github.com/xlang-ai/DS-1000, its copy in Soul22238/EECS487GroupProject"
_FORM = '''
import copy

def generate_test_case(number):
    def generate_ans(data):
        {names} = data
{right}
        return result

    test_input = {inputs}[number - 1]
    return test_input, generate_ans(copy.deepcopy(test_input))

def exec_test(result, ans):
    assert result == ans
    return 1

exec_context = r"""
{names} = test_input
{before}[insert]
{after}
"""

def test_execution(solution: str):
    code = exec_context.replace("[insert]", solution)
    for i in range(2):
        test_input, expected_result = generate_test_case(i + 1)
        test_env = {{"test_input": test_input}}
        exec(code, test_env)
        assert exec_test(test_env["result"], expected_result)
'''
_STRING = """
def test_string(solution: str):
    import ast
    kinds = [type(node).__name__ for node in ast.walk(ast.parse(solution))]
    assert "For" not in kinds and "While" not in kinds
"""


class _Task(Struct, frozen=True):
    """`head` and `tail` stand around the code; `string`: a test of the code itself."""

    names: str
    right: str
    inputs: str
    head: str = ""
    tail: str = ""
    string: str = ""


_TASKS = {
    "total": _Task(
        "values", "total = 0\nfor value in values:\n    total += value * value\nresult = total", "[[1, 2, 3], []]"
    ),
    "words": _Task(
        "text",
        "words = text.split()\nresult = [word.upper() for word in words if len(word) > 2]",
        "['a few words here', '']",
    ),
    "pairs": _Task(
        "a, b", "result = {x: y + 1 for x, y in zip(a, b)}", "[([1, 2], [3, 4]), ([], [])]", string=_STRING
    ),
    "function": _Task(
        "items",
        "    kept = [x for x in items if x > 1]\n    return kept[::-1]",
        "[[1, 2, 3], [0, 9]]",
        head="def f(items):\n",
        tail="result = f(items)",
    ),
    "rounds": _Task("x, n", "result = round(x / n, 2)\nif result < 0:\n    result = 0", "[(7, 3), (-7, 3)]"),
    "counts": _Task(
        "names",
        "counts = {}\nfor name in names:\n    counts[name] = counts.get(name, 0) + 1\nresult = sorted(counts.items())",
        "[['b', 'a', 'b'], []]",
    ),
    "limits": _Task("x", "low = min(x)\nhigh = max(x)\nresult = [high - low, len(x)]", "[[3, 1, 2], [5]]"),
    "flags": _Task(
        "a, b", "result = [x > y for x, y in zip(a, b)]", "[([1, 5], [2, 4]), ([], [])]", string=_STRING
    ),
    "parts": _Task(
        "text",
        "first, _, rest = text.partition(':')\nresult = (first.strip(), rest.strip().lower())",
        "['Name : Ann Lee', 'none']",
    ),
    "steps": _Task(
        "n",
        "    out = []\n    for i in range(0, n, 2):\n        out.append(i * 3)\n    return out",
        "[7, 0]",
        head="def f(n):\n",
        tail="result = f(n)",
    ),
}
_ODD = (
    "pass",
    "result = None",
    "result = absent_name",
    "import absent_module",
    "raise ValueError('no')",
    "raise SystemExit(0)",
    "import sys; sys.exit(0)",
    "import os; os._exit(0)",
    "quit()",
    "result = input()",
    "result = (",
    "assert False",
    "test_input = 0",
    "class Same:\n    def __eq__(self, other):\n        return True\n\nresult = Same()",
    "print('ready' * 10_000)",
    "open('file.txt', 'w').write('x')",
    "result = [][1]",
    "def result(): return 1",
    "del test_input",
)
_AROUND = (
    *("{code}\nprint(result)", "import math\n{code}", "{code}\nassert 1 == 2", "{code}\nraise SystemExit(0)"),
    *(
        "{code}\n\n\n",
        "\n\n{code}",
        "# as asked\n{code}",
        "{code};",
        "{code}\n    result = 1",
        "{code}\nresult = result",
    ),
)


def raw(name: str) -> dict[str, Any]:
    """The task as a row of the benchmark."""
    task = _TASKS[name]
    inside = f"{task.head}{task.right}\n{task.tail}"
    indented = "\n".join(f"        {line}" for line in inside.splitlines())
    form = _FORM.format(names=task.names, right=indented, inputs=task.inputs, before=task.head, after=task.tail)
    return {
        "prompt": "",
        "reference_code": task.right,
        "code_context": form + task.string,
        "metadata": {"problem_id": name, "library": "none", "perturbation_type": "Origin"},
    }


def attempts() -> Iterator[tuple[str, str]]:
    """(name of the task, code)"""
    draw = random.Random("ds-1000")
    for name, task in _TASKS.items():
        indent = "    " if task.head else ""
        texts = [ast.unparse(tree) for tree in changed(ast.parse(f"{task.head}{task.right}"))]
        mutants = list(dict.fromkeys(text.partition("\n")[2] if task.head else text for text in texts))
        codes = [task.right, *draw.sample(mutants, min(14, len(mutants)))]
        codes += ["\n".join(f"{indent}{line}" if line else line for line in odd.split("\n")) for odd in _ODD]
        codes += [around.format(code=task.right) for around in _AROUND]
        yield from ((name, code) for code in dict.fromkeys(codes))


def record(checkout: Path) -> int:
    """The programs run in name spaces of their own, without network."""
    run = ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", sys.executable]
    paths = {**os.environ, "PYTHONPATH": f"{checkout / 'DS-1000-dataset'}:{Path.cwd()}"}
    program = [*run, "-m", "tests.official.ds_1000"]
    printed = subprocess.run(program, stdout=subprocess.PIPE, text=True, check=True, env=paths).stdout
    cases: list[Case] = [
        {"task": name, "code": code, "official": verdict == "true"}
        for (name, code), verdict in zip(attempts(), printed.splitlines(), strict=True)
    ]
    return write("ds_1000", SOURCE, commit(checkout), cases)


def _originals() -> Iterator[str]:
    from execution import check_correctness  # type: ignore[import-not-found]

    for name, code in attempts():
        context = raw(name)["code_context"]
        end = "test_string(code)\n" if "test_string(" in context else "\n"
        program = f"{context}\ncode = {code!r}\ntest_execution(code)\n{end}"
        yield json.dumps(check_correctness(program, timeout=10.0)["passed"])


if __name__ == "__main__":
    for line in _originals():
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
