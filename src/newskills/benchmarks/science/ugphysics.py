# SPDX-License-Identifier: Apache-2.0
"""Exercises of undergraduate physics in 13 subjects, English and Chinese (Xu et al. 2025, arXiv:2502.00334)."""

from newskills.base.benchmark import Benchmark, Judge, Source
from newskills.base.records import Row

_SUBJECTS = (
    "AtomicPhysics,ClassicalElectromagnetism,ClassicalMechanics,Electrodynamics,GeometricalOptics,QuantumMechanics,"
    "Relativity,SemiconductorPhysics,Solid-StatePhysics,StatisticalMechanics,TheoreticalMechanics,Thermodynamics,"
    "WaveOptics"
)
_KINDS = {
    "IN": "an interval",
    "TF": "True or False",
    "EX": "an expression",
    "EQ": "an equation",
    "MC": "the letter of one option",
    "NV": "a number without its unit",
    "TUP": "several numbers in brackets with commas between them, such as (x, y, z)",
}


def _answer_form(answer_type: str, several: bool) -> str:
    """Return what the prompt says about the form of the answer."""
    kinds = [_KINDS.get(kind.strip(), kind.strip()) for kind in answer_type.split(",")]
    if not several:
        return f"Its answer is {kinds[0]}."
    if len(set(kinds)) == 1:
        return f"It has several answers, and each is {kinds[0]}."
    return f"It has several answers. In the order asked they are: {'; '.join(kinds)}."


def row(raw: Row, index: int) -> Row:
    several = bool(raw["is_multiple_answer"])
    return {
        "id": f"{raw['subject']}-{raw['language'].lower()}-{raw['index']}",
        "index": raw["index"],
        "problem": raw["problem"],
        "expected_answer": raw["answers"],
        "solution": raw["solution"],
        "answer_type": raw["answer_type"],
        "subset_for_metrics": raw["subject"],
        "language": raw["language"].lower(),
        "is_multiple_answer": several,
        "prompt_sentence": _answer_form(raw["answer_type"], several),
        "boxed_answer_example": "\\boxed{first answer, second answer, ...}" if several else "\\boxed{answer}",
    }


def _source(split: str, languages: str) -> Source:
    return Source(split=split, hf="UGPhysics/ugphysics", config=f"{{{_SUBJECTS}}}", hf_split=languages)


BENCHMARK = Benchmark(
    name="ugphysics",
    category="science",
    title="UGPhysics: undergraduate physics in 13 subjects",
    sources=(_source("en", "en"), _source("zh", "zh"), _source("en_zh", "{en,zh}")),
    row=row,
    prompt="generic/ugphysics",
    metric="ugphysics",
    judge=Judge(prompt="judge/ugphysics", model="o4-mini-2025-04-16", server_type="openai"),
    split="en",
    items={"en": 5520, "zh": 5520, "en_zh": 11040},
    licence="CC-BY-NC-SA-4.0",
    homepage="https://huggingface.co/datasets/UGPhysics/ugphysics",
    citation="arXiv:2502.00334",
    unverified=True,
    traps=(
        "The kind of answer that is expected is part of the prompt, since many problems do not say it.",
        "Units stay outside of the box.",
    ),
)
