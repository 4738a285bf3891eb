# SPDX-License-Identifier: Apache-2.0
"""Physics problems whose answer is an expression (Qiu et al. 2025, arXiv:2504.16074)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row


def row(raw: Row, index: int) -> Row:
    return {
        "id": f"phybench-{raw['id']}",
        "problem": raw["content"],
        "expected_answer": raw["answer"].strip(),
        "reference_solution": raw["solution"],
        "subset_for_metrics": raw["tag"],
    }


BENCHMARK = Benchmark(
    name="phybench",
    category="science",
    title="PHYBench: physics problems with symbolic answers",
    sources=(Source(hf="Eureka-Lab/PHYBench", hf_split="train"),),
    row=row,
    prompt="generic/math",
    items={"test": 500},
    licence="unstated",
    homepage="https://huggingface.co/datasets/Eureka-Lab/PHYBench",
    citation="arXiv:2504.16074",
    unverified=True,
    traps=(
        "The paper gives partial credit by the distance of expression trees; here an answer is right or wrong.",
        "Only 100 problems of the set come with a public answer in some of its versions.",
    ),
)
