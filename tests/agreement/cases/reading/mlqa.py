# SPDX-License-Identifier: Apache-2.0
"""MLQA (arXiv:1910.07475): articles and word borders of seven languages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from newskills.base.records import Row
from tests.agreement.cases.reading.replies import by_measure, forms, golds, ours
from tests.agreement.compare import ANSWERS, Comparison, Verdict
from tests.agreement.originals import loaded

_GOLDS = {
    "en": ("The Beatles", "William the Conqueror", "20%", "U.S. Navy"),
    "de": ("der alte Mann", "Brüder Grimm", "die Stadt des Lichts", "1.500 Euro"),
    "es": ("la ciudad de México", "¿el Cid?", "unos años", "José María"),
    "hi": ("महात्मा गांधी", "दिल्ली", "१९४७ में", "भारत।"),
    "vi": ("thủ đô của Việt Nam", "những cái tên", "Hà Nội", "năm 1954"),
    "zh": ("北京", "1949年10月1日", "《红楼梦》", "IBM公司"),
    "ar": ("القاهرة", "نهر النيل", "عام 1922", "محمد، علي"),
}


def rows() -> Iterator[Row]:
    for language, answers in _GOLDS.items():
        for gold in answers:
            for measure in ("em", "f1"):
                yield {"task": measure, "language": language, "expected_answer": gold, "accepted_answers": []}


def original(folder: Path) -> Verdict:
    script = loaded(folder / "mlqa_evaluation_v1.py")
    best = script.metric_max_over_ground_truths
    return by_measure(
        lambda answer, row: best(script.exact_match_score, answer, golds(row), row["language"]),
        lambda answer, row: best(script.f1_score, answer, golds(row), row["language"]),
    )


COMPARISON = Comparison(
    name="mlqa",
    benchmarks=("mlqa",),
    scorer="MLQA `mlqa_evaluation_v1.py`",
    compared=ANSWERS,
    repository="facebookresearch/MLQA",
    rows=rows,
    forms=forms,
    original=original,
    ours=ours({}),
)
