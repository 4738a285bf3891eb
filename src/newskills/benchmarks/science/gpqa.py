# SPDX-License-Identifier: Apache-2.0
"""Graduate-level questions that searching does not solve (Rein et al. 2023, arXiv:2311.12022)."""

import re
from functools import cache, partial
from random import Random

from msgspec.structs import replace

from newskills.base.benchmark import Benchmark, Option, Source
from newskills.base.records import Row
from newskills.benchmarks.options import whole_number
from newskills.benchmarks.text import choices

_SEED = 42
_LARGEST_SPLIT = 546
_OPTIONS = ("Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3", "Correct Answer")


@cache
def option_orders(seed: int = _SEED) -> list[list[int]]:
    """Return, for each item of a split, the places of its options: successive shuffles of one seeded generator."""
    generator = Random(seed)  # noqa: S311 - the order has to be the same everywhere, not secret
    made = [list(range(len(_OPTIONS))) for _ in range(_LARGEST_SPLIT)]
    for places in made:
        generator.shuffle(places)
    return made


def strip_markup(text: str | None) -> str:
    """Remove the mark-up that the source has in some texts."""
    return (text or " ").strip().replace(" [title]", ". ").replace("  ", " ")


def row(raw: Row, index: int, seed: int = _SEED) -> Row:
    options = [strip_markup(raw[name]) for name in _OPTIONS]
    places = option_orders(seed)[index]
    shuffled = [options[place] for place in places]
    difficulty = raw["Writer's Difficulty Estimate"]
    return {
        "expected_answer": "ABCD"[shuffled.index(options[-1])],
        **choices(raw["Question"], shuffled),
        "option_order": places,
        "explanation": strip_markup(raw["Explanation"]),
        "subset_for_metrics": raw["Subdomain"],
        "difficulty": re.split(r"\s*\(", difficulty)[0] if difficulty else None,
    }


def _source(split: str) -> Source:
    return Source(
        split=split,
        url=f"https://huggingface.co/datasets/Idavidrein/gpqa/resolve/main/gpqa_{split}.csv",
        format="csv",
        gated=True,
        note="https://huggingface.co/datasets/Idavidrein/gpqa",
    )


def _with_random_seed(benchmark: Benchmark, values: tuple[str, ...]) -> Benchmark:
    return replace(benchmark, row=partial(row, seed=whole_number("--random_seed", values)))


BENCHMARK = Benchmark(
    name="gpqa",
    category="science",
    title="GPQA: graduate-level science, four options",
    aliases=("gpqa-diamond", "ns_gpqa"),
    sources=(_source("diamond"), _source("main"), _source("extended")),
    row=row,
    options={
        "random_seed": Option(meaning="other orders of the options", apply=_with_random_seed, usual=f"{_SEED}")
    },
    prompt="eval/aai/mcq-4choices",
    grader="multichoice",
    metric="multichoice",
    split="diamond",
    items={"diamond": 198, "main": 448, "extended": 546},
    licence="CC-BY-4.0 (the authors ask not to put the questions online as plain text)",
    homepage="https://huggingface.co/datasets/Idavidrein/gpqa",
    citation="arXiv:2311.12022",
    chance=0.25,
    unverified=True,
    traps=(
        "Options are shuffled with seed 42 in item order (option_order); another order changes the score.",
        "Gated: accept the terms on its page and set HF_TOKEN.",
    ),
)
