# SPDX-License-Identifier: Apache-2.0
"""The verdict in a judge's text. A text without one is the judge's failure, not the answer's."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from newskills.base.judgement import parse_judgement
from newskills.base.records import Row, Score


class JudgementConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++eval_config.*` of `eval_type=judgement`."""

    judgement_key: Annotated[str, Meta(description="field with the judge's text")] = "judgement"
    answer_key: Annotated[str, Meta(description="field that is null where there was no answer to judge")] = (
        "predicted_answer"
    )
    text_key: Annotated[str, Meta(description="field that is blank where there was none")] = "generation"


class JudgementGrader:
    """Reads `Judgement: Yes|No` (or `1|0`), `\\boxed{Correct|Incorrect}`, points of 7, or `correct` of a JSON object.

    Field written: `judge_correct`.
    """

    name = "judgement"
    version = "9"
    Config = JudgementConfig

    def __init__(self, config: JudgementConfig = JudgementConfig()) -> None:  # noqa: B008 - frozen
        self.config = config

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        verdict = parse_judgement(record.get(self.config.judgement_key))
        fields: Row = {"judge_correct": verdict}
        if verdict is None:
            why = "the judge's text has no verdict"
            return Score(outcome="unscored", fields=fields, grader=stamp, why=why, cause="judge")
        if verdict:
            return Score(outcome="correct", fields=fields, grader=stamp)
        if self._has_no_answer(record):
            return Score(outcome="no_answer", fields=fields, grader=stamp, why="no answer")
        return Score(outcome="wrong", fields=fields, grader=stamp, cause="model")

    def _has_no_answer(self, record: Row) -> bool:
        answer, text = record.get(self.config.answer_key, ""), record.get(self.config.text_key)
        return answer is None or (isinstance(text, str) and not text.strip())
