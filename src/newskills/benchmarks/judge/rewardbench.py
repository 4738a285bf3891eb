# SPDX-License-Identifier: Apache-2.0
"""Which of two answers is better (Lambert et al. 2024, arXiv:2403.13787), for models that judge in words.

Fields, split, sections and weights: rewardbench/constants.py and utils.py of allenai/reward-bench (05a9005).
"""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import shuffled


def answers_of(texts: list[str], key: str) -> Row:
    """Return answers in an order that follows from `key`; the first of `texts` is the best."""
    ordered, places = shuffled(texts, key)
    letters = "ABCD"[: len(texts)]
    listing = (f"Reply {letter}:\n{text}" for letter, text in zip(letters, ordered, strict=True))
    return {
        "answers": "\n\n".join(listing),
        **dict(zip(letters, ordered, strict=True)),
        "expected_answer": letters[places.index(0)],
    }


def row(raw: Row, index: int) -> Row:
    identity = f"{raw['subset']}-{raw['id']}"
    return {
        "id": identity,
        "question": raw["prompt"],
        **answers_of([raw["chosen"], raw["rejected"]], identity),
        "subset_for_metrics": raw["subset"],
    }


BENCHMARK = Benchmark(
    name="rewardbench",
    category="judge",
    title="RewardBench: the better of two answers",
    aliases=("reward-bench",),
    sources=(Source(split="filtered", hf="allenai/reward-bench"),),
    split="filtered",
    row=row,
    prompt="judge/better-answer",
    grader="multichoice",
    metric="rewardbench",
    items={"filtered": 2985},
    licence="ODC-BY",
    homepage="https://huggingface.co/datasets/allenai/reward-bench",
    citation="arXiv:2403.13787",
    chance=0.5,
    unverified=True,
    traps=(
        "Headline: score, the mean of the four sections; their subsets weigh as the authors' do, math-prm 984 for 447.",
        "For models that judge in words; reward models that give numbers are not run here.",
        "The authors' older score adds test sets of others at half weight: not computed.",
        "A reply without a choice counts as half right, as the authors count.",
    ),
)
