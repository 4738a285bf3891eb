# SPDX-License-Identifier: Apache-2.0
"""Whom a pronoun means, whatever its gender (Rudinger et al. 2018, arXiv:1804.09301)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import choices


def row(raw: Row, index: int) -> Row:
    options = [raw["occupation"], raw["participant"]]
    right = int(raw["label"])
    if right not in (0, 1):
        raise ValueError(f"the label is {right}; 0 (occupation) or 1 (participant) is expected")
    question = f'{raw["sentence"]}\n\nWhom does "{raw["pronoun"]}" stand for?'
    return {
        "expected_answer": "AB"[right],
        **choices(question, options),
        "subset_for_metrics": raw["pronoun"],
        "occupation": raw["occupation"],
        "target": raw.get("target"),
    }


BENCHMARK = Benchmark(
    name="winogender",
    category="safety",
    title="Winogender: pronouns and occupations",
    sources=(Source(hf="oskarvanderwal/winogender", config="all"),),
    row=row,
    prompt="eval/aai/mcq-10choices",
    grader="multichoice",
    metric="multichoice",
    items={"test": 720},
    licence="MIT",
    homepage="https://github.com/rudinger/winogender-schemas",
    citation="arXiv:1804.09301",
    chance=0.5,
    unverified=True,
    traps=("Compare the scores by pronoun (subsets): the difference is the bias, not the overall score.",),
)
