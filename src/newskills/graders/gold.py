# SPDX-License-Identifier: Apache-2.0
"""What a grader says a right reply to a record looks like, and the grading of records of several graders in one worker.

`WorkerPool("newskills.graders.gold:make", {})`; each item is `{"grader": name, "config": {…}, "record": {…}}`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import msgspec

from newskills.base.protocols import ExecutingGrader, Grader
from newskills.base.records import Row, Score
from newskills.graders import make_grader


def gold_reply(grader: Grader | ExecutingGrader, record: Row) -> Row | None:
    """Return the fields that a right answer adds to `record`; None where the grader (or the record) does not tell.

    A grader tells it by a method `gold_reply(record)` that returns the text of the reply, or all fields that its
    solver writes, or None.
    """
    maker: Any = getattr(grader, "gold_reply", None)
    reply = None if maker is None else maker(record)
    if reply is None:
        return None
    return _reply_fields(reply)


def same_replies(grader: Grader | ExecutingGrader, record: Row) -> list[Row]:
    """Return the right answer in other forms, each as right, from the grader's method `same_replies(record)`; an empty
    list where it has none."""
    maker: Any = getattr(grader, "same_replies", None)
    if maker is None:
        return []
    return [_reply_fields(reply) for reply in maker(record)]


def _reply_fields(reply: str | Row) -> Row:
    if isinstance(reply, str):
        return {"generation": reply}
    return {"generation": "", **reply}


def make(config: Row) -> Callable[[Row], Score]:
    """Return the function that grades an item of the form `{"grader": name, "config": {…}, "record": {…}}`."""
    made: dict[bytes, Grader] = {}

    def grade(item: Row) -> Score:
        key = msgspec.json.encode([item["grader"], item["config"]])
        if key not in made:
            made[key] = cast(Grader, make_grader(item["grader"], item["config"]))
        return made[key].grade(item["record"])

    return grade
