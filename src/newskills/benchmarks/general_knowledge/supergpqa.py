# SPDX-License-Identifier: Apache-2.0
"""Graduate-level questions in 285 disciplines (M-A-P 2025, arXiv:2502.14739)."""

from collections.abc import Iterable, Iterator
from functools import partial
from random import Random

from msgspec.structs import replace

from newskills.base.benchmark import OTHER_SPLIT, Benchmark, Drop, Option, Source
from newskills.base.records import Row
from newskills.benchmarks.options import whole_number
from newskills.benchmarks.text import choices

_SEED = 42
_KEPT = ("uuid", "discipline", "field", "subfield", "difficulty", "is_calculation")


_SCIENCE = {
    "science": ("discipline", "Science"),
    "physics": ("field", "Physics"),
    "chemistry": ("field", "Chemistry"),
    "biology": ("field", "Biology"),
    "mathematics": ("field", "Mathematics"),
}


def add_option_orders(raw: Iterable[Row], seed: int = _SEED) -> Iterator[Row]:
    """Yield each row with an order of its options: successive shuffles of one seeded generator."""
    generator = Random(seed)  # noqa: S311 - the order has to be the same everywhere, not secret
    for row in raw:
        order = list(range(len(row["options"])))
        generator.shuffle(order)
        yield {**row, "option_order": order}


def row(raw: Row, index: int) -> Row:
    order = raw["option_order"]
    right = order.index("ABCDEFGHIJ".index(raw["answer_letter"]))
    return {
        "id": raw["uuid"],
        "expected_answer": "ABCDEFGHIJ"[right],
        **choices(raw["question"], [raw["options"][place].strip() for place in order]),
        "option_order": order,
        "subset_for_metrics": raw["discipline"],
        **{key: raw[key] for key in _KEPT},
    }


def subset_row(field: str, value: str, raw: Row, index: int) -> Row | Drop:
    if raw[field] == value:
        return row(raw, index)
    return OTHER_SPLIT


def _with_random_seed(benchmark: Benchmark, values: tuple[str, ...]) -> Benchmark:
    return replace(benchmark, join=partial(add_option_orders, seed=whole_number("--random_seed", values)))


BENCHMARK = Benchmark(
    name="supergpqa",
    category="general-knowledge",
    title="SuperGPQA: graduate-level questions in 285 disciplines",
    sources=tuple(Source(split=split, hf="m-a-p/SuperGPQA", hf_split="train") for split in ("test", *_SCIENCE)),
    join=add_option_orders,
    row=row,
    variants={split: partial(subset_row, *where) for split, where in _SCIENCE.items()},
    options={
        "random_seed": Option(meaning="other orders of the options", apply=_with_random_seed, usual=f"{_SEED}")
    },
    prompt="eval/aai/mcq-10choices",
    grader="multichoice",
    metric="multichoice",
    items={"test": 26529},
    licence="ODC-BY",
    homepage="https://huggingface.co/datasets/m-a-p/SuperGPQA",
    citation="arXiv:2502.14739",
    chance=0.11,
    unverified=True,
    traps=("Options are shuffled with seed 42 in row order (option_order); another order changes the score.",),
)
