# SPDX-License-Identifier: Apache-2.0
"""Five options about everyday concepts (Talmor et al. 2018, arXiv:1811.00937)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import choices


def row(raw: Row, index: int) -> Row:
    """Return the row of a question, which the authors' own file nests, and the copy on the hub does not."""
    question = raw["question"]
    if isinstance(question, dict):
        stem, concept = question["stem"], question["question_concept"]
        options = [choice["text"] for choice in question["choices"]]
        labels = [choice["label"] for choice in question["choices"]]
    else:
        stem, concept = question, raw["question_concept"]
        options, labels = list(raw["choices"]["text"]), list(raw["choices"]["label"])
    return {
        "id": raw["id"],
        "expected_answer": "ABCDE"[labels.index(raw["answerKey"])],
        **choices(stem, options),
        "concept": concept,
        "context": f"Question: {stem}\nAnswer:",
        "continuations": [f" {option}" for option in options],
    }


BENCHMARK = Benchmark(
    name="commonsenseqa",
    category="reasoning",
    title="CommonsenseQA: everyday concepts, five options",
    aliases=("csqa",),
    sources=(
        Source(
            split="validation",
            url="https://raw.githubusercontent.com/kojima-takeshi188/zero_shot_cot/main/dataset/CommonsenseQA/dev_rand_split.jsonl",
            revision="5ef330fcdeec0cd26aee27943504f91f8ec1c33c",
            sha256="3210497fdaae614ac085d9eb873dd7f4d49b6f965a93adadc803e1229fd8a02a",
        ),
        Source(split="validation", hf="tau/commonsense_qa"),
    ),
    row=row,
    prompt="eval/aai/mcq-10choices",
    grader="multichoice",
    metric="multichoice",
    split="validation",
    items={"validation": 1221},
    licence="MIT",
    homepage="https://www.tau-nlp.org/commonsenseqa",
    citation="arXiv:1811.00937",
    chance=0.2,
    traps=("Labels of the test split are hidden.",),
)
