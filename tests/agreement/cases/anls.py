# SPDX-License-Identifier: Apache-2.0
"""DocVQA (arXiv:2007.00398): how like the letters of two answers are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from tests.agreement.cases.reading.replies import LABEL, golds
from tests.agreement.cases.reading.replies import forms as answers
from tests.agreement.cases.reading.replies import rows as texts
from tests.agreement.compare import ANSWERS, Comparison, Verdict, by_grader
from tests.agreement.originals import loaded


def rows() -> Iterator[Row]:
    for row in texts():
        if row["task"] == "em":
            yield {key: value for key, value in row.items() if key != "task"}


def forms(row: Row) -> Mapping[str, str]:
    gold = row["expected_answer"]
    typos = {
        "first letter missing": gold[1:],
        "half of it": gold[: len(gold) // 2],
        "half and one": gold[: len(gold) // 2 + 1],
        "every second letter": gold[::2],
        "wide blanks": gold.replace(" ", "   "),
        "letters turned round": gold[::-1],
    }
    return {**answers(row), **{form: f"{LABEL}{text or '?'}" for form, text in typos.items()}}


def original(folder: Path) -> Verdict:
    """Needs numpy, and the names of `vlmeval.smp` that the file imports, whatever they are."""
    file = folder / "vlmeval" / "dataset" / "utils" / "vqa_eval.py"
    distance = loaded(file).anls_compute

    def verdict(row: Row, reply: Any) -> float:
        likeness = 1 - min(distance(gold, str(reply).removeprefix(LABEL)) for gold in golds(row))
        return likeness if likeness >= 0.5 else 0.0

    return verdict


COMPARISON = Comparison(
    name="anls",
    benchmarks=("docvqa",),
    scorer="ANLS of VLMEvalKit `vqa_eval.py`",
    compared=ANSWERS,
    repository="open-compass/VLMEvalKit",
    rows=rows,
    forms=forms,
    original=original,
    ours=by_grader("short_answer", {"measure": "anls"}, "anls"),
)
