# SPDX-License-Identifier: Apache-2.0
"""Olympiad problems in physics, chemistry and biology (OpenAI 2025, FrontierScience)."""

from functools import partial

from newskills.base.benchmark import OTHER_SPLIT, Benchmark, Drop, Judge, Source
from newskills.base.records import Row

_SUBJECTS = ("physics", "chemistry", "biology")


def row(raw: Row, index: int) -> Row:
    return {
        "id": f"olympiad-{index}",
        "question": raw["problem"],
        "expected_answer": raw["answer"].strip("`").strip(),
        "subset_for_metrics": raw["subject"],
        "task_group_id": raw["task_group_id"],
    }


def _subject_row(subject: str, raw: Row, index: int) -> Row | Drop:
    if raw["subject"].lower() == subject:
        return row(raw, index)
    return OTHER_SPLIT


def _source(split: str) -> Source:
    return Source(
        split=split, url="https://huggingface.co/datasets/openai/frontierscience/resolve/main/olympiad/test.jsonl"
    )


BENCHMARK = Benchmark(
    name="frontierscience-olympiad",
    category="science",
    title="FrontierScience: olympiad problems in three sciences",
    sources=tuple(map(_source, ("all", *_SUBJECTS))),
    row=row,
    variants={subject: partial(_subject_row, subject) for subject in _SUBJECTS},
    grader="",
    metric="frontierscience-olympiad",
    judge=Judge(prompt="judge/frontierscience-olympiad", model="o3-mini-2025-01-31", server_type="openai"),
    split="all",
    items={"all": 100},
    licence="Apache-2.0",
    homepage="https://huggingface.co/datasets/openai/frontierscience",
    citation="OpenAI 2025, FrontierScience",
    unverified=True,
    traps=("Answers are expressions, numbers with units, or names: only a judge compares them.",),
)
