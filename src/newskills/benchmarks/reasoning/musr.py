# SPDX-License-Identifier: Apache-2.0
"""Reasoning in several steps over long stories (Sprague et al. 2023, arXiv:2310.16049)."""

import ast

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import choices


def row(raw: Row, index: int) -> Row:
    options = ast.literal_eval(raw["choices"])
    right = int(raw["answer_index"])
    if not 0 <= right < len(options) or options[right] != raw["answer_choice"]:
        raise ValueError(f"answer_index {right} is not the place of {raw['answer_choice']!r} in choices")
    return {
        "expected_answer": "ABCDE"[right],
        **choices(f"{raw['narrative']}\n\n{raw['question']}", options),
        "subset_for_metrics": raw.get("_split", "all"),
    }


BENCHMARK = Benchmark(
    name="musr",
    category="reasoning",
    title="MuSR: murders, objects and teams",
    sources=(Source(hf="TAUR-Lab/MuSR", hf_split="{murder_mysteries,object_placements,team_allocation}"),),
    row=row,
    prompt="eval/aai/mcq-10choices",
    grader="multichoice",
    metric="multichoice",
    items={"test": 756},
    licence="MIT",
    homepage="https://github.com/Zayne-sprague/MuSR",
    citation="arXiv:2310.16049",
    chance=0.34,
    unverified=True,
    traps=("The three kinds have 2, 3 to 5 and 3 options.", "choices is the text of a Python list."),
)
