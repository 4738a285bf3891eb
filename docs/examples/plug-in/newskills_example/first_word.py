"""Grader `first-word`: the answer is the first word of the reply."""

from __future__ import annotations

from typing import Any

from newskills.base.records import Row, Score


class FirstWord:
    name, version = "first-word", "1"

    def __init__(self, **config: Any) -> None: ...

    def grade(self, record: Row) -> Score:
        words = record["generation"].split()[:1]
        right = words == [record["expected_answer"]]
        fields = {"predicted_answer": words[0] if words else None, "symbolic_correct": right}
        return Score(
            outcome="correct" if right else "wrong" if words else "no_answer", fields=fields, grader="first-word@1"
        )
