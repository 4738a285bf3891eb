# SPDX-License-Identifier: Apache-2.0
"""Problems by professionals, from high school to university (Fang et al. 2024, arXiv:2406.18321)."""

import re

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row

# What a converter from LaTeX left behind the texts: line breaks, \noindent, the end of the environment.
_LEFTOVERS = re.compile(r"(?:\s|\\\\|\\noindent\b|\\(?:begin|end)\{problem\})+\Z")


def row(raw: Row, index: int) -> Row:
    ((name, item),) = ((key, value) for key, value in raw.items() if key != "_file")
    answer = _LEFTOVERS.sub("", item["answer"]).removesuffix(".")
    return {
        "id": name,
        "problem": _LEFTOVERS.sub("", item["question"]).replace("\\noindent ", ""),
        "expected_answer": answer.rstrip("$ ") if answer.count("$") == 1 else answer,
        "original_answer": item["answer"],
        "reference_solution": _LEFTOVERS.sub("", item["reasoning"]),
        "label": item["label"],
        "level": item["level"],
    }


BENCHMARK = Benchmark(
    name="math-odyssey",
    category="math-natural",
    title="MathOdyssey: high school, olympiad and university problems",
    sources=(
        Source(
            url="https://raw.githubusercontent.com/protagolabs/odyssey-math/main/final-odyssey-math-with-levels.jsonl",
            revision="fe9e83df06111728e1b06ddaee0a60837c07d6c9",
            sha256="b3dab75dbfc9a07f1f6096e060790630cdff96a70e3adf92b692c9316294290a",
        ),
    ),
    row=row,
    prompt="generic/math",
    items={"test": 387},
    licence="CC-BY-SA-4.0",
    homepage="https://github.com/protagolabs/odyssey-math",
    citation="arXiv:2406.18321",
    traps=(
        "Each line of the source is an object with one key, Problem_n.",
        "Left-overs of LaTeX after questions and answers are removed; original_answer keeps them.",
        "About 130 questions have lettered options and a letter as the answer, about 15 ask for yes or no.",
    ),
)
