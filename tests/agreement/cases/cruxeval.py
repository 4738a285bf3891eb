# SPDX-License-Identifier: Apache-2.0
"""CRUXEval (arXiv:2401.03065), prediction of outputs: its harness executes `assert gold == answer`."""

from __future__ import annotations

import ast
import importlib
import json
import os
import random
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from tests.agreement.compare import ANSWERS, Comparison, Verdict, by_grader

_ROWS = 36
_LONGEST = 120


def rows() -> Iterator[Row]:
    """Of `data/cruxeval.jsonl` in the folder CRUXEVAL."""
    lines = (Path(os.environ["CRUXEVAL"]) / "data" / "cruxeval.jsonl").read_text(encoding="utf-8").splitlines()
    cases = [case for case in map(json.loads, lines) if len(case["output"]) < _LONGEST]
    for case in random.Random("cruxeval").sample(cases, _ROWS):
        yield {"expected_answer": case["output"]}


def forms(row: Row) -> Mapping[str, str]:
    gold = row["expected_answer"]
    value = ast.literal_eval(gold)
    answers = {
        "as it is": gold,
        "repr": repr(value),
        "double quotes": gold.replace("'", '"'),
        "in brackets": f"({gold})",
        "upper": gold.upper(),
        "without quotes": gold.replace("'", ""),
        "a point more": f"{gold}.",
        "as a list": f"[{gold}]",
        "as a text": repr(gold),
        "list for tuple": gold.replace("(", "[").replace(")", "]"),
        "comment": f"{gold} # done",
        "assertion": f"f(x) == {gold}",
        "changed": gold.replace("a", "b").replace("1", "2"),
        "nothing": "None",
        "expression": f"({gold}) if True else 0",
    }
    return {name: f"[ANSWER]{answer}[/ANSWER]" for name, answer in answers.items()}


def original(folder: Path) -> Verdict:
    """What is executed is the literals above. Needs numpy."""
    sys.path.insert(0, str(folder / "evaluation"))
    check = importlib.import_module("utils_general").evaluate_score

    def verdict(row: Row, reply: Any) -> float:
        answer = reply.removeprefix("[ANSWER]").removesuffix("[/ANSWER]").removeprefix("f(x) == ")
        return float(check(([answer], ("pass", "x", row["expected_answer"]), "output"))[0])

    return verdict


COMPARISON = Comparison(
    name="cruxeval",
    benchmarks=(),
    scorer="CRUXEval harness",
    compared=ANSWERS,
    repository="facebookresearch/cruxeval",
    rows=rows,
    forms=forms,
    original=original,
    ours=by_grader("literal"),
    known={
        "expression": "the original executes the answer, although it asks for a literal; ours reads literals only"
    },
)
