# SPDX-License-Identifier: Apache-2.0
"""Common sense in many languages: XCOPA (Ponti et al. 2020, arXiv:2005.00333), XWinograd (arXiv:2106.12066).

Configurations, splits, fields and connectors: the tasks xcopa and xwinograd of lm-evaluation-harness (4e7e0d4).
"""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.options import sources_with
from newskills.benchmarks.text import BY_LIKELIHOOD, choices

_CONNECTORS = {
    "et": ("sest", "seetõttu"),
    "ht": ("poukisa", "donk sa"),
    "id": ("karena", "maka"),
    "it": ("perché", "quindi"),
    "qu": ("imataq", "chaymi"),
    "sw": ("kwa sababu", "kwa hiyo"),
    "ta": ("காரணமாக", "எனவே"),
    "th": ("เพราะ", "ดังนั้น"),
    "tr": ("çünkü", "bu yüzden"),
    "vi": ("bởi vì", "vì vậy"),
    "zh": ("因为", "所以"),
}
_WINOGRAD = ("en", "fr", "jp", "pt", "ru", "zh")
_ASKED = {"cause": ("the cause", 0), "effect": ("the effect", 1)}


def xcopa_row(raw: Row, index: int) -> Row:
    language, label = raw["_config"], int(raw["label"])
    options = [raw["choice1"], raw["choice2"]]
    if label not in (0, 1):
        raise ValueError(f"the label is {label}")
    what, place = _ASKED[raw["question"]]
    return {
        "id": f"{language}-{raw['idx']}",
        **choices(f"{raw['premise']}\n\nWhat was {what} of this?", options),
        "expected_answer": "AB"[label],
        "context": f"{raw['premise'].strip()[:-1]} {_CONNECTORS[language][place]}",
        "continuations": [f" {option[:1].lower()}{option[1:]}" for option in options],
        "subset_for_metrics": language,
    }


def xwinograd_row(raw: Row, index: int) -> Row:
    before, blank, after = raw["sentence"].partition("_")
    options, right = [raw["option1"], raw["option2"]], int(raw["answer"]) - 1
    if not blank or right not in (0, 1):
        raise ValueError(f"there is no blank '_', or the answer is {raw['answer']!r}")
    return {
        "id": f"{raw['_config']}-{index}",
        **choices(f"{raw['sentence']}\n\nWhat belongs into the blank?", options),
        "expected_answer": "AB"[right],
        "context": [before + option for option in options],
        "continuations": [f" {after.strip()}"] * 2,
        "subset_for_metrics": raw["_config"],
    }


BENCHMARKS = (
    Benchmark(
        name="xcopa",
        category="multilingual",
        title="XCOPA: plausible causes and effects in eleven languages",
        sources=(Source(hf="cambridgeltl/xcopa", config=f"{{{','.join(_CONNECTORS)}}}"),),
        row=xcopa_row,
        options={"languages": sources_with("config", "only these languages", *_CONNECTORS, usual="all")},
        prompt="generic/mcq",
        grader="multichoice",
        metric="multichoice",
        items={"test": 11 * 500},
        licence="CC-BY-4.0",
        homepage="https://huggingface.co/datasets/cambridgeltl/xcopa",
        citation="arXiv:2005.00333",
        chance=0.5,
        unverified=True,
        traps=("The question is English; premise and options are in the language.", BY_LIKELIHOOD),
    ),
    Benchmark(
        name="xwinograd",
        category="multilingual",
        title="XWinograd: what fills the blank, in six languages",
        sources=(Source(hf="Muennighoff/xwinograd", config=f"{{{','.join(_WINOGRAD)}}}"),),
        row=xwinograd_row,
        options={"languages": sources_with("config", "only these languages", *_WINOGRAD, usual="all")},
        prompt="generic/mcq",
        grader="multichoice",
        metric="macro",
        licence="CC-BY-4.0",
        homepage="https://huggingface.co/datasets/Muennighoff/xwinograd",
        citation="arXiv:2106.12066",
        chance=0.5,
        unverified=True,
        traps=(
            "Languages have from 83 (French) to 2,325 (English) sentences: macro_accuracy is their mean.",
            BY_LIKELIHOOD,
        ),
    ),
)
