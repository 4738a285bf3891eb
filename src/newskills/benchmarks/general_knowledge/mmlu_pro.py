# SPDX-License-Identifier: Apache-2.0
"""Harder questions with up to ten options in 14 fields (Wang et al. 2024, arXiv:2406.01574)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import choices


def row(raw: Row, index: int) -> Row:
    if "ABCDEFGHIJ"[raw["answer_index"]] != raw["answer"]:
        raise ValueError(f"the answer {raw['answer']!r} is not number {raw['answer_index']} of the options")
    return {
        "id": f"mmlu-pro-{raw['question_id']}",
        "expected_answer": raw["answer"],
        **choices(raw["question"], raw["options"]),
        "subset_for_metrics": raw["category"],
        "examples_type": f"mmlu_pro_few_shot_{raw['category'].replace(' ', '_')}",
    }


BENCHMARK = Benchmark(
    name="mmlu-pro",
    category="general-knowledge",
    title="MMLU-Pro: up to ten options in 14 fields",
    aliases=("mmlu_pro", "ns_mmlu_pro"),
    sources=(
        Source(hf="TIGER-Lab/MMLU-Pro"),
        Source(split="validation", hf="TIGER-Lab/MMLU-Pro"),
    ),
    row=row,
    prompt="eval/aai/mcq-10choices",
    grader="multichoice",
    metric="multichoice",
    items={"test": 12032, "validation": 70},
    licence="MIT",
    homepage="https://huggingface.co/datasets/TIGER-Lab/MMLU-Pro",
    citation="arXiv:2406.01574",
    chance=0.11,
    unverified=True,
    traps=("About a sixth of the questions have fewer than ten options.",),
)
