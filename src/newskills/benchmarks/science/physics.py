# SPDX-License-Identifier: Apache-2.0
"""Physics problems from school to university, English and Chinese (Zheng et al. 2025, arXiv:2506.00022)."""

from collections.abc import Iterable, Iterator

from newskills.base.benchmark import OTHER_SPLIT, Benchmark, Drop, Judge, Source
from newskills.base.records import Row
from newskills.benchmarks.text import boxed_contents


def _flat_answers(answers: Iterable[object]) -> Iterator[str]:
    """Yield the answers of nested lists, in order, without boxes around them."""
    for answer in answers:
        if isinstance(answer, list):
            yield from _flat_answers(answer)
        else:
            yield ", ".join(boxed_contents(str(answer))) or str(answer)


def bilingual_row(raw: Row, index: int) -> Row:
    answers = raw["final_answers"] if "final_answers" in raw else raw["answer"]
    return {
        "problem": raw["question"],
        "expected_answer": f"\\boxed{{{', '.join(_flat_answers([answers]))}}}",
        "solution": raw["solution"],
        "answer_type": raw.get("answer_type"),
        "subset_for_metrics": raw["domain"],
        "difficulty": raw["difficulty"],
        "language": raw["language"],
    }


def row(raw: Row, index: int) -> Row | Drop:
    if raw["language"] == "en":
        return bilingual_row(raw, index)
    return OTHER_SPLIT


def chinese_row(raw: Row, index: int) -> Row | Drop:
    if raw["language"] == "zh":
        return bilingual_row(raw, index)
    return OTHER_SPLIT


BENCHMARK = Benchmark(
    name="physics",
    category="science",
    title="PHYSICS: problems from school to university",
    sources=tuple(Source(split=split, hf="desimfj/PHYSICS", hf_split="test") for split in ("test", "zh", "en_zh")),
    row=row,
    variants={"zh": chinese_row, "en_zh": bilingual_row},
    prompt="generic/physics",
    metric="physics",
    judge=Judge(prompt="judge/physics", model="o4-mini-2025-04-16", server_type="openai"),
    items={"test": 1000},
    licence="unstated",
    homepage="https://huggingface.co/datasets/desimfj/PHYSICS",
    citation="arXiv:2506.00022",
    unverified=True,
    traps=(
        "An answer may hold several values: all of them stand in one box, in the order of the question.",
        "The split test is the English half; zh and en_zh are the Chinese half and both.",
    ),
)
