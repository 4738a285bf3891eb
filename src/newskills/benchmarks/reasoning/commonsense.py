# SPDX-License-Identifier: Apache-2.0
"""Common sense as multiple choice, in sets of one shape: a beginning and its endings.

HellaSwag (arXiv:1905.07830), SWAG (arXiv:1808.05326), PIQA (arXiv:1911.11641), Social IQa (arXiv:1904.09728),
COPA (Roemmele et al. 2011), WinoGrande (arXiv:1907.10641), the Winograd schemas (Levesque et al. 2012).

`context` and `continuations` are for the solver `loglikelihood`.
"""

import re
from collections.abc import Callable, Sequence

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import BY_LIKELIHOOD, choices

_MARKUP = re.compile(r"\[[^\[\]]*\]")
_WHICH_ENDING = "Which ending fits best?"


def choice_fields(question: str, options: Sequence[str], right: int) -> Row:
    if not 0 <= right < len(options):
        raise ValueError(f"the label is {right}, and there are {len(options)} options")
    return {"expected_answer": "ABCDE"[right], **choices(question, options)}


def strip_markup(text: str) -> str:
    """Remove the mark-up that WikiHow's texts have in brackets."""
    return " ".join(_MARKUP.sub("", text.replace(" [title]", ".")).split())


def hellaswag_row(raw: Row, index: int) -> Row:
    endings = [strip_markup(ending) for ending in raw["endings"]]
    text = strip_markup(f"{raw['activity_label']}: {raw['ctx_a']} {raw['ctx_b'].capitalize()}")
    return {
        "id": f"hellaswag-{index}",
        **choice_fields(f"{text}\n\n{_WHICH_ENDING}", endings, int(raw["label"])),
        "activity": raw["activity_label"],
        "subset_for_metrics": "wikihow" if "[header]" in raw["ctx"] else "activitynet",
        "context": text,
        "continuations": [f" {ending}" for ending in endings],
    }


def swag_row(raw: Row, index: int) -> Row:
    endings = [raw[f"ending{place}"] for place in range(4)]
    return {
        **choice_fields(f"{raw['startphrase']} …\n\n{_WHICH_ENDING}", endings, int(raw["label"])),
        "context": raw["startphrase"],
        "continuations": [f" {ending}" for ending in endings],
    }


def piqa_row(raw: Row, index: int) -> Row:
    solutions = [raw["sol1"], raw["sol2"]]
    return {
        **choice_fields(f"Goal: {raw['goal']}\n\nWhich way reaches it?", solutions, int(raw["label"])),
        "context": f"Question: {raw['goal']}\nAnswer:",
        "continuations": [f" {solution}" for solution in solutions],
    }


def social_iqa(raw: Row, index: int) -> Row:
    answers = [raw["answerA"], raw["answerB"], raw["answerC"]]
    return {
        **choice_fields(f"{raw['context']}\n\n{raw['question']}", answers, int(raw["label"]) - 1),
        "context": f"{raw['context']} {raw['question']}",
        "continuations": [f" {answer}" for answer in answers],
    }


def copa_row(raw: Row, index: int) -> Row:
    request, link = {"cause": ("the cause", "because"), "effect": ("the effect", "therefore")}[raw["question"]]
    options = [raw["choice1"], raw["choice2"]]
    return {
        **choice_fields(f"{raw['premise']}\n\nWhat was {request} of this?", options, int(raw["label"])),
        "subset_for_metrics": raw["question"],
        "context": f"{raw['premise'].rstrip(' .')} {link}",
        "continuations": [f" {option[:1].lower()}{option[1:]}" for option in options],
    }


def winogrande_row(raw: Row, index: int) -> Row:
    before, blank, after = raw["sentence"].partition("_")
    if not blank:
        raise ValueError("the sentence has no blank '_'")
    options = [raw["option1"], raw["option2"]]
    return {
        **choice_fields(f"{raw['sentence']}\n\nWhat belongs into the blank?", options, int(raw["answer"]) - 1),
        "context": [before + option for option in options],
        "continuations": [f" {after.strip()}"] * 2,
    }


