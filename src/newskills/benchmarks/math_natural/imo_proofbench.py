# SPDX-License-Identifier: Apache-2.0
"""Sixty olympiad proofs, marked from 0 to 7 points by a judge (Luong et al. 2025, arXiv:2511.01846)."""

from newskills.base.benchmark import Benchmark, Judge, Source
from newskills.base.records import Row


def row(raw: Row, index: int) -> Row:
    return {
        "id": raw["Problem ID"],
        "problem_id": raw["Problem ID"],
        "problem": raw["Problem"],
        "reference_solution": raw["Solution"],
        "rubric": raw["Grading guidelines"],
        "expected_answer": raw["Short Answer"],
        "category": raw["Category"],
        "level": raw["Level"],
        "source": raw["Source"],
        "subset_for_metrics": "basic" if "-Basic-" in raw["Problem ID"] else "advanced",
    }


BENCHMARK = Benchmark(
    name="imo-proofbench",
    category="math-natural",
    title="IMO-ProofBench: olympiad proofs",
    aliases=("imo_proofbench",),
    sources=(
        Source(
            url="https://raw.githubusercontent.com/google-deepmind/superhuman/main/imobench/proofbench.csv",
            format="csv",
            revision="a02069ef66dbae4c5b0713ba0dc144a35375558f",
            sha256="c03ad2d9788ba147022031d90ecf192d16c038939eb432759914902598a87d6d",
        ),
    ),
    row=row,
    prompt="generic/proof",
    grader="",
    judge=Judge(
        prompt="judge/imo_proofbench",
        model="gemini-2.5-pro",
        server_type="gemini",
        model_defaults={"inference.reasoning_effort": "dynamic"},
    ),
    items={"test": 60},
    licence="CC-BY-4.0",
    homepage="https://github.com/google-deepmind/superhuman",
    citation="arXiv:2511.01846",
    traps=(
        "A proof counts as right from 6 of 7 points on; the judge's text has the points.",
        "The prompt asks for a proof; NeMo-Skills asks for an answer in a box.",
    ),
)
