# SPDX-License-Identifier: Apache-2.0
"""SQuAD 1.1 (arXiv:1606.05250) and what is scored as it is: the script that its authors published."""

from __future__ import annotations

from pathlib import Path

from tests.agreement.cases.reading.replies import by_measure, forms, golds, ours, rows
from tests.agreement.compare import ANSWERS, Comparison, Verdict
from tests.agreement.originals import loaded


def original(folder: Path) -> Verdict:
    script = loaded(folder / "metrics" / "squad" / "compute_score.py")
    best = script.metric_max_over_ground_truths
    return by_measure(
        lambda answer, row: best(script.exact_match_score, answer, golds(row)),
        lambda answer, row: best(script.f1_score, answer, golds(row)),
    )


COMPARISON = Comparison(
    name="squad",
    benchmarks=("xquad",),
    scorer="SQuAD 1.1 `evaluate-v1.1.py`",
    compared=ANSWERS,
    repository="huggingface/evaluate",
    rows=rows,
    forms=forms,
    original=original,
    ours=ours({}),
)
