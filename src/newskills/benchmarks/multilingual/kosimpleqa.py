# SPDX-License-Identifier: Apache-2.0
"""Questions of fact about Korea, with one answer each (Ko et al. 2025, arXiv:2510.18368)."""

import ast

from newskills.base.benchmark import Benchmark, Judge, Source
from newskills.base.records import Row


def row(raw: Row, index: int) -> Row:
    metadata = raw["metadata"]
    if isinstance(metadata, str):
        metadata = ast.literal_eval(metadata)
    return {
        "metadata": metadata,
        "question": raw["problem"],
        "expected_answer": str(raw["answer"]),
        "subset_for_metrics": str(metadata.get("topic") or "all"),
    }


BENCHMARK = Benchmark(
    name="kosimpleqa",
    category="multilingual",
    title="KoSimpleQA: questions of fact about Korea",
    sources=(Source(hf="bzantium/KoSimpleQA"),),
    row=row,
    prompt="generic/default",
    grader="",
    metric="simpleqa",
    judge=Judge(prompt="judge/simpleqa", grader="verdict", model="o3-mini-2025-01-31", server_type="openai"),
    items={"test": 1000},
    licence="unstated",
    homepage="https://huggingface.co/datasets/bzantium/KoSimpleQA",
    citation="arXiv:2510.18368",
    unverified=True,
    traps=("The judge is asked in English about Korean answers.",),
)
