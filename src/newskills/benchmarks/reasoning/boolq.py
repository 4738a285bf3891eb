# SPDX-License-Identifier: Apache-2.0
"""Questions that people asked, with a passage that says yes or no (Clark et al. 2019, arXiv:1905.10044)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import yes_no


def row(raw: Row, index: int) -> Row:
    question = raw["question"].strip().rstrip("?")
    text = f"{raw['passage']}\n\n{question[:1].upper()}{question[1:]}?"
    return {
        **yes_no(text, bool(int(raw["label"]))),
        "context": f"{raw['passage']}\nQuestion: {question}?\nAnswer:",
        "continuations": [" yes", " no"],
    }


BENCHMARK = Benchmark(
    name="boolq",
    category="reasoning",
    title="BoolQ: yes or no from a passage",
    sources=(Source(split="validation", hf="aps/super_glue", config="boolq"),),
    row=row,
    prompt="generic/yes-no",
    grader="multichoice",
    metric="multichoice",
    split="validation",
    items={"validation": 3270},
    licence="CC-BY-SA-3.0",
    homepage="https://github.com/google-research-datasets/boolean-questions",
    citation="arXiv:1905.10044",
    chance=0.5,
    unverified=True,
    traps=("62 % of the answers are yes: always saying so beats chance.",),
)
