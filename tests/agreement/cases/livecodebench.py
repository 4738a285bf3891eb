# SPDX-License-Identifier: Apache-2.0
"""LiveCodeBench (arXiv:2403.07974): when what a program prints is what was expected."""

from __future__ import annotations

import importlib
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from newskills.graders.code.stdio import same_text
from tests.agreement.compare import OUTPUTS, Comparison, Verdict

_SECONDS = 6


def rows() -> Iterator[Row]:
    draw = random.Random("livecodebench")
    kinds: Mapping[str, Callable[[], str]] = {
        "number": lambda: str(draw.randint(-50, 10**9)),
        "decimal": lambda: f"{draw.uniform(-9, 9):.6f}",
        "numbers": lambda: " ".join(str(draw.randint(0, 99)) for _ in range(5)),
        "lines": lambda: "\n".join(str(draw.randint(0, 99)) for _ in range(4)),
        "grid": lambda: "\n".join("".join(draw.choices("#.", k=6)) for _ in range(3)),
        "word": lambda: draw.choice(("YES", "No", "Impossible", "Alice", "-1")),
        "table": lambda: "\n".join(f"{draw.randint(0, 9)} {draw.choice('abc')}" for _ in range(3)),
    }
    for kind, make in kinds.items():
        for _ in range(4):
            yield {"task": kind, "expected": f"{make()}\n"}


def forms(row: Row) -> Mapping[str, str]:
    text = row["expected"].strip()
    lines = text.split("\n")
    return {
        "the same": row["expected"],
        "without the last line end": text,
        "blank lines at the end": f"{text}\n\n\n",
        "a blank line first": f"\n{text}",
        "blank lines between": "\n\n".join(lines),
        "blanks at line ends": "\n".join(f"{line}  " for line in lines),
        "blanks at line starts": "\n".join(f"  {line}" for line in lines),
        "two blanks between": text.replace(" ", "  "),
        "tabs between": text.replace(" ", "\t"),
        "commas between": text.replace(" ", ", "),
        "carriage returns": "\r\n".join(lines),
        "one line": " ".join(lines),
        "words on lines": text.replace(" ", "\n"),
        "small letters": text.lower(),
        "decimal point": text.replace("\n", ".0\n") + ".0",
        "more zeros": f"{text}000",
        "zeros in front": f"00{text}",
        "plus sign": f"+{text}",
        "exponent": f"{text}e0",
        "the last line missing": "\n".join(lines[:-1]),
        "a line more": f"{text}\n0",
        "reversed lines": "\n".join(reversed(lines)),
        "the last character missing": text[:-1],
        "the last character twice": text + text[-1],
        "a label": f"Answer: {text}",
        "quotes": f'"{text}"',
        "nothing": "",
    }


def original(folder: Path) -> Verdict:
    """Each text is printed by a program that the harness runs. Needs numpy."""
    sys.path.insert(0, str(folder))
    harness = importlib.import_module("lcb_runner.evaluation.testing_util")

    def verdict(row: Row, reply: Any) -> float:
        program = f"import sys\nsys.stdout.write({reply!r})\n"
        results, _ = harness.grade_stdio(program, [""], [row["expected"]], _SECONDS)
        return float(all(result is True for result in results))

    return verdict


def ours(row: Row, reply: Any) -> float:
    return float(same_text(reply, row["expected"], words=False))


COMPARISON = Comparison(
    name="livecodebench",
    benchmarks=("livecodebench",),
    scorer="LiveCodeBench `testing_util.py`, output of programs",
    compared=OUTPUTS,
    repository="LiveCodeBench/LiveCodeBench",
    rows=rows,
    forms=forms,
    original=original,
    ours=ours,
)
