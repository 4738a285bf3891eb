# SPDX-License-Identifier: Apache-2.0
"""IFEval (arXiv:2311.07911): replies as models write them (mark-up, lists, code, several languages), counted exactly.

Each count is asked for twice, so that both scorers agree only where they count the same: `at least` what a reply has,
and `at least` one more.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from newskills.graders.instructions.texts import plain_words, punkt_sentences, treebank_tokens
from tests.agreement.compare import WHOLE, Comparison, Verdict, by_grader
from tests.graders.instructions.witnesses import SAMPLES

_COUNTS: Mapping[str, tuple[str, str, Row]] = {
    "sentences": ("length_constraints:number_sentences", "num_sentences", {"relation": "at least"}),
    "words": ("length_constraints:number_words", "num_words", {"relation": "at least"}),
    "capitals": ("change_case:capital_word_frequency", "capital_frequency", {"capital_relation": "at least"}),
    "letters": ("keywords:letter_frequency", "let_frequency", {"let_relation": "at least", "letter": "e"}),
}
_EXACT: Mapping[str, tuple[str, str, Row]] = {
    "bullets": ("detectable_format:number_bullet_lists", "num_bullets", {}),
    "paragraphs": ("length_constraints:number_paragraphs", "num_paragraphs", {}),
    "highlights": ("detectable_format:number_highlighted_sections", "num_highlights", {}),
    "placeholders": ("detectable_content:number_placeholders", "num_placeholders", {}),
    "sections": ("detectable_format:multiple_sections", "num_sections", {"section_spliter": "Section"}),
    "blank lines": (
        "length_constraints:nth_paragraph_first_word",
        "num_paragraphs",
        {"nth_paragraph": 1, "first_word": "sure"},
    ),
}
_YES_OR_NO: Mapping[str, tuple[str, Row]] = {
    "json": ("detectable_format:json_format", {}),
    "title": ("detectable_format:title", {}),
    "two responses": ("combination:two_responses", {}),
    "postscript": ("detectable_content:postscript", {"postscript_marker": "P.S."}),
    "second postscript": ("detectable_content:postscript", {"postscript_marker": "P.P.S"}),
    "quotation": ("startend:quotation", {}),
    "end": ("startend:end_checker", {"end_phrase": "Any other questions?"}),
    "no comma": ("punctuation:no_comma", {}),
    "lower case": ("change_case:english_lowercase", {}),
    "capitals only": ("change_case:english_capital", {}),
    "forbidden": ("keywords:forbidden_words", {"forbidden_words": ["can", "state-of-the-art"]}),
    "keywords": ("keywords:existence", {"keywords": ["plan", "state of the art"]}),
    "English": ("language:response_language", {"language": "en"}),
}
_WORDS = {
    "1": "1. **Start early.** Dr. Lee's team (est. 1998) met at 5 p.m. It's O.K.\n2. *Plan* well: the U.S. market "
    "isn't Europe's.\n10. `pip install x`... Then stop!\n\n---\n\n* one\n*two*\n- three\n\t* four\n** five **\n-\n",
    "2": 'Sure! Here is the JSON:\n\n```json\n{"a": {"b": [1, {"c": null}]}, "d": "x, y"}\n```\nAny other questions?',
    "3": '```json\n{"a": {"b": [1, {"c": null}]}, "d": "\\u00e9"}\n```',
    "4": '```JSON\n[{"name": "Ann", "tags": []}, NaN, 1e5]\n```\n',
    "5": "```\n{'a': 1}\n```",
    "6": "<<A Plan>>\n\n***\n\nFirst part. [name], [date]\n***\nSecond part... [a [b] c]\n\n***\n\n\n***\nP.S. Call me",
    "7": "***\n\nSection 1\nWhy?! Because.\n\n***\n\nSection 2\nSee e.g. Fig. 3, etc. and so on.\n***",
    "8": '"Sure," she said. "I can\'t." He left... P. P. S. NASA, IBM and the U.N. DON\'T agree: A.I. is HERE!!!"',
    "9": "<<>>\n<< >>\n<<<Deep>>>\n******\nOne answer, with *stars* and **bold *nested* bold**.\n******\nAnother one.",
    "10": "One answer.\n******\nOne answer.",
    "11": "One answer.\n\n* * *\n\n*****\n\nAnother answer.\n\n*******\n\nThird.",
    "12": "| Day | Task |\n|-----|------|\n| Mon | Run 5 km. |\n| Tue | Rest, read. |\n\n> Note: state-of-the-art "
    "gear can help.\n\np.s. have fun\n",
    "13": "sure, i can help. let's begin with a state of the art plan: step one, breathe. step two, rest.",
    "14": "SURE. THIS IS A PLAN: STEP 1, BREATHE! STEP 2, REST (AND SMILE).",
    "15": "Sure\n\n\n\nSecond paragraph\n \nstill second\n\n\nThird, after three.\n\n",
    "16": '\'"Sure," he said.\n\nSECTION 1: no.\nSection 2. Section3 section 4\nSection\n5',
    "17": 'Über die Straße gehen wir am 3. Mai, d.h. bald. "Ja?" fragte sie. Das ist z.B. ein Plan.',
    "18": "Bien sûr ! Voici un plan : « dormir », puis… manger. C'est l'idée n° 1. Et M. Dupont ? Oui.",
    "19": "当然可以!这是计划:一、早起。二、跑步。Any other questions?",
    "20": "def f(x):\n    # e.g. 3.14\n    return x ** 2 * 3  # done.\n\nThat's all. Any other questions?\n\n",
    "21": "**P.S.** *Really?* Yes. No. Maybe...\n\n**P.P.S.** _Under_ scores and snake_case words; e-mail a@b.com.",
    "22": "Visit www.example.com or call 555-0100. Version 2.0.1 is out. Cost: $3.50 (approx.). OK? Fine.\n\n"
    "I.   Goals\nII.  Means\n\nA. One\nB. Two",
}


def rows() -> Iterator[Row]:
    for name, text in _WORDS.items():
        numbers = {
            "sentences": len(punkt_sentences(text)),
            "words": len(plain_words(text)),
            "capitals": sum(token.isupper() for token in treebank_tokens(text)),
            "letters": text.lower().count("e"),
        }
        yield {"text": name, "reply": text, "numbers": numbers}
    codes = list(SAMPLES)
    for code, other in zip(codes, islice(cycle(codes), 1, None), strict=False):
        yield {"text": code, "reply": SAMPLES[code], "codes": [code, other]}


def forms(row: Row) -> Mapping[str, Any]:
    checks: dict[str, tuple[str, Row]] = {}
    if "codes" in row:
        checks = {f"language {code}": ("language:response_language", {"language": code}) for code in row["codes"]}
    else:
        for name, number in row["numbers"].items():
            kind, argument, others = _COUNTS[name]
            for more in (0, 1):
                checks[f"{name} and {more}"] = (kind, {argument: number + more, **others})
        for name, (kind, argument, others) in _EXACT.items():
            checks |= {f"{number} {name}": (kind, {argument: number, **others}) for number in (1, 2, 3, 4)}
        checks |= _YES_OR_NO
    return {
        name: {"instruction_id_list": [kind], "kwargs": [arguments], "generation": row["reply"]}
        for name, (kind, arguments) in checks.items()
    }


def original(folder: Path) -> Verdict:
    """Needs what lm_eval imports, and nltk with its data `punkt_tab`."""
    sys.path.insert(0, str(folder))
    registry: Any = importlib.import_module("lm_eval.tasks.ifeval.instructions_registry")
    detector: Any = importlib.import_module("langdetect").DetectorFactory

    def verdict(row: Row, reply: Any) -> float:
        (kind,), (arguments,) = reply["instruction_id_list"], reply["kwargs"]
        check = registry.INSTRUCTION_DICT[kind](kind)
        check.build_description(**arguments)
        detector.seed = 0
        text = reply["generation"]
        return float(bool(text.strip() and check.check_following(text)))

    return verdict


COMPARISON = Comparison(
    name="ifeval-hard",
    benchmarks=("ifeval",),
    scorer="IFEval checks in lm-evaluation-harness",
    compared=WHOLE,
    repository="EleutherAI/lm-evaluation-harness",
    rows=rows,
    forms=forms,
    original=original,
    ours=by_grader("if", value="is_correct"),
    known={
        "sentences and 1": "the original ends a sentence before a word such as `**P.S.**`, whose dot is within it"
    },
)
