# SPDX-License-Identifier: Apache-2.0
"""CoQA (arXiv:1808.07042): each of four people's answers is left out once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from newskills.base.records import Row
from tests.agreement.cases.reading.replies import by_measure, forms, golds, ours, rows
from tests.agreement.compare import ANSWERS, Comparison, Verdict
from tests.agreement.originals import loaded


def four_people() -> Iterator[Row]:
    """Some say the same."""
    for number, row in enumerate(rows()):
        gold = row["expected_answer"]
        others = [gold, f"{gold} itself", f"the {gold}", "something else", gold.upper()]
        yield {**row, "accepted_answers": [others[(number + place) % len(others)] for place in range(number % 4)]}


def original(folder: Path) -> Verdict:
    score = loaded(folder / "scripts" / "evaluate-v1.0.py").CoQAEvaluator._compute_turn_score
    return by_measure(
        lambda answer, row: score(golds(row), answer)["em"],
        lambda answer, row: score(golds(row), answer)["f1"],
    )


COMPARISON = Comparison(
    name="coqa",
    benchmarks=("coqa",),
    scorer="CoQA `evaluate-v1.0.py`",
    compared=ANSWERS,
    repository="stanfordnlp/coqa-baselines",
    rows=four_people,
    forms=forms,
    original=original,
    ours=ours({"measure": "coqa"}),
)
