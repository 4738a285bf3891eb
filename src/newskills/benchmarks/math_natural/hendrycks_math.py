# SPDX-License-Identifier: Apache-2.0
"""Competition mathematics in seven subjects and five levels (Hendrycks et al. 2021, arXiv:2103.03874)."""

from msgspec import structs

from newskills.base.benchmark import OTHER_SPLIT, Benchmark, Drop, Source
from newskills.base.records import Row
from newskills.benchmarks.text import boxed_contents

_QWEN = "https://raw.githubusercontent.com/QwenLM/Qwen2.5-Math/refs/heads/main/evaluation/data/math/"


def gold_answer(problem: str, solution: str) -> str:
    """Return the last box of the solution, or all of its boxes where the problem asks for a list."""
    answers = list(dict.fromkeys(boxed_contents(solution)))
    if not answers:
        raise ValueError("the solution has no \\boxed answer")
    if "separated by comma" in problem:
        return ", ".join(answers)
    return answers[-1]


def row(raw: Row, index: int) -> Row:
    level = raw["level"].removeprefix("Level ")
    return {
        "problem": raw["problem"],
        "expected_answer": gold_answer(raw["problem"], raw["solution"]),
        "solution": raw["solution"],
        "level": int(level) if level.isdigit() else raw["level"],
        "subject": raw["type"],
    }


BENCHMARK = Benchmark(
    name="hendrycks_math",
    category="math-natural",
    title="MATH: competition problems",
    aliases=("math", "competition_math"),
    sources=(
        Source(
            url="https://raw.githubusercontent.com/microsoft/ToRA/main/src/data/math/test.jsonl",
            revision="213c1c995038c73fab10343814df7a42f990f026",
            sha256="3371949f33dd702d04b43fddd7d53a028de0aaca0e76abb1b875a050297b3aa4",
        ),
        Source(url=f"{_QWEN}test.jsonl"),
        Source(split="train", url=f"{_QWEN}train.jsonl"),
    ),
    row=row,
    prompt="generic/math",
    items={"test": 5000, "train": 7500},
    licence="MIT",
    homepage="https://github.com/hendrycks/math",
    citation="arXiv:2103.03874",
    traps=(
        "There is no answer field: the answer is the last \\boxed of the solution (90 solutions have several).",
        "Where a problem asks for values separated by commas, all boxes together are the answer.",
    ),
)


def of_level(number: int, items: int) -> Benchmark:
    """Return the benchmark of the test problems of one level, from 1 (easiest) to 5: so many `items`."""

    def own(raw: Row, index: int) -> Row | Drop:
        if raw["level"] == f"Level {number}":
            return row(raw, index)
        return OTHER_SPLIT

    return structs.replace(
        BENCHMARK,
        name=f"math_level{number}",
        title=f"MATH: problems of level {number}",
        aliases=(),
        sources=tuple(source for source in BENCHMARK.sources if source.split == "test"),
        row=own,
        items={"test": items},
    )
