# SPDX-License-Identifier: Apache-2.0
"""Logical reading of the Chinese civil-service examination, in English (arXiv:2007.08124; the second: 2306.09479)."""

import json

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import choices


def _choice_fields(context: str, question: str, options: list[str], right: int) -> Row:
    if not 0 <= right < len(options):
        raise ValueError(f"the answer is {right}, and there are {len(options)} options")
    return {"expected_answer": "ABCD"[right], **choices(f"{context}\n\n{question}", options)}


def logiqa_row(raw: Row, index: int) -> Row:
    right = "abcd".index(raw["label"].strip().lower())
    return _choice_fields(raw["context"], raw["question"], list(raw["options"]), right)


def logiqa2_row(raw: Row, index: int) -> Row:
    """Return the row of the item that the column `text` holds as JSON."""
    item = json.loads(raw["text"])
    return _choice_fields(item["text"], item["question"], item["options"], int(item["answer"]))


BENCHMARKS = (
    Benchmark(
        name="logiqa",
        category="reasoning",
        title="LogiQA: logical reading",
        sources=(Source(hf="EleutherAI/logiqa", config="logiqa"),),
        row=logiqa_row,
        prompt="eval/aai/mcq-10choices",
        grader="multichoice",
        metric="multichoice",
        items={"test": 651},
        licence="unstated",
        homepage="https://github.com/lgw863/LogiQA-dataset",
        citation="arXiv:2007.08124",
        chance=0.25,
        unverified=True,
    ),
    Benchmark(
        name="logiqa2",
        category="reasoning",
        title="LogiQA 2.0: logical reading, translated anew",
        sources=(Source(hf="baber/logiqa2", config="logiqa2"),),
        row=logiqa2_row,
        prompt="eval/aai/mcq-10choices",
        grader="multichoice",
        metric="multichoice",
        items={"test": 1572},
        licence="CC-BY-NC-SA-4.0",
        homepage="https://github.com/csitfun/LogiQA2.0",
        citation="arXiv:2306.09479",
        chance=0.25,
        unverified=True,
        traps=("Each row is JSON inside one text column.",),
    ),
)
