# SPDX-License-Identifier: Apache-2.0
"""What graders of texts share: the part of a reply that answers, and verdicts in one form."""

from __future__ import annotations

from newskills.base.reading.reply_text import after_thinking
from newskills.base.records import Cause, Row, Score


def visible_reply(text: str) -> str | None:
    """Return what a reply answers, stripped; None where its reasoning never ended."""
    shown = after_thinking(text)
    if shown is None:
        return None
    return shown.strip()


def ungradable_score(grader: str, why: str, fields: Row) -> Score:
    """Return the score of a record that cannot be graded, whatever the model said."""
    return Score(outcome="unscored", fields=fields, grader=grader, why=why, cause="data")


def no_answer_score(grader: str, record: Row, fields: Row) -> Score:
    """Return the score of a reply without an answer; the cause is truncation where the reply was cut short, or the
    thinking did not end."""
    why = "no answer"
    cause: Cause = "model"
    if record.get("finish_reason") == "length":
        cause = "truncation"
    if visible_reply(str(record.get("generation") or "")) is None:
        why, cause = "the thinking did not end", "truncation"
    return Score(outcome="no_answer", fields=fields, grader=grader, why=why, cause=cause)


def verdict_score(grader: str, correct: bool, fields: Row, why: str, value: float | None = None) -> Score:
    """Return the score of a verdict on an answer; `value` where it is worth something between 0 and 1."""
    return Score(
        outcome="correct" if correct else "wrong",
        fields=fields,
        grader=grader,
        why=why,
        cause=None if correct else "model",
        value=value,
    )
