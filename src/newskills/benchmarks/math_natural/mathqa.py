# SPDX-License-Identifier: Apache-2.0
"""GRE and GMAT word problems with five options (Amini et al. 2019, arXiv:1905.13319)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import choices, split_options


def row(raw: Row, index: int) -> Row:
    return {
        "expected_answer": raw["correct"].upper(),
        **choices(raw["Problem"], split_options(raw["options"])),
        "reference_solution": raw.get("Rationale"),
        "reference_formula": raw.get("annotated_formula"),
    }


BENCHMARK = Benchmark(
    name="mathqa",
    category="math-natural",
    title="MathQA: word problems with five options",
    sources=(Source(hf="regisss/math_qa"),),
    row=row,
    prompt="eval/aai/mcq-10choices",
    grader="multichoice",
    metric="multichoice",
    items={"test": 2985},
    licence="Apache-2.0",
    homepage="https://math-qa.github.io/math-QA/",
    citation="arXiv:1905.13319",
    chance=0.2,
    unverified=True,
    traps=(
        "The options of a question are one text, which is split at its letters.",
        "Many keys and rationales are wrong: even perfect solvers stay well below 100 %.",
    ),
)
