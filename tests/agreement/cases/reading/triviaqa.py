# SPDX-License-Identifier: Apache-2.0
"""TriviaQA (arXiv:1705.03551): punctuation divides words."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.agreement.cases.reading.replies import by_measure, forms, golds, ours, rows
from tests.agreement.compare import ANSWERS, Comparison, Verdict
from tests.agreement.originals import loaded


def original(folder: Path) -> Verdict:
    sys.path.insert(0, str(folder))
    script = loaded(folder / "evaluation" / "triviaqa_evaluation.py")
    best = script.metric_max_over_ground_truths
    return by_measure(
        lambda answer, row: best(script.exact_match_score, answer, golds(row)),
        lambda answer, row: best(script.f1_score, answer, golds(row)),
    )


COMPARISON = Comparison(
    name="triviaqa",
    benchmarks=("triviaqa",),
    scorer="TriviaQA `triviaqa_evaluation.py`",
    compared=ANSWERS,
    repository="mandarjoshi90/triviaqa",
    rows=rows,
    forms=forms,
    original=original,
    ours=ours({"measure": "triviaqa"}),
)
