# SPDX-License-Identifier: Apache-2.0
"""JEEBench (arXiv:2305.15074): letters, sets of letters with partial credit, and numbers within 0.01."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from tests.agreement.compare import ANSWERS, Comparison, Verdict, by_grader
from tests.agreement.originals import defined

_GOLDS = {
    "MCQ": ("A", "B", "C", "D"),
    "MCQ(multiple)": ("A", "AC", "BD", "ABC", "ABCD"),
    "Integer": ("0", "7", "12", "350"),
    "Numeric": ("0.25", "3.14", "10.50", "-2.70", "112.00"),
}
_LETTERS = ("A", "B", "C", "D", "AB", "AC", "BD", "CD", "ABC", "ABD", "BCD", "ABCD", "CA", "DB")
_OFFSETS = ("0", "0.004", "-0.008", "0.01", "0.02", "-0.05", "0.5", "1", "-1", "10")


def rows() -> Iterator[Row]:
    for task, golds in _GOLDS.items():
        for gold in golds:
            yield {"task": task, "answer_type": task, "expected_answer": gold}


def forms(row: Row) -> Mapping[str, Any]:
    """Answers in several dresses; the original is given the answer alone, as its extraction leaves it."""
    gold = row["expected_answer"]
    if row["task"].startswith("MCQ"):
        answers: tuple[str, ...] = _LETTERS if "multiple" in row["task"] else _LETTERS[:4]
    else:
        answers = tuple(f"{float(gold) + float(offset):.4f}".rstrip("0").rstrip(".") for offset in _OFFSETS)
    replies: dict[str, Any] = {}
    for answer in dict.fromkeys(answers):
        replies |= {
            f"box {answer}": f"So it must be $\\boxed{{{answer}}}$.",
            f"box of text {answer}": f"**Answer:** $\\boxed{{\\text{{{answer}}}}}$\n\nTell me if you want more.",
        }
        if row["task"] == "MCQ(multiple)":
            replies[f"listed {answer}"] = f"Hence $\\boxed{{{', '.join(answer)}}}$"
    return replies


def original(folder: Path) -> Verdict:
    scope = {"QUES_TYPES": list(_GOLDS)}
    score = defined(folder / "compute_metrics.py", "compute_score", **scope).compute_score

    def verdict(row: Row, reply: Any) -> float:
        answer = str(reply).partition("\\boxed{")[2].partition("}")[0].removeprefix("\\text{").replace(", ", "")
        return float(score(row["expected_answer"], answer, row["answer_type"], None))

    return verdict


COMPARISON = Comparison(
    name="jeebench",
    benchmarks=("jeebench",),
    scorer="JEEBench `compute_metrics.py`",
    compared=ANSWERS,
    repository="dair-iitd/jeebench",
    rows=rows,
    forms=forms,
    original=original,
    ours=by_grader("jeebench"),
    known=dict.fromkeys(
        (f"Numeric/{form} {answer}" for form in ("box", "box of text") for answer in ("-2.69", "0.26", "112.01")),
        "just 0.01 off: the original's floating-point numbers make it more",
    ),
)
