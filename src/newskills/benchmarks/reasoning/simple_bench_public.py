# SPDX-License-Identifier: Apache-2.0
"""Trick questions that people find easy, the public ten (Philip and Hemang 2024, simple-bench.com)."""

import re

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row

_OPTION = re.compile(r"^([A-F])\. (.+)$", re.MULTILINE)


def row(raw: Row, index: int) -> Row:
    options = dict(_OPTION.findall(raw["prompt"]))
    if "".join(options) != "ABCDEF":
        raise ValueError(f"six options A. to F. are expected in the prompt, not {list(options)}")
    return {
        "id": f"simple-bench-{raw['question_id']}",
        "problem": raw["prompt"].strip(),
        "expected_answer": raw["answer"],
        "options": "\n".join(f"{letter}) {option}" for letter, option in options.items()),
        **options,
    }


BENCHMARK = Benchmark(
    name="simple-bench-public",
    category="reasoning",
    title="SimpleBench: the ten public trick questions",
    aliases=("simple-bench", "simplebench"),
    sources=(
        Source(
            url="https://raw.githubusercontent.com/simple-bench/SimpleBench/main/simple_bench_public.json",
            format="json",
            records=("eval_data",),
            revision="fbc2e429085bdedad7d1a236d2bc9bc18c95f16e",
            sha256="4ea0bb96b35f61c97dbf5a7dc059986398441f0cbb17fa709ae2b0e9ba4f76e4",
        ),
    ),
    row=row,
    prompt="eval/aai/mcq-10choices",
    grader="multichoice",
    metric="multichoice",
    items={"test": 10},
    licence="MIT",
    homepage="https://simple-bench.com",
    chance=1 / 6,
    traps=("Only 10 questions: one more right answer is 10 points; look at the interval.",),
)
