# SPDX-License-Identifier: Apache-2.0
"""Equality of texts, with blanks, case and Unicode forms made one."""

from __future__ import annotations

import unicodedata
from typing import Annotated

from msgspec import Meta, Struct

from newskills.base.records import Row, Score


class ExactConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++eval_config.*` of `eval_type=exact`."""

    ignore_case: Annotated[bool, Meta(description="compare without regard to upper and lower case")] = True
    answer_key: Annotated[str, Meta(description="field with the model's answer")] = "generation"
    gold_key: Annotated[str, Meta(description="field with the right answer")] = "expected_answer"


class ExactGrader:
    """The whole answer must be the expected text. Fields written: `predicted_answer`, `symbolic_correct`."""

    name = "exact"
    version = "1"
    Config = ExactConfig

    def __init__(self, config: ExactConfig = ExactConfig()) -> None:  # noqa: B008 - frozen
        self.config = config

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        gold = record.get(self.config.gold_key)
        if gold is None:
            why = f"the record has no {self.config.gold_key}"
            fields: Row = {"predicted_answer": None, "symbolic_correct": None}
            return Score(outcome="unscored", fields=fields, grader=stamp, why=why, cause="data")
        text = str(record.get(self.config.answer_key) or "")
        end = text.rfind("</think>")
        answer = text[end + len("</think>") :].strip() if end >= 0 else text.strip()
        if not answer or (end < 0 and "<think>" in text):
            fields = {"predicted_answer": None, "symbolic_correct": False}
            cause = "truncation" if "<think>" in text or record.get("finish_reason") == "length" else "model"
            return Score(outcome="no_answer", fields=fields, grader=stamp, why="no answer", cause=cause)  # type: ignore[arg-type]
        correct = self._form(answer) == self._form(str(gold))
        fields = {"predicted_answer": answer, "symbolic_correct": correct}
        return Score(
            outcome="correct" if correct else "wrong",
            fields=fields,
            grader=stamp,
            why="same text" if correct else "another text",
            cause=None if correct else "model",
        )

    def _form(self, text: str) -> str:
        text = " ".join(unicodedata.normalize("NFKC", text).split())
        return text.casefold() if self.config.ignore_case else text
