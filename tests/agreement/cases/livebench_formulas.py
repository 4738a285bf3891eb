# SPDX-License-Identifier: Apache-2.0
"""LiveBench's task AMPS_Hard: formulas, which its scorer compares with SymPy and, where that cannot tell, a model."""

from __future__ import annotations

import importlib
import random
import sys
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from tests.agreement.compare import WHOLE, Comparison, Verdict, by_grader
from tests.agreement.data import mirrored

_DATA = "raw.githubusercontent.com/LiveBench/LiveBench/*/livebench/data/live_bench/math/AMPS_Hard/question.jsonl"
_ROWS, _LONGEST = 60, 60
_THOUGHT = "Let me think step by step.\n"
_SECONDS = 2
"""The original gives SymPy 60."""


def rows() -> Iterator[Row]:
    short = [raw for raw in mirrored(_DATA) if len(raw["ground_truth"]) < _LONGEST]
    for raw in random.Random("AMPS_Hard").sample(short, _ROWS):
        yield {"task": raw["task"], "subtask": raw["subtask"], "ground_truth": raw["ground_truth"]}


def forms(row: Row) -> Mapping[str, str]:
    gold = row["ground_truth"]
    return {
        "box": f"{_THOUGHT}$\\boxed{{{gold}}}$",
        "display": f"{_THOUGHT}\\[ \\boxed{{{gold}}} \\]",
        "equation": f"{_THOUGHT}$\\boxed{{x = {gold}}}$",
        "dfrac": f"$\\boxed{{{gold.replace(chr(92) + 'frac', chr(92) + 'dfrac')}}}$",
        "two boxes": f"\\boxed{{7}}, or rather \\boxed{{{gold}}}",
        "nothing": f"{_THOUGHT}I do not know.",
        "only words": f"{_THOUGHT}It cannot be simplified.",
    }


def original(folder: Path) -> Verdict:
    """Needs SymPy, lark and latex2sympy2. An answer that it would show to a model has no verdict."""
    sys.path.insert(0, str(folder))
    scorer: Any = importlib.import_module("livebench.process_results.math.AMPS_Hard.utils")
    timed = scorer.run_with_timeout
    scorer.run_with_timeout = lambda function, args, timeout: timed(function, args=args, timeout=_SECONDS)

    def verdict(row: Row, reply: Any) -> float | None:
        with redirect_stdout(StringIO()):
            try:
                return float(scorer.amps_hard_process_results(row["ground_truth"], reply))
            except RuntimeError:
                return None

    return verdict


COMPARISON = Comparison(
    name="livebench-formulas",
    benchmarks=(),
    scorer="LiveBench `AMPS_Hard`",
    compared=WHOLE,
    repository="LiveBench/LiveBench",
    rows=rows,
    forms=forms,
    original=original,
    ours=by_grader("livebench"),
    known={
        "AMPS_Hard/equation": "the original takes what stands behind `=`; to ours, `x = 3x + 1` is an equation in x, "
        "not the value 3x + 1"
    },
)
