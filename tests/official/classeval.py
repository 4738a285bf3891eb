# SPDX-License-Identifier: Apache-2.0
"""ClassEval: invented classes in the benchmark's form, and solutions that were broken in many ways."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.official.recording import Case, commit, write

SOURCE = "github.com/FudanSELab/ClassEval"
_ATTEMPTS = 330
_METHODS: dict[str, dict[str, tuple[str, str]]] = {
    "Wallet": {
        "pay": ("def pay(self, sum):\n    self.total -= sum\n    return self.total", "x.pay(3) == 7"),
        "earn": ("def earn(self, sum):\n    self.total += sum\n    return self.total", "x.earn(3) == 13"),
        "coins": ("@staticmethod\ndef coins(sum):\n    return [sum // 5, sum % 5]", "x.coins(12) == [2, 2]"),
    },
    "Words": {
        "add": ("def add(self, word):\n    self.total += len(word)\n    return self.total", "x.add('ab') == 12"),
        "is_long": ("def is_long(self):\n    return self.total > 9", "x.is_long() is True"),
        "first": ("@staticmethod\ndef first(text):\n    return text.split()[0]", "Words.first('a b') == 'a'"),
        "join": ("def join(self, words):\n    return ' '.join(words)", "x.join(['a', 'b']) == 'a b'"),
    },
    "Stack": {
        "push": (
            "def push(self, item):\n    self.items.append(item)\n    return len(self.items)",
            "x.push(1) == 1",
        ),
        "pop": ("def pop(self):\n    return self.items.pop() if self.items else None", "x.pop() is None"),
        "root": ("def root(self, number):\n    return math.isqrt(number)", "x.root(17) == 4"),
    },
    "Clock": {
        "tick": ("def tick(self):\n    self.total += 1\n    return self.total", "x.tick() == 11"),
        "reset": ("def reset(self):\n    self.total = 0\n    return self", "x.reset().total == 0"),
        "minutes": ("@classmethod\ndef minutes(cls, hours):\n    return hours * 60", "x.minutes(2) == 120"),
    },
}
_BROKEN = (
    "pass",
    "return None",
    "raise ValueError('no')",
    "return self.missing",
    "import absent_module",
    "while True: pass",
)
_WHOLE = ("import sys; sys.exit(0)", "def broken(:", "raise RuntimeError('at load')", "print('loaded')")


def task(name: str) -> Case:
    """The raw row of an invented class."""
    methods = _METHODS[name]
    tests, classes = ["import unittest\n"], []
    for method, (_, check) in methods.items():
        classes.append(f"{name}Test{method.title()}")
        tests.append(_test_class(classes[-1], name, [check, check.replace("==", "!=") and check]))
    classes.append(f"{name}Test")
    tests.append(_test_class(classes[-1], name, [check for _, check in methods.values()]))
    return {
        "task_id": name,
        "test": "\n".join(tests),
        "test_classes": classes,
        "import_statement": ["import math"],
        "solution_code": source(name, {method: code for method, (code, _) in methods.items()}),
    }


def _test_class(test: str, name: str, checks: list[str]) -> str:
    parts = [f"class {test}(unittest.TestCase):"]
    for number, check in enumerate(checks, 1):
        parts.append(f"    def test_{number}(self):\n        x = {name}()\n        self.assertTrue({check})\n")
    return "\n".join(parts)


def source(name: str, methods: dict[str, str]) -> str:
    body = "\n\n".join("\n".join(f"    {line}" for line in code.split("\n")) for code in methods.values())
    return f"class {name}:\n    def __init__(self):\n        self.total, self.items = 10, []\n\n{body}\n"


def attempt(draw: random.Random) -> tuple[str, str]:
    """(task, code) with up to two broken methods."""
    name = draw.choice(sorted(_METHODS))
    codes = {method: code for method, (code, _) in _METHODS[name].items()}
    for method in draw.sample(sorted(codes), draw.choice((0, 0, 1, 1, 1, 2))):
        way = draw.random()
        head = next(line for line in codes[method].split("\n") if line.startswith("def"))
        if way < 0.15:
            del codes[method]
        elif way < 0.3:
            codes[method] = codes[method].replace("@staticmethod\n", "")
        elif way < 0.4:
            codes[method] = f"@staticmethod\n{codes[method]}"
        elif way < 0.5:
            codes[method] = codes[method].replace("self, ", "").replace("(self)", "()")
        else:
            weights = (20, 20, 20, 20, 20, 3)
            codes[method] = f"{head}\n    {draw.choices(_BROKEN, weights)[0]}"
    code = source(name, codes)
    if draw.random() < 0.12:
        code = f"{draw.choice(_WHOLE)}\n{code}"
    return name, code


def record(checkout: Path) -> int:
    """Needs a Python with func_timeout and scipy, named by the variable CLASSEVAL_PYTHON."""
    draw = random.Random(5)
    attempts = [attempt(draw) for _ in range(_ATTEMPTS)]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "original"
        shutil.copytree(checkout / "classeval_evaluation", place / "classeval_evaluation")
        (place / "data").mkdir()
        (place / "output/model_output").mkdir(parents=True)
        rows: list[Any] = []
        for number, (name, code) in enumerate(attempts):
            (row := task(name))["task_id"] = f"Task_{number}"
            rows.append({**row, "predict": [f"```python\n{code}```"]})
        (place / "data/ClassEval_data.json").write_text(json.dumps(rows))
        (place / "output/model_output/ours.json").write_text(json.dumps(rows))
        python = os.environ.get("CLASSEVAL_PYTHON", sys.executable)
        run = "from test_pipeline import AutoTest; t = AutoTest('ClassEval_data'); t.tear_down = lambda: None; "
        run += "t.test_pipeline('ours', '../output/model_output/ours.json')"
        subprocess.run(
            [python, "-c", run], cwd=place / "classeval_evaluation", check=True, stdout=subprocess.DEVNULL
        )
        results = json.loads((place / "output/result/ours_class_result.json").read_text())
    cases: list[Case] = []
    for number, (name, code) in enumerate(attempts):
        classes = results.get(f"Task_{number}", {}).get(f"Task_{number}_0", {})
        official = {
            test: result["testsRun"] > 0 and not result["errors"] + result["failures"]
            for test, result in classes.items()
        }
        cases.append({"task": name, "code": code, "official": official})
    return write("classeval", SOURCE, commit(checkout), cases)
