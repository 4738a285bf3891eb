# SPDX-License-Identifier: Apache-2.0
"""Whom a pronoun means, whatever its gender (Rudinger et al. 2018, arXiv:1804.09301)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import choices


def row(raw: Row, index: int) -> Row:
    options = [raw["occupation"], raw["participant"]]
    right = int(raw["label"])
    if options[right] != raw["target"]:
        raise ValueError(f"label {right} is not the place of {raw['target']!r} in {options}")
    question = f'{raw["sentence"]}\n\nWhom does "{raw["pronoun"]}" stand for?'
    return {
        "expected_answer": "AB"[right],
        **choices(question, options),
        "subset_for_metrics": raw["pronoun"],
        "occupation": raw["occupation"],
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
