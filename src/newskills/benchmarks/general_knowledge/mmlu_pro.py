# SPDX-License-Identifier: Apache-2.0
"""Harder questions with up to ten options in 14 fields (Wang et al. 2024, arXiv:2406.01574)."""

import hashlib

from newskills.base.benchmark import OTHER_SPLIT, Benchmark, Drop, Source
from newskills.base.records import Row
from newskills.benchmarks.downloads.sources import BESIDE
from newskills.benchmarks.text import choices

_TENTH = "10pct_opt_v1"
_LIST = (
    f"https://raw.githubusercontent.com/NVIDIA-NeMo/Skills/main/nemo_skills/dataset/mmlu-pro/subsets/{_TENTH}.txt"
)


def row(raw: Row, index: int) -> Row:
    if "ABCDEFGHIJ"[raw["answer_index"]] != raw["answer"]:
        raise ValueError(f"the answer {raw['answer']!r} is not number {raw['answer_index']} of the options")
    worked_answer = str(raw.get("cot_content") or "").removeprefix("A: ")
    dotted = [f"{letter}. {option}\n" for letter, option in zip("ABCDEFGHIJ", raw["options"], strict=False)]
    return {
        "id": f"mmlu-pro-{raw['question_id']}",
        "question": raw["question"],
        "expected_answer": raw["answer"],
        **choices(raw["question"], raw["options"]),
        "dotted_options": "".join(dotted),
        "category": raw["category"],
        "subset_for_metrics": raw["category"],
        **({"worked_answer": worked_answer} if worked_answer else {}),
        "examples_type": f"mmlu_pro_few_shot_{raw['category'].replace(' ', '_')}",
    }


def question_hash(raw: Row) -> str:
    """Return the hash by which lists name a question: of it and its options, in lower case and without extra
    blanks."""
    texts = (" ".join(text.strip().lower().split()) for text in (raw["question"], *raw["options"]))
    return hashlib.sha256(" ".join(texts).encode()).hexdigest()


def tenth_row(raw: Row, index: int) -> Row | Drop:
    """Keep only rows on the list; of one that is twice in the source, the later is meant, too."""
    if {"id": question_hash(raw)} in raw[BESIDE]:
        return row(raw, index)
    return OTHER_SPLIT


BENCHMARK = Benchmark(
    name="mmlu-pro",
    category="general-knowledge",
    title="MMLU-Pro: up to ten options in 14 fields",
    aliases=("mmlu_pro", "ns_mmlu_pro"),
    sources=(
        Source(hf="TIGER-Lab/MMLU-Pro"),
        Source(split="validation", hf="TIGER-Lab/MMLU-Pro"),
        Source(split=_TENTH, hf="TIGER-Lab/MMLU-Pro", hf_split="test", beside=_LIST),
    ),
    row=row,
    variants={_TENTH: tenth_row},
    prompt="eval/aai/mcq-10choices",
    grader="multichoice",
    metric="multichoice",
    items={"test": 12032, "validation": 70},
    licence="MIT",
    homepage="https://huggingface.co/datasets/TIGER-Lab/MMLU-Pro",
    citation="arXiv:2406.01574",
    chance=0.11,
    unverified=True,
    traps=(
        "Published scores are those of five examples from the validation split, which the official prompt shows; "
        "without it the question stands alone.",
        "About a sixth of the questions have fewer than ten options.",
        f"The split {_TENTH} is a tenth of the test split, chosen by NeMo-Skills: scores are not the same.",
    ),
)
