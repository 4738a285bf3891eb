# SPDX-License-Identifier: Apache-2.0
"""MMLU-Pro (arXiv:2406.01574): which of ten letters a reply gives."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from tests.agreement.compare import WHOLE, Comparison, Verdict, by_grader

_LETTERS = "ABCDEFGHIJ"
_TEXTS = (
    ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"),
    ("1", "2", "3", "4", "5", "6", "7", "8", "9", "10"),
)
_THOUGHT = "Let's think step by step. The first two do not fit."


def rows() -> Iterator[Row]:
    for texts in _TEXTS:
        for letter in _LETTERS:
            yield {**dict(zip(_LETTERS, texts, strict=True)), "expected_answer": letter}


def forms(row: Row) -> Mapping[str, str]:
    gold = row["expected_answer"]
    wrong = _LETTERS[(_LETTERS.index(gold) + 3) % len(_LETTERS)]
    made: dict[str, str] = {}
    for kind, letter in (("right", gold), ("wrong", wrong)):
        made |= {
            f"{kind} as asked": f"{_THOUGHT} The answer is ({letter}).",
            f"{kind} without brackets": f"{_THOUGHT} The answer is {letter}.",
            f"{kind} label": f"{_THOUGHT}\nAnswer: {letter}",
            f"{kind} with text": f"{_THOUGHT} The answer is ({letter}) {row[letter]}.",
            f"{kind} therefore": f"{_THOUGHT} Therefore the answer is ({letter})",
            f"{kind} letter": letter,
            f"{kind} last word": f"{_THOUGHT} It must be {letter}",
            f"{kind} box": f"{_THOUGHT} \\boxed{{{letter}}}",
            f"{kind} bold": f"{_THOUGHT}\n\n**Answer: {letter}**",
            f"{kind} small": f"{_THOUGHT} The answer is ({letter.lower()}).",
            f"{kind} bold letter": f"{_THOUGHT} The answer is **{letter}**.",
            f"{kind} option": f"{_THOUGHT} Option {letter} is correct.",
            f"{kind} is the answer": f"{_THOUGHT} ({letter}) {row[letter]} is the correct answer.",
            f"{kind} choice": f"{_THOUGHT} I'll go with ({letter}) {row[letter]}.",
            f"{kind} closest": f"{_THOUGHT} The closest option is {letter}.",
            f"{kind} match": f"{_THOUGHT} This matches option ({letter}).",
            f"{kind} only": f"{_THOUGHT} Thus only {letter} is correct.",
            f"{kind} tick": f"{_THOUGHT}\n✅ **{letter}**",
            f"{kind} conclusion": f"{_THOUGHT}\n\n**Conclusion:** {letter}",
        }
    return made | {
        "nothing": _THOUGHT,
        "another after it": f"The answer is ({wrong}). No, wait.\nThe answer is ({gold}).",
    }


def original(folder: Path) -> Verdict:
    """The reading functions only: the module imports clients of many services. A random guess is no answer."""
    tree = ast.parse((folder / "evaluate_from_api.py").read_text(encoding="utf-8"))
    names = {"extract_answer", "extract_again", "extract_final"}
    tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in names]
    space: dict[str, Any] = {"re": re, "print": lambda *_: None}
    exec(compile(tree, "evaluate_from_api.py", "exec"), space)

    def verdict(row: Row, reply: Any) -> float:
        return float(space["extract_answer"](reply) == row["expected_answer"])

    return verdict


COMPARISON = Comparison(
    name="mmlu-pro",
    benchmarks=("mmlu-pro",),
    scorer="MMLU-Pro `evaluate_from_api.py`",
    compared=WHOLE,
    repository="TIGER-AI-Lab/MMLU-Pro",
    rows=rows,
    forms=forms,
    original=original,
    ours=by_grader("multichoice"),
    known={
        "right small": "the original wants a capital",
        "another after it": "the original takes the first answer, ours the last",
    },
)
