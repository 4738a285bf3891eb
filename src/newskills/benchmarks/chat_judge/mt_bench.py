# SPDX-License-Identifier: Apache-2.0
"""Eighty conversations of two turns, marked from 1 to 10 (Zheng et al. 2023, arXiv:2306.05685)."""

from collections.abc import Iterable, Iterator

from newskills.base.benchmark import Benchmark, Judge, Source
from newskills.base.records import Row


def join_references(raw: Iterable[Row]) -> Iterator[Row]:
    """Join questions with the reference answers that some of them have."""
    questions: list[Row] = []
    references: dict[int, list[str]] = {}
    for row in raw:
        if "choices" in row:
            references[row["question_id"]] = row["choices"][0]["turns"]
        else:
            questions.append(row)
    for row in questions:
        yield {**row, "references": references.get(row["question_id"]) or row.get("reference") or []}


def row(raw: Row, index: int) -> Row:
    return {
        "id": f"mt-bench-{raw['question_id']}",
        "question": raw["turns"][0],
        "turns": raw["turns"],
        "turn_references": raw["references"],
        "category": raw["category"],
        "subset_for_metrics": raw["category"],
    }


BENCHMARK = Benchmark(
    name="mt-bench",
    category="chat-judge",
    title="MT-Bench: conversations of two turns",
    sources=(
        Source(
            url="https://raw.githubusercontent.com/lm-sys/FastChat/main/fastchat/llm_judge/data/mt_bench/"
            "{question.jsonl,reference_answer/gpt-4.jsonl}",
            revision="0e6d3e4beaab66f4d3f93db72541a4abab8af28d",
        ),
    ),
    join=join_references,
    row=row,
    prompt="generic/default",
    solver="turns",
    grader="",
    metric="mt-bench",
    judge=Judge(prompt="judge/mt-bench", kind="turns", grader="rating"),
    items={"test": 80},
    licence="Apache-2.0",
    homepage="https://github.com/lm-sys/FastChat",
    citation="arXiv:2306.05685",
    traps=(
        "Scores are marks from 1 to 10, not percent; published ones are GPT-4's.",
        "All categories are answered at one temperature; the original varies it by category.",
    ),
)
