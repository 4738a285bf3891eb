# SPDX-License-Identifier: Apache-2.0
"""GSM8K problems varied in eight ways (Li et al. 2024, arXiv:2402.19255)."""

import re

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import number_text

_DECIMAL = re.compile(r"-?\d+\.(\d+)")


def row(raw: Row, index: int) -> Row:
    kept = {key: value for key, value in raw.items() if key not in ("question", "answer", "solution")}
    answer = "insufficient" if raw["answer"] in (None, "None") else number_text(raw["answer"])
    return {
        **kept,
        "problem": raw["question"],
        "expected_answer": answer,
        "reference_solution": raw["solution"],
        "subset_for_metrics": raw["perturbation_type"].replace(" ", "_"),
    }


def rounded(raw: Row, index: int) -> Row:
    """Says how many decimals the answer should have, where it is a decimal number."""
    made = row(raw, index)
    if decimal := _DECIMAL.fullmatch(made["expected_answer"]):
        places = len(decimal[1])
        made["problem"] += f" Round your answer to {places} decimal place{'s' if places > 1 else ''}."
    return made


BENCHMARK = Benchmark(
    name="gsm-plus",
    category="math-natural",
    title="GSM-Plus: GSM8K problems varied in eight ways",
    sources=(
        Source(hf="qintongli/GSM-Plus"),
        Source(split="test_rounded", hf="qintongli/GSM-Plus", hf_split="test"),
    ),
    row=row,
    variants={"test_rounded": rounded},
    prompt="generic/math",
    items={"test": 10552, "test_rounded": 10552},
    licence="CC-BY-SA-4.0",
    homepage="https://huggingface.co/datasets/qintongli/GSM-Plus",
    citation="arXiv:2402.19255",
    unverified=True,
    traps=(
        "Where the problem lacks a statement (critical_thinking), the right answer is the word insufficient.",
        "Some answers are decimals that the question does not ask to round: the split test_rounded does.",
        "Some rows are wrong; lists of the sound ones are published, none is applied here.",
    ),
)
