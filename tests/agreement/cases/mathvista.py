# SPDX-License-Identifier: Apache-2.0
"""MathVista (arXiv:2310.02255): what the authors' script makes of an extracted answer, and whether it is the right one.

A model extracts answers in the original; here the text in the box is what it would find.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from newskills.graders.reading.overlap import edit_distance
from tests.agreement.compare import ANSWERS, Comparison, Verdict
from tests.graders.plain import plain_grader

_NUMBERS = (
    *(("integer", "7", None), ("integer", "360", None), ("float", "0.1", 1.0), ("float", "99.99", 2.0)),
    *(("integer", "12", None), ("integer", "2004", None), ("integer", "-4", None), ("integer", "100", None)),
    *(("float", "1.2", 1.0), ("float", "0.57", 2.0), ("float", "3.0", 1.0), ("float", "10.25", 2.0)),
    *(("list", "[1, 2, 3]", None), ("list", "[0.5, 7]", None)),
)
_CHOICES = (
    ("rises", "falls", "stays the same"),
    ("Yes", "No"),
    ("145°", "35°", "70°", "110°"),
    ("triangle", "square"),
    ("dark red", "light red", "blue", "dark blue"),
)


def rows() -> Iterator[Row]:
    for kind, gold, precision in _NUMBERS:
        number = {"task": kind, "answer_type": kind, "precision": precision}
        yield {**number, "expected_answer": gold, "gold": gold, "choices": []}
    for options in _CHOICES:
        letters = dict(zip("ABCD", options, strict=False))
        for letter, text in letters.items():
            yield {"task": "choice", "expected_answer": letter, "gold": text, "choices": list(options), **letters}


def forms(row: Row) -> Mapping[str, str]:
    gold = row["gold"]
    if row["task"] == "choice":
        letter, count = row["expected_answer"], len(row["choices"])
        wrong = "ABCD"[("ABCD".index(letter) + 1) % count]
        answers: dict[str, str] = {}
        for kind, mark in (("right", letter), ("wrong", wrong)):
            answers |= {
                f"{kind} letter": mark,
                f"{kind} letter in brackets": f"({mark})",
                f"{kind} letter and text": f"({mark}) {row[mark]}",
                f"{kind} text": row[mark],
                f"{kind} text with blanks": f" {row[mark]} ",
                f"{kind} typing error": row[mark][:-1],
            }
        return {form: f"I looked.\n\\boxed{{{text}}}" for form, text in answers.items()}
    answers = {
        "the same": gold,
        "blanks": f" {gold} ",
        "point": f"{gold}.",
        "unit": f"{gold} cm",
        "plus one": gold.replace("1", "2").replace("0", "9") if row["task"] == "list" else f"{float(gold) + 1:g}",
        "other sign": f"-{gold}".replace("--", ""),
        "word": "none",
    }
    if row["task"] != "list":
        places = 0 if row["precision"] is None else int(row["precision"])
        answers |= {
            "more decimals": f"{float(gold):.{places}f}" + ("004" if places else ".0"),
            "nearly": f"{float(gold) + 0.4 * 10**-places:.{places + 2}f}",
            "decimals": f"{float(gold):.3f}",
            "scientific": f"{float(gold):e}",
            "words before": f"about {gold}",
        }
    return {form: f"I looked.\n\\boxed{{{text}}}" for form, text in answers.items()}


def original(folder: Path) -> Verdict:
    """The two functions of the script that decide; its tables of results need pandas and the data."""
    tree = ast.parse((folder / "evaluation" / "calculate_score.py").read_text(encoding="utf-8"))
    wanted = ("get_most_similar", "normalize_extracted_answer", "safe_equal")
    body = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in wanted]
    names: dict[str, Any] = {"re": re, "distance": edit_distance}
    exec(compile(ast.Module(list(body), []), "calculate_score.py", "exec"), names)

    def verdict(row: Row, reply: Any) -> float:
        found = str(reply).partition("\\boxed{")[2][:-1]
        kind = "multi_choice" if row["task"] == "choice" else "free_form"
        answer = names["normalize_extracted_answer"](
            found, row["choices"], kind, row["task"], row.get("precision")
        )
        return float(names["safe_equal"](answer, row["gold"]))

    return verdict


_GRADER = plain_grader("mathvista", {})


def ours(row: Row, reply: Any) -> float:
    record = {**row, "generation": reply, "problem": "How much is it?"}
    return float(_GRADER.grade(record).fields["symbolic_correct"])


_REST = "the original leaves units, words and marks to the model that extracts; ours reads the box itself"
COMPARISON = Comparison(
    name="mathvista",
    benchmarks=("mathvista",),
    scorer="MathVista `calculate_score.py`",
    compared=ANSWERS,
    repository="lupantech/MathVista",
    rows=rows,
    forms=forms,
    original=original,
    ours=ours,
    known={
        **dict.fromkeys(("integer/unit", "float/unit"), _REST),
        **dict.fromkeys(("integer/words before", "float/words before"), _REST),
        **dict.fromkeys(("float/point", "list/point", "list/blanks", "list/unit"), _REST),
    },
)
