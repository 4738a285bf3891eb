# SPDX-License-Identifier: Apache-2.0
"""Diverse elementary word problems (Miao et al. 2020, arXiv:2106.15772)."""

import re

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import number_text

_UNIT = re.compile(r"\s+\([^()]*\)(?=\s*(?:;|\Z))")


def row(raw: Row, index: int) -> Row:
    values = _UNIT.sub("", raw["Answer"]).split(";")
    return {
        "id": raw["ID"],
        "problem": f"{raw['Body'].strip()} {raw['Question'].strip()}",
        "expected_answer": ", ".join(map(number_text, values)),
        "raw_answer": raw["Answer"],
        "type": raw["Solution-Type"],
        "grade": int(raw["Grade"]),
    }


BENCHMARK = Benchmark(
    name="asdiv",
    category="math-natural",
    title="ASDiv: diverse word problems of grades 1 to 6",
    sources=(
        Source(
            url="https://raw.githubusercontent.com/chaochun/nlu-asdiv-dataset/master/dataset/ASDiv.xml",
            format="xml",
            records=("Problem",),
            revision="883f90a9a65bf00304ba8f37423910fe743abc47",
            sha256="ef8904068482919ac48c8eeaaf6df344b8a308ba66d048c2d4d87eab82dc4929",
        ),
    ),
    row=row,
    prompt="generic/math",
    items={"test": 2305},
    licence="CC-BY-NC-4.0",
    homepage="https://github.com/chaochun/nlu-asdiv-dataset",
    citation="arXiv:2106.15772",
    traps=(
        "The unit in brackets after an answer, 9 (apples), is removed; raw_answer keeps it.",
        "Answers of several values, 5 (years old); 15 (years old), keep all of them: 5, 15.",
        "About 140 answers are names, times, ratios or fractions.",
    ),
)
