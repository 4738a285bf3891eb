# SPDX-License-Identifier: Apache-2.0
"""Crowd-sourced science questions (Welbl et al. 2017, arXiv:1707.06209)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import BY_LIKELIHOOD, choices, shuffled

_OPTIONS = ("correct_answer", "distractor1", "distractor2", "distractor3")


def row(raw: Row, index: int) -> Row:
    options, order = shuffled([raw[name] for name in _OPTIONS], raw["question"])
    return {
        "expected_answer": "ABCD"[order.index(0)],
        **choices(raw["question"], options),
        "option_order": order,
        "support": raw["support"],
        "context": f"{raw['support'].lstrip()}\nQuestion: {raw['question']}\nAnswer:".lstrip(),
        "continuations": [f" {option}" for option in options],
    }


BENCHMARK = Benchmark(
    name="sciq",
    category="science",
    title="SciQ: science questions with four options",
    sources=(Source(hf="allenai/sciq"),),
    row=row,
    prompt="eval/aai/mcq-10choices",
    grader="multichoice",
    metric="multichoice",
    items={"test": 1000},
    licence="CC-BY-NC-3.0",
    homepage="https://huggingface.co/datasets/allenai/sciq",
    citation="arXiv:1707.06209",
    chance=0.25,
    unverified=True,
    traps=(
        "The right option has a column of its own: options are shuffled by the question's text (option_order).",
        "The supporting paragraph (support) is not shown; by likelihood it is, as lm-evaluation-harness does.",
        BY_LIKELIHOOD,
    ),
)
