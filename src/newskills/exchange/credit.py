# SPDX-License-Identifier: Apache-2.0
"""The score of a record, as other tools write one for each sample."""

from __future__ import annotations

from newskills.base.records import Row

VERDICT_FIELDS = ("symbolic_correct", "judge_correct", "is_correct", "correct")
"""Fields that hold a verdict where a record does not say how it ended, in this order."""
_CREDIT = {"correct": 1.0, "no_answer": 0.0, "unscored": None}


def answer_credit(row: Row) -> float | None:
    """Return the score of a record's answer, 0–1; None means that nobody could judge it."""
    outcome = str(row.get("outcome"))
    if outcome in _CREDIT:
        return _CREDIT[outcome]
    values = [
        row[name]
        for name in VERDICT_FIELDS
        if isinstance(row.get(name), bool | int | float) and 0 <= row[name] <= 1
    ]
    if outcome == "wrong":  # credit for a part is no right answer
        return next((float(value) for value in values if value < 1), 0.0)
    if values:
        return float(values[0])
    return None
