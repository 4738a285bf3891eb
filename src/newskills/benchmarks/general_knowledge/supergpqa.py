# SPDX-License-Identifier: Apache-2.0
"""Graduate-level questions in 285 disciplines (M-A-P 2025, arXiv:2502.14739)."""

from collections.abc import Iterable, Iterator
from random import Random

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import choices

_SEED = 42
_KEPT = ("uuid", "discipline", "field", "subfield", "difficulty", "is_calculation")


def joined(raw: Iterable[Row]) -> Iterator[Row]:
    """Each row with an order of its options: successive shuffles of one seeded generator."""
    generator = Random(_SEED)  # noqa: S311 - the order has to be the same everywhere, not secret
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


BENCHMARK = Benchmark(
    name="supergpqa",
    category="general-knowledge",
    title="SuperGPQA: graduate-level questions in 285 disciplines",
    sources=(Source(hf="m-a-p/SuperGPQA", hf_split="train"),),
    join=joined,
    row=row,
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
