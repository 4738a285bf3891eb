# SPDX-License-Identifier: Apache-2.0
"""A grader that costs nothing to load: `eval_type="tests.run.toy::ToyGrader"`."""

from __future__ import annotations

import re

from msgspec import Struct

from newskills.base.records import Row, Score

NAME = "tests.run.toy::ToyGrader"


class Config(Struct, frozen=True):
    """`always`: everything with an answer is correct. `broken`: this expected answer makes it fail."""

    always: bool = False
    broken: str = ""


class ToyGrader:
    """The last number of the text is the answer."""

    name, version = "toy", "1"
    Config = Config

    def __init__(self, config: Config) -> None:  # type: ignore[valid-type]
        self.config = config

    def grade(self, record: Row) -> Score:
        gold = record["expected_answer"]
        if gold == self.config.broken:  # type: ignore[attr-defined]
            raise ValueError(f"cannot grade {gold}")
        found = re.findall(r"\d+", record["generation"])
        answer = found[-1] if found else None
        if answer is None:
            return Score(outcome="no_answer", fields={"predicted_answer": None}, grader="toy@1")
        right = self.config.always or answer == gold  # type: ignore[attr-defined]
        return Score(
            outcome="correct" if right else "wrong",
            fields={"predicted_answer": answer},
            grader="toy@1",
            cause=None if right else "model",
        )
