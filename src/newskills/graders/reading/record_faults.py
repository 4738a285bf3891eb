# SPDX-License-Identifier: Apache-2.0
"""Records that a grader cannot judge, whatever a model answered: the answer's field is missing, the gold is an object.

Such a record says nothing about a model, so it is no wrong answer. A grader's class says what it reads, for itself and
not for classes made from it:

    answer_keys   a record has one of these fields, null or not, else there is no answer to judge
    gold_is_text  its right answer is a text, a number, or a list of them
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from newskills.base.errors import GraderError
from newskills.base.protocols import ExecutingGrader, Grader
from newskills.base.records import Row, Score
from newskills.graders import FunctionGrader
from newskills.graders.reading.replies import ungradable_score

_OWN = "newskills."


def missing_answer(grader: Grader | ExecutingGrader, record: Row) -> str:
    """Return the fields of which `record` has none, and `grader` needs one; empty: it has one."""
    answers = _answer_fields(grader)
    if not answers or any(name in record for name in answers):
        return ""
    return " and no ".join(f"`{name}`" for name in answers)


def fault_of(grader: Grader | ExecutingGrader, record: Row) -> str | None:
    """Return why `grader` can judge nothing in `record`, whatever a model answered; None: it can."""
    return _fault_finder(grader)(record)


def grading_function(grader: Grader) -> Callable[[Row], Score]:
    """Return what grades records as `grader` does, where it can: a faulty record is unscored, by its data.

    It raises GraderError for a figure that is not finite.
    """
    find, grade, checked = _fault_finder(grader), grader.grade, not _is_ours(grader)

    def graded(record: Row) -> Score:
        fault = find(record)
        if fault is not None:
            return fault_score(grader, fault)
        score = grade(record)
        if checked:
            check_figures(grader, score)
        return score

    return graded


def fault_score(grader: Grader | ExecutingGrader, fault: str) -> Score:
    """Return the verdict on a record with a fault."""
    return ungradable_score(
        f"{grader.name}@{grader.version}", fault, {"predicted_answer": None, "symbolic_correct": None}
    )


def check_figures(grader: Grader | ExecutingGrader, score: Score) -> None:
    """Raise GraderError for a figure of a verdict that is not finite: written to a record it would become null."""
    for name, figure in (("value", score.value), *score.fields.items()):
        if isinstance(figure, float) and not math.isfinite(figure):
            raise GraderError(f"Grader '{grader.name}' gave {figure} as '{name}', which is not a finite number.")


def _is_ours(grader: Grader | ExecutingGrader) -> bool:
    return type(grader).__module__.startswith(_OWN) and not isinstance(grader, FunctionGrader)


def _answer_fields(grader: Grader | ExecutingGrader) -> tuple[str, ...]:
    answer_keys: tuple[str, ...] = vars(type(grader)).get("answer_keys", ())
    answer_key = getattr(getattr(grader, "config", None), "answer_key", None)
    if answer_keys and isinstance(answer_key, str):
        return (answer_key,)
    return answer_keys


def _fault_finder(grader: Grader | ExecutingGrader) -> Callable[[Row], str | None]:
    answers = _answer_fields(grader)
    config: Any = getattr(grader, "config", None)
    gold = ""
    if vars(type(grader)).get("gold_is_text"):
        gold = str(getattr(config, "gold_key", "expected_answer"))

    def fault(record: Row) -> str | None:
        if answers and not any(name in record for name in answers):
            return f"the record has no {' and no '.join(answers)}"
        if gold and _is_object(record.get(gold)):
            return f"`{gold}` is an object, not an answer"
        return None

    return fault


def _is_object(value: object) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(item, dict) for item in value))