def wsc273_row(raw: Row, index: int) -> Row:
    text, pronoun, at = raw["text"], raw["pronoun"], int(raw["pronoun_loc"])
    if text[at : at + len(pronoun)] != pronoun:
        raise ValueError(f"'{pronoun}' does not stand at {at}")
    marked = f"{text[:at]}*{pronoun}*{text[at + len(pronoun) :]}"
    options = list(raw["options"])
    return {
        **choice_fields(
            f"{marked}\n\nWhat does the marked word *{pronoun}* stand for?", options, int(raw["label"])
        ),
        "context": [text[:at] + option for option in options],
        "continuations": [f" {text[at + len(pronoun) :].strip()}"] * 2,
    }


def _benchmark(
    name: str,
    title: str,
    row: Callable[[Row, int], Row],
    source: Source,
    *,
    items: int,
    options: int,
    licence: str,
    citation: str,
    aliases: tuple[str, ...] = (),
    traps: tuple[str, ...] = (),
) -> Benchmark:
    return Benchmark(
        name=name,
        category="reasoning",
        title=title,
        aliases=aliases,
        sources=(source,),
        row=row,
        prompt="eval/aai/mcq-10choices",
        grader="multichoice",
        metric="multichoice",
        split=source.split,
        items={source.split: items},
        licence=licence,
        homepage=f"https://huggingface.co/datasets/{source.hf}",
        citation=citation,
        chance=1 / options,
        unverified=True,
        traps=(*traps, BY_LIKELIHOOD),
    )


def _source(hf: str, config: str = "", split: str = "validation") -> Source:
    return Source(hf=hf, config=config, split=split)


BENCHMARKS = (
    _benchmark(
        "hellaswag",
        "HellaSwag: which ending follows",
        hellaswag_row,
        _source("Rowan/hellaswag"),
        items=10042,
        options=4,
        licence="MIT",
        citation="arXiv:1905.07830",
        traps=("Labels of the test split are hidden.", "WikiHow texts carry mark-up in brackets; it is removed."),
    ),
    _benchmark(
        "swag",
        "SWAG: which event comes next",
        swag_row,
        _source("allenai/swag", "regular"),
        items=20006,
        options=4,
        licence="MIT",
        citation="arXiv:1808.05326",
    ),
    _benchmark(
        "piqa",
        "PIQA: physical common sense",
        piqa_row,
        _source("baber/piqa"),
        items=1838,
        options=2,
        licence="AFL-3.0",
        citation="arXiv:1911.11641",
    ),
    _benchmark(
        "social_iqa",
        "Social IQa: why people do things, and what follows",
        social_iqa,
        _source("lighteval/siqa"),
        items=1954,
        options=3,
        licence="CC-BY-4.0",
        citation="arXiv:1904.09728",
        aliases=("siqa",),
    ),
    _benchmark(
        "copa",
        "COPA: plausible causes and effects",
        copa_row,
        _source("aps/super_glue", "copa"),
        items=100,
        options=2,
        licence="BSD-2-Clause",
        citation="arXiv:1905.00537",
    ),
    _benchmark(
        "winogrande",
        "WinoGrande: who or what fills the blank",
        winogrande_row,
        _source("allenai/winogrande", "winogrande_xl"),
        items=1267,
        options=2,
        licence="Apache-2.0",
        citation="arXiv:1907.10641",
        traps=("Labels of the test split are hidden.",),
    ),
    _benchmark(
        "wsc273",
        "Winograd schemas: what a pronoun stands for",
        wsc273_row,
        _source("lighteval/winograd_wsc", "wsc273", "test"),
        items=273,
        options=2,
        licence="CC-BY-4.0",
        citation="Levesque, Davis, Morgenstern, KR 2012",
    ),
)
