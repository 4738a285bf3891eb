# SPDX-License-Identifier: Apache-2.0
"""MMLU as simple-evals reads it: the letter behind "Answer:", also in the languages of MMMLU."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from tests.agreement.compare import WHOLE, Comparison, Verdict, by_grader
from tests.agreement.letters import letter_forms

_OPTIONS = (
    {"A": "An enzyme", "B": "A hormone", "C": "A vitamin", "D": "A lipid"},
    {"A": "3/8", "B": "1/2", "C": "5/8", "D": "3/4"},
)
_LABELS = {
    "ar": "الإجابة:", "ar bare": "إجابة:", "ar other": "الجواب:", "ar final": "الإجابة النهائية:",
    "ar right": "الإجابة الصحيحة:",
    "ar right is": "الإجابة الصحيحة هي:", "ar is": "الإجابة هي:", "ar final other": "الجواب النهائي:", "bn": "উত্তর:",
    "bn sign": "উত্তরঃ", "de": "Antwort:", "es": "Respuesta:", "fr": "Réponse:", "fr spaced": "Réponse :", "hi": "उत्तर:",
    "id": "Jawaban:", "it": "Risposta:", "ja": "回答：", "ja word": "答え:", "ja solution": "解答:", "ko": "정답:",
    "ko reply": "답변:", "ko short": "답:", "pt": "Resposta:", "sw": "Jibu:", "yo": "Ìdáhùn:", "yo plain": "Idahun:",
    "yo other": "Àdáhùn:", "yo choice": "Àṣàyàn:", "yo hint": "Àmọ̀nà:", "zh": "答案：", "zh short": "答:",
    "zh reply": "答复：", "zh said": "答曰：",
}  # fmt: skip


def rows() -> Iterator[Row]:
    for options in _OPTIONS:
        for letter in options:
            yield {**options, "expected_answer": letter}


def forms(row: Row) -> Mapping[str, str]:
    gold = row["expected_answer"]
    wrong = "ABCD"["ABCD".index(gold) - 1]
    place = "ABCD".index(gold)
    abroad: dict[str, str] = {}
    for code, label in _LABELS.items():
        abroad |= {f"right {code}": f"{label} {gold}", f"wrong {code}": f"{label} {wrong}"}
        abroad[f"right {code} in bold"] = f"**{label}** {gold}"
    native = {"right ar letter": f"الإجابة: {'أبجد'[place]}", "right wide letter": f"回答：{'ＡＢＣＤ'[place]}"}
    return {**letter_forms(row), **abroad, **native}


def original(folder: Path) -> Verdict:
    """Needs numpy, jinja2, requests and tqdm."""
    sys.path.insert(0, str(folder.parent))
    common = importlib.import_module(f"{folder.name}.common")

    def verdict(row: Row, reply: Any) -> float:
        text = common.normalize_response(str(reply))
        for label in common.MULTILINGUAL_ANSWER_REGEXES:
            match = re.search(common.MULTILINGUAL_ANSWER_PATTERN_TEMPLATE.format(label), text)
            if match:
                return float(common.normalize_extracted_answer(match[1]) == row["expected_answer"])
        return 0.0

    return verdict


COMPARISON = Comparison(
    name="mmlu",
    benchmarks=("mmlu", "mmmlu"),
    scorer="simple-evals `mmlu_eval.py`, reading of letters",
    compared=WHOLE,
    repository="openai/simple-evals",
    rows=rows,
    forms=forms,
    original=original,
    ours=by_grader("multichoice"),
    known={
        **dict.fromkeys(
            (
                *("right letter", "right letter in brackets", "right letter with text", "right sentence"),
                *(
                    "right sentence, bold",
                    "right sentence with text",
                    "right heading",
                    "right box",
                    "right box of text",
                ),
                *("right, then a remark", "right as JSON"),
            ),
            "the original reads a letter behind `Answer:` only, as its prompt asks",
        ),
        "right after thinking": "the original takes the first `Answer:`, thoughts included",
        "wrong after thinking": "the original takes the first `Answer:`, thoughts included",
        "changed": "the original takes the first answer, ours the last",
        "right yo hint": "the original knows the word in decomposed characters only",
        "right yo hint in bold": "the original knows the word in decomposed characters only",
    },
)
