# SPDX-License-Identifier: Apache-2.0
"""Multi-IF (arXiv:2410.15553): instructions in several languages, each turn read strictly and loosely."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from newskills.graders.instructions.multi_if import sentence_count, word_count
from tests.agreement.compare import WHOLE, Comparison, Verdict
from tests.graders.instructions.witnesses import SAMPLES
from tests.graders.plain import plain_grader

_TEXTS: Mapping[str, str] = {
    "zh": "当然可以!这是计划:一、早起。二、跑步,每天5 km。三、休息?好。我们明天开始吧,祝你好运😀。",
    "ja": "もちろんです。計画はこうです：一、早く起きる！二、走る。三、休む？はい。Jasonさんも来ます。",
    "es": "¡Claro! Aquí está el plan: levántate temprano. ¿Y después? El Sr. López corre 3.5 km. Fin...",
    "fr": "Bien sûr ! Voici un plan : « dormir », puis… manger. C'est l'idée n° 1. Et M. Dupont ? Oui.",
    "Thai lines": f"{SAMPLES['th']}\n\n{SAMPLES['th']} และ NASA ก็มา",
    "Hindi lines": f"**{SAMPLES['hi']}** क्या यह ठीक है? हाँ! {SAMPLES['hi']}",
    "quoted": "“La volpe veloce salta sopra il cane pigro e poi corre nella foresta buia senza fermarsi mai.”",
    "corner brackets": "「もちろんです。計画はこうです：一、早く起きる！」",
    "capitals": 'LA VOLPE VELOCE SALTA SOPRA IL CANE PIGRO. "E POI?" DICE LA N.A.T.O., E CORRE.',
    "marked up": "*Das ist ein Plan.* Er ist gut.\n\n* Früh aufstehen\n* Laufen, z.B. im Wald\n\nViel Glück!",
}
_LANGUAGES = ("de", "it", "pt", "vi", "ru", "hi", "th")


def rows() -> Iterator[Row]:
    texts = {code: f"{SAMPLES[code]} {SAMPLES[code]}" for code in _LANGUAGES} | _TEXTS
    for name, text in texts.items():
        yield {"text": name, "reply": text, "words": word_count(text), "sentences": sentence_count(text)}


def forms(row: Row) -> Mapping[str, Any]:
    checks: dict[str, tuple[str, Row]] = {
        "quotation": ("startend:quotation", {}),
        "no comma": ("punctuation:no_comma", {}),
        "two bullets": ("detectable_format:number_bullet_lists", {"num_bullets": 2}),
        "a highlight": ("detectable_format:number_highlighted_sections", {"num_highlights": 1}),
        "end": ("startend:end_checker", {"end_phrase": "Viel Glück!"}),
    }
    for more in (0, 1):
        words, sentences = row["words"] + more, row["sentences"] + more
        checks[f"words and {more}"] = (
            "length_constraints:number_words",
            {"num_words": words, "relation": "at least"},
        )
        checks[f"sentences and {more}"] = (
            "length_constraints:number_sentences",
            {"num_sentences": sentences, "relation": "at least"},
        )
    return {
        f"{name}, {level}": {"check": check, "level": level, "text": f"{before}{row['reply']}"}
        for name, check in checks.items()
        for level, before in (("strict", ""), ("loose", "Here it is:\n"))
    }


def ours(row: Row, reply: Any) -> float:
    kind, arguments = reply["check"]
    turns = [{"instruction_id_list": [kind], "kwargs": [arguments]}]
    score = plain_grader("multi-if", {}).grade({"turn_instructions": turns, "turn_answers": [reply["text"]]})
    return float(score.fields["turn_evals"][0][f"{reply['level']}_eval"]["follow_all_instructions"])


def original(folder: Path) -> Verdict:
    """Needs nltk below 3.9 with its data `punkt`, langdetect, emoji, pythainlp, pandas and scipy."""
    sys.path.insert(0, str(folder))
    metrics: Any = importlib.import_module("metrics")
    detector: Any = importlib.import_module("langdetect").DetectorFactory

    def verdict(row: Row, reply: Any) -> float:
        kind, arguments = reply["check"]
        detector.seed = 0
        read = metrics.gen_acc_strict if reply["level"] == "strict" else metrics.gen_acc_loose
        said = read({"response": reply["text"], "instruction_id_list": [kind], "kwargs": [arguments]})
        return float(all(said["follow_instruction_list"]))

    return verdict


COMPARISON = Comparison(
    name="multi-if",
    benchmarks=("multi-if",),
    scorer="Multi-IF `metrics.py`",
    compared=WHOLE,
    repository="facebookresearch/Multi-IF",
    rows=rows,
    forms=forms,
    original=original,
    ours=ours,
)
