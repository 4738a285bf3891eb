# SPDX-License-Identifier: Apache-2.0
"""MGSM (arXiv:2210.03057) as simple-evals reads it: the last number behind the word for "answer" of the language."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from tests.agreement.compare import WHOLE, Comparison, Verdict, by_grader

_LABELS = {
    "en": "Answer",
    "bn": "উত্তর",
    "de": "Antwort",
    "es": "Respuesta",
    "fr": "Réponse",
    "ja": "答え",
    "ru": "Ответ",
    "sw": "Jibu",
    "te": "సమాధానం",
    "th": "คำตอบ",
    "zh": "答案",
}
_GOLDS = ("18", "1200", "64000", "0")


def rows() -> Iterator[Row]:
    for language in _LABELS:
        for gold in _GOLDS:
            yield {"task": language, "expected_answer": gold}


def forms(row: Row) -> Mapping[str, str]:
    label, gold = _LABELS[row["task"]], row["expected_answer"]
    made: dict[str, str] = {}
    for kind, number in (("right", gold), ("wrong", str(int(gold) + 3))):
        made |= {
            f"{kind} label": f"3 + 4 = 7\n{label}: {number}",
            f"{kind} thousands": f"3 + 4 = 7\n{label}: {int(number):,}",
            f"{kind} decimals": f"3 + 4 = 7\n{label}: {number}.00",
            f"{kind} dollars": f"3 + 4 = 7\n{label}: ${number}",
            f"{kind} unit": f"3 + 4 = 7\n{label}: {number} km",
            f"{kind} point": f"3 + 4 = 7\n{label}: {number}.",
            f"{kind} bold": f"3 + 4 = 7\n**{label}: {number}**",
        }
    return made | {"nothing": "3 + 4 = 7, so", "label only": f"{label}: "}


def original(folder: Path) -> Verdict:
    """Needs numpy, jinja2, requests and tqdm."""
    sys.path.insert(0, str(folder.parent))
    script = importlib.import_module(f"{folder.name}.mgsm_eval")

    def verdict(row: Row, reply: Any) -> float:
        answer = script.parse_answer(reply, script.LANG_TO_ANSWER_PREFIX[row["task"]])
        return float(script.score_mgsm(row["expected_answer"], answer))

    return verdict


COMPARISON = Comparison(
    name="mgsm",
    benchmarks=("mgsm",),
    scorer="simple-evals `mgsm_eval.py`",
    compared=WHOLE,
    repository="openai/simple-evals",
    rows=rows,
    forms=forms,
    original=original,
    ours=by_grader("math"),
)
