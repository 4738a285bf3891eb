# SPDX-License-Identifier: Apache-2.0
"""ROUGE-L (Lin 2004) of summaries, as the package rouge-score gives it without stemming."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from tests.agreement.cases import translation
from tests.agreement.compare import WHOLE, Comparison, Verdict, by_grader

_WORDS = (
    "The a of to in river valley Mill's old-fashioned report says that 1987 3.5 % U.S. don't (see) budget, café; naïve "
    "committee's 2,000 and then it was closed. Again: nobody knew why — not even Ann/Bob_C"
)
_COUNT = 24


def rows() -> Iterator[Row]:
    draw = random.Random("rouge")
    for _ in range(_COUNT):
        yield {"reference": " ".join(draw.choices(_WORDS.split(), k=draw.randint(5, 40)))}


def forms(row: Row) -> Mapping[str, str]:
    return {**translation.forms(row), "no word of it": "Etwas ganz anderes!"}


def original(folder: Path) -> Verdict:
    """Needs the package; the folder is not read."""
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(["rougeL"], use_stemmer=False)
    return lambda row, reply: float(scorer.score(row["reference"], reply)["rougeL"].fmeasure)


_GRADER = by_grader("long_text", value="score")


def ours(row: Row, reply: Any) -> float | None:
    return _GRADER({"measure": "rouge_l", "expected_answer": row["reference"]}, reply)


COMPARISON = Comparison(
    name="rouge",
    benchmarks=(),
    scorer="rouge-score (PyPI), rougeL",
    compared=WHOLE,
    rows=rows,
    forms=forms,
    original=original,
    ours=ours,
)
