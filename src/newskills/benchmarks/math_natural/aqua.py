# SPDX-License-Identifier: Apache-2.0
"""Algebraic word problems with five options (Ling et al. 2017, arXiv:1705.04146)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import choices


def row(raw: Row, index: int) -> Row:
    marked = list(zip("ABCDE", raw["options"], strict=True))
    if not all(option.startswith(f"{letter})") for letter, option in marked):
        raise ValueError(f"options are expected to begin with their letter: {raw['options']}")
    return {
        "expected_answer": raw["correct"],
        **choices(raw["question"], [option[2:] for _, option in marked]),
        "reference_solution": raw["rationale"],
    }


def _source(split: str, sha256: str) -> Source:
    return Source(
        split=split,
        url=f"https://raw.githubusercontent.com/deepmind/AQuA/master/{split}.json",
        revision="26b64ed1f22208c6742f47df547dfd65088ec30d",
        sha256=sha256,
    )


BENCHMARK = Benchmark(
    name="aqua",
    category="math-natural",
    title="AQuA: algebraic word problems with five options",
    sources=(
        _source("test", "de41581881ef95c5588c44ddc701c77fd480839241dd422a0d181262af24520c"),
        _source("dev", "4a52301d8a49ae0b286f8e697f9c5da1b109b247b825b47b4c6de34312dceec5"),
    ),
    row=row,
    prompt="eval/aai/mcq-10choices",
    grader="multichoice",
    metric="multichoice",
    items={"test": 254, "dev": 254},
    licence="Apache-2.0",
    homepage="https://github.com/google-deepmind/AQuA",
    citation="arXiv:1705.04146",
    chance=0.2,
    traps=("The files hold JSON lines despite their ending; options carry their letter, A)12, which is removed.",),
)
