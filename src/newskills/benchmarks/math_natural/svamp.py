# SPDX-License-Identifier: Apache-2.0
"""Word problems with varied structure (Patel et al. 2021, arXiv:2103.07191)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import number_text


def row(raw: Row, index: int) -> Row:
    body = raw["Body"].strip()
    end = "" if body[-1] in ".?!," else "."
    return {
        "id": raw["ID"],
        "problem": f"{body}{end} {raw['Question'].strip()}",
        "expected_answer": number_text(raw["Answer"]),
        "reference_equation": raw["Equation"],
        "type": raw["Type"],
    }


BENCHMARK = Benchmark(
    name="svamp",
    category="math-natural",
    title="SVAMP: simple variations of word problems",
    sources=(
        Source(
            url="https://raw.githubusercontent.com/arkilpatel/SVAMP/main/SVAMP.json",
            format="json",
            revision="689d7ccac74b9983a2ac7cc3b264f441b99e7c53",
            sha256="5be77703a6d891ae476d7c082787ad361392aa02453b132516cdd5f4e7934e3e",
        ),
    ),
    row=row,
    prompt="generic/math",
    items={"test": 1000},
    licence="MIT",
    homepage="https://github.com/arkilpatel/SVAMP",
    citation="arXiv:2103.07191",
    traps=(
        "358 texts lack their full stop before the question; it is added.",
        "Answers are floats in the source (51.0) and integers here (51).",
    ),
)
