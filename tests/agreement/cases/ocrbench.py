# SPDX-License-Identifier: Apache-2.0
"""OCRBench (arXiv:2305.07895): replies that contain a right answer."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from tests.agreement.compare import WHOLE, Comparison, Verdict, by_grader

_TEXTS: tuple[tuple[str, ...], ...] = (
    *(("CENTRE",), ("Coca-Cola",), ("1,204.50",), ("03/11/2018",), ("i'm",), ("St. Mary's Rd.",), ("5",), ("o",)),
    *(("tan woon yann",), ("20%", "20 %"), ("yes",), ("中国银行",), ("Straße 9",), ("two\nlines",), ("a  b",)),
    *(("RM 9.00", "9.00"), ("İzmir",), ("http://a.bc/d",)),
)
_FORMULAS: tuple[tuple[str, ...], ...] = (
    ("y _ { 2 } = - 1\n", "y_2 = - 1\n"),
    ("x _ { 1 } = \\frac { - 2 + 2 \\sqrt { 2 } } { 2 }\n",),
    ("A B \\perp C D",),
    ("3 \\times 4 = 1 2\n", "3\\times4=12\n"),
)


def rows() -> Iterator[Row]:
    for texts in _TEXTS:
        yield {"task": "texts", "expected_answer": texts[0], "accepted_answers": list(texts[1:])}
    for texts in _FORMULAS:
        yield {
            "task": "formulas",
            "formula": True,
            "expected_answer": texts[0],
            "accepted_answers": list(texts[1:]),
        }


def forms(row: Row) -> Mapping[str, str]:
    gold = row["expected_answer"]
    last = [gold, *row["accepted_answers"]][-1]
    return {
        "alone": gold,
        "last of the golds": last,
        "sentence": f"The text in the image says {gold}, I think.",
        "label": f"Let me look.\n\n**Answer:** {gold.strip()}",
        "answer first": f"{gold.strip()}\n\nThat is what stands below the logo.",
        "small": f"It says {gold.lower()}",
        "capitals": f"It says {gold.upper()}",
        "without blanks": "".join(gold.split()),
        "wide blanks": gold.replace(" ", "  "),
        "cut by a line": gold.replace(" ", "\n"),
        "dollars": f"${gold.strip()}$",
        "box": f"$$\\boxed{{{gold.strip()}}}$$",
        "letter missing": f"It says {gold.strip()[:-1]}.",
        "within a word": f"xx{gold.strip()}xx",
        "refused": "I cannot read it.",
        "marked otherwise": f"At first I read {gold.strip()}.\nAnswer: nothing at all",
    }


def original(folder: Path) -> Verdict:
    tree = ast.parse((folder / "OCRBench" / "example.py").read_text(encoding="utf-8"))
    loop = next(node for node in ast.walk(tree) if isinstance(node, ast.For) and "HME100k" in ast.unparse(node))
    code = compile(ast.Module([loop], []), "example.py", "exec")

    def verdict(row: Row, reply: Any) -> float:
        answers = [row["expected_answer"], *row["accepted_answers"]]
        name = "HME100k" if row.get("formula") else "IIIT5K"
        sample = {"type": "", "dataset_name": name, "answers": answers, "predict": reply}
        exec(code, {"data": [sample]})
        return float(sample["result"])

    return verdict


COMPARISON = Comparison(
    name="ocrbench",
    benchmarks=("ocrbench",),
    scorer="OCRBench `example.py`",
    compared=WHOLE,
    repository="Yuliang-Liu/MultimodalOCR",
    rows=rows,
    forms=forms,
    original=original,
    ours=by_grader("short_answer", {"measure": "contained"}, "contained"),
)
