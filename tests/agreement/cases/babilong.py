# SPDX-License-Identifier: Apache-2.0
"""BABILong (arXiv:2406.10149): one label in the first sentence."""

from __future__ import annotations

import importlib
import random
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from newskills.benchmarks.long_context.question_sets import babilong_row
from tests.agreement.compare import WHOLE, Comparison, Verdict, by_grader

_QUESTIONS = {
    "qa1": "Where is {person}?",
    "qa2": "Where is the {thing}?",
    "qa3": "Where was the {thing} before the {gold}?",
    "qa4": "What is north of the {other}?",
    "qa5": "Who gave the {thing} to {person}?",
}
_PEOPLE, _THINGS = ("Bill", "Fred", "Jeff", "Mary"), ("apple", "football", "milk")


def rows() -> Iterator[Row]:
    draw = random.Random("babilong")
    for task, question in _QUESTIONS.items():
        for number in range(10):
            labels = babilong_row(_raw(task, "", ""), number)["all_classes"]
            gold, other = draw.sample(labels, 2)
            person = draw.choice([name for name in _PEOPLE if name != gold])
            thing = draw.choice([name for name in _THINGS if name != gold])
            asked = question.format(person=person, thing=thing, gold=other, other=other)
            row = babilong_row(_raw(task, asked, gold), number)
            yield {key: row[key] for key in ("task", "asked", "expected_answer", "all_classes", "measure")}


def _raw(task: str, question: str, target: str) -> Row:
    return {"_split": task, "_config": "0k", "input": "", "question": question, "target": target}


def forms(row: Row) -> Mapping[str, str]:
    gold = row["expected_answer"]
    wrong = next(label for label in row["all_classes"] if label != gold and label not in row["asked"])
    made: dict[str, str] = {}
    for kind, answer in (("right", gold), ("wrong", wrong)):
        made |= {
            f"{kind} word": answer,
            f"{kind} upper": answer.upper(),
            f"{kind} sentence": f"The most recent location of Mary is {answer}.",
            f"{kind} bold": f"It is the **{answer}**.",
            f"{kind} label": f"Answer: {answer}",
            f"{kind} second sentence": f"Let me see. It is the {answer}.",
            f"{kind} repeats the question": f"{row['asked']} {answer}",
            f"{kind} example": f"{answer} <example> {wrong} </example>",
            f"{kind} plural": f"{answer}s",
        }
    return made | {
        "both": f"It is the {gold} or the {wrong}.",
        "right, then wrong": f"It is the {gold}. Or the {wrong}.",
        "nothing": "I cannot tell.",
        "thought before": f"<think>It may be the {wrong}.</think>{gold}",
    }


def original(folder: Path) -> Verdict:
    sys.path.insert(0, str(folder / "babilong"))
    metrics = importlib.import_module("metrics")

    def verdict(row: Row, reply: Any) -> float:
        labels = metrics.TASK_LABELS[row["task"]]
        return float(metrics.compare_answers(row["expected_answer"], reply, row["asked"], labels))

    return verdict


COMPARISON = Comparison(
    name="babilong",
    benchmarks=("babilong",),
    scorer="BABILong `metrics.py`",
    compared=WHOLE,
    repository="booydar/babilong",
    rows=rows,
    forms=forms,
    original=original,
    known={f"{task}/thought before": "thoughts are no part of a reply to ours" for task in _QUESTIONS},
    ours=by_grader("long_text", value="score"),
)
