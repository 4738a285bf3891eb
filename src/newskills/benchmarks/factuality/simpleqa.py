# SPDX-License-Identifier: Apache-2.0
"""Short questions of fact with one answer (Wei et al. 2024, arXiv:2411.04368; verified by Haas et al. 2025)."""

import ast
from typing import Any

from newskills.base.benchmark import Benchmark, Judge, Source
from newskills.base.records import Row

JUDGE = Judge(
    prompt="judge/simpleqa",
    grader="verdict",
    model="o3-mini-2025-01-31",
    server_type="openai",
)


def row(raw: Row, index: int) -> Row:
    """Map a row; `metadata` of the first set is the text of a Python dictionary; the verified set has columns
    instead."""
    raw_metadata: Any = raw.get("metadata")
    rest = {key: value for key, value in raw.items() if key not in ("problem", "answer", "metadata", "_file")}
    metadata = ast.literal_eval(raw_metadata) if isinstance(raw_metadata, str) else rest
    return {
        "metadata": metadata,
        "question": raw["problem"],
        "expected_answer": raw["answer"],
        "subset_for_metrics": metadata.get("topic", "all"),
    }


BENCHMARK = Benchmark(
    name="simpleqa",
    category="factuality",
    title="SimpleQA: short facts, correct, incorrect or not attempted",
    sources=(
        Source(split="verified", hf="codelion/SimpleQA-Verified", hf_split="train"),
        Source(
            split="test",
            url="https://openaipublic.blob.core.windows.net/simple-evals/simple_qa_test_set.csv",
            format="csv",
            sha256="feee3f7e7db3617e94e8fcf1977b756ec420ef8568f4e0fcbbe0e92e9d5fc032",
        ),
    ),
    row=row,
    prompt="generic/default",
    grader="",
    judge=JUDGE,
    metric="simpleqa",
    split="verified",
    items={"test": 4326},
    licence="MIT",
    homepage="https://openai.com/index/introducing-simpleqa/",
    citation="arXiv:2411.04368",
    unverified=True,
    traps=(
        "Two sets: `verified` (default, curated) and `test` (4326): their scores do not compare.",
        "Only `test` was run on its source; `verified` on rows of the same schema.",
        "The judge may give its letter or the word; a text without either is lost, not wrong.",
    ),
)
