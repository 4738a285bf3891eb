# SPDX-License-Identifier: Apache-2.0
"""SQuAD 2.0 (arXiv:1806.03822): texts that answer nothing, too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from newskills.graders.reading.overlap import squad_score
from tests.agreement.cases.reading.replies import GOLDS, LABEL, by_measure, golds, rows
from tests.agreement.cases.reading.replies import forms as answers
from tests.agreement.compare import ANSWERS, Comparison, Verdict
from tests.agreement.originals import loaded


def with_unanswerable() -> Iterator[Row]:
    yield from rows((*GOLDS, "", "the", "..."))


def forms(row: Row) -> Mapping[str, str]:
    texts = answers(row) if row["expected_answer"].strip() else {"another": f"{LABEL}something"}
    return {**texts, "nothing": LABEL}


def original(folder: Path) -> Verdict:
    """Needs numpy."""
    script = loaded(folder / "evaluate-v2.0.py")
    return by_measure(
        lambda answer, row: max(script.compute_exact(gold, answer) for gold in golds(row)),
        lambda answer, row: max(script.compute_f1(gold, answer) for gold in golds(row)),
    )


def ours(row: Row, reply: Any) -> float:
    answer = str(reply).removeprefix(LABEL)
    exact, f1 = (max(scores) for scores in zip(*(squad_score(answer, gold) for gold in golds(row)), strict=True))
    return exact if row["task"] == "em" else f1


COMPARISON = Comparison(
    name="squad2",
    benchmarks=(),
    scorer="SQuAD 2.0 `evaluate-v2.0.py`",
    compared=ANSWERS,
    repository="rajpurkar/SQuAD-explorer",
    rows=with_unanswerable,
    forms=forms,
    original=original,
    ours=ours,
)
