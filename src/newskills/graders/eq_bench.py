# SPDX-License-Identifier: Apache-2.0
"""Intensities of four emotions, compared with those that the authors gave (Paech 2023, arXiv:2312.06281)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from newskills.base.records import Row, Score
from newskills.graders.reading.replies import no_answer_score, ungradable_score, verdict_score, visible_reply

_SCORE = re.compile(r"(?<!\w)(\w++):\s++(\d{1,9})")
_SCALE = 0.7477
"""With it, guessing scores 0."""


class EqBenchGrader:
    """The second version of the score. Fields written: `eq_score` (10 = as the authors; null: no four numbers),
    `parseable`, `predicted_answer`.

    As the authors read replies: `Emotion: 7` without mark-up between, the whole part of a number, the last one for each
    emotion, and no number for anything else.
    """

    name = "eq_bench"
    version = "3"
    answer_keys = ("generation",)
    gold_is_text = True

    def gold_reply(self, record: Row) -> str | None:
        if record.get("expected_answer") is None:
            return None
        return str(record["expected_answer"])

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        wanted = record.get("emotions")
        if not isinstance(wanted, dict) or not wanted:
            nothing: Row = {"predicted_answer": None, "eq_score": None, "parseable": None}
            return ungradable_score(stamp, "the record has no emotions", nothing)
        answers = _read_emotions(visible_reply(str(record.get("generation") or "")) or "", wanted)
        if answers is None:
            return no_answer_score(stamp, record, {"predicted_answer": None, "eq_score": None, "parseable": False})
        score = 10 - _SCALE * math.fsum(
            _score_distance(answers[name], float(value)) for name, value in wanted.items()
        )
        answer = ", ".join(f"{name}: {value:g}" for name, value in answers.items())
        fields: Row = {"predicted_answer": answer, "eq_score": score, "parseable": True}
        share = min(max(score / 10, 0.0), 1.0)
        return verdict_score(stamp, share >= 0.5, fields, f"{score:.2f} of 10", share)


def _read_emotions(text: str, wanted: Mapping[str, object]) -> dict[str, float] | None:
    """Return emotion → number; None where one is missing, or something else has a number."""
    scores = {name: float(number) for name, number in _SCORE.findall(text)}
    if scores.keys() == wanted.keys():
        return scores
    return None


def _score_distance(score: float, right: float) -> float:
    """Return how far a score is off; small differences count for less, by a logistic curve up to 5."""
    off = abs(score - right)
    if off > 5 or off == 0:
        return off
    return 6.5 / (1 + math.exp(-1.2 * (off - 4)))
