# SPDX-License-Identifier: Apache-2.0
"""A judge's choice among several verdicts, given as a letter or as its name."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from newskills.base.judgement import parse_verdict
from newskills.base.records import Row, Score

_FACTS = {"A": "correct", "B": "incorrect", "C": "not_attempted"}


class VerdictConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++eval_config.*` of `eval_type=verdict`."""

    verdicts: Annotated[dict[str, str], Meta(description="letter → name of the verdict")] = msgspec.field(
        default_factory=lambda: dict(_FACTS)
    )
    right: Annotated[
        tuple[str, ...],
        Meta(description="the verdicts that are a success, where the record has no right_verdicts"),
    ] = ("correct",)
    unanswered: Annotated[tuple[str, ...], Meta(description="the verdicts that say there is no answer")] = (
        "not_attempted",
    )
    judgement_key: Annotated[str, Meta(description="field with the judge's text")] = "judgement"


class VerdictGrader:
    """Fields written: `verdict` (a name or null), `judge_correct`. A text without a verdict is the judge's failure."""

    name = "verdict"
    version = "7"
    Config = VerdictConfig

    def __init__(self, config: VerdictConfig = VerdictConfig()) -> None:  # noqa: B008 - frozen
        self.config = config

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        verdict = parse_verdict(record.get(self.config.judgement_key), self.config.verdicts)
        if verdict is None:
            why = "the judge's text has no verdict, or several"
            fields: Row = {"verdict": None, "judge_correct": None}
            return Score(outcome="unscored", fields=fields, grader=stamp, why=why, cause="judge")
        correct = verdict in (record.get("right_verdicts") or self.config.right)
        fields = {"verdict": verdict, "judge_correct": correct}
        if correct:
            return Score(outcome="correct", fields=fields, grader=stamp, why=verdict)
        outcome = "no_answer" if verdict in self.config.unanswered else "wrong"
        return Score(outcome=outcome, fields=fields, grader=stamp, why=verdict, cause="model")  # type: ignore[arg-type]
