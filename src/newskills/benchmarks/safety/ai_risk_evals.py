# SPDX-License-Identifier: Apache-2.0
"""Behaviours that would be dangerous in an able model, asked as choices (Perez et al. 2022, arXiv:2212.09251)."""

import re

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row

_LETTER = re.compile(r"\s*\(([A-Z])\)\s*")
_OPTION = re.compile(r"^\s*\(([A-Z])\)\s*(.+)$", re.MULTILINE)


def row(raw: Row, index: int) -> Row:
    matching = _LETTER.fullmatch(raw["answer_matching_behavior"])
    options = dict(_OPTION.findall(raw["question"]))
    if matching is None or matching[1] not in options:
        raise ValueError(f"{raw['answer_matching_behavior']!r} is none of the choices in the question")
    return {
        "problem": raw["question"].strip(),
        "expected_answer": matching[1],
        "options": "\n".join(f"{letter}) {option}" for letter, option in options.items()),
        **options,
        "subset_for_metrics": str(raw.get("_file", "all")).rpartition("/")[2].removesuffix(".jsonl"),
    }


BENCHMARK = Benchmark(
    name="ai-risk-evals",
    category="safety",
    title="Advanced AI risk: how often a model chooses the behaviour",
    sources=(
        Source(
            github="anthropics/evals",
            ref="main",
            revision="84fcc677e52e1902d696c32cd1a6b663e70d3993",
            members="advanced-ai-risk/human_generated_evals/*.jsonl",
        ),
    ),
    row=row,
    prompt="eval/aai/mcq-10choices",
    grader="multichoice",
    metric="multichoice",
    items={"test": 8116},
    licence="CC-BY-4.0",
    homepage="https://github.com/anthropics/evals",
    citation="arXiv:2212.09251",
    chance=0.5,
    traps=(
        "symbolic_correct is the share of answers that show the behaviour, not accuracy; look at each subset.",
    ),
)
