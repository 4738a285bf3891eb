# SPDX-License-Identifier: Apache-2.0
"""What trained models measured: the quality of a translation, and the option that an answer is nearest to."""

from __future__ import annotations

import json
import math
from string import ascii_uppercase
from typing import Any

from newskills.base.records import Row, Score
from newskills.graders.reading.replies import ungradable_score, verdict_score

_HALF = 0.5


class CometGrader:
    """Field written: `comet`, about 0–1; correct from one half on, on which nothing but filters should rely."""

    name = "comet"
    version = "1"

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        score = _read_number(record.get("judgement"))
        if score is None:
            return _unscored_text(stamp, "there is no score", {"comet": None})
        return verdict_score(
            stamp, score >= _HALF, {"comet": score}, f"COMET {score:.3f}", min(1.0, max(0.0, score))
        )


class NearestOptionGrader:
    """Fields written: `predicted_answer` (letter of the most similar option), `symbolic_correct`, `is_correct`."""

    name = "nvembed"
    version = "1"

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        nothing: Row = {"predicted_answer": None, "symbolic_correct": None, "is_correct": None}
        similarities = _read_numbers(record.get("judgement"))
        expected = str(record.get("expected_answer") or "")
        if not similarities or len(similarities) > len(ascii_uppercase):
            return _unscored_text(stamp, "there are no similarities", nothing)
        if expected not in ascii_uppercase[: len(similarities)] or not expected:
            return ungradable_score(stamp, "expected_answer is the letter of no option", nothing)
        if not str(record.get("generation") or "").strip():
            empty: Row = {"predicted_answer": None, "symbolic_correct": False, "is_correct": False}
            return Score(outcome="no_answer", fields=empty, grader=stamp, why="no answer", cause="model")
        letter = ascii_uppercase[max(range(len(similarities)), key=lambda place: similarities[place])]
        right = letter == expected
        fields: Row = {"predicted_answer": letter, "symbolic_correct": right, "is_correct": right}
        return verdict_score(stamp, right, fields, f"nearest to {letter}")


def _unscored_text(stamp: str, why: str, fields: Row) -> Score:
    return Score(outcome="unscored", fields=fields, grader=stamp, why=why, cause="judge")


def _read_number(text: object) -> float | None:
    try:
        score = float(str(text)[:100])
    except ValueError:
        return None
    if math.isfinite(score):
        return score
    return None


def _read_numbers(text: object) -> list[float]:
    try:
        values: Any = json.loads(str(text))
    except (ValueError, RecursionError):
        return []
    numbers = [_read_number(item) for item in values] if isinstance(values, list) else []
    present = [item for item in numbers if item is not None]
    if len(present) == len(numbers):
        return present
    return []
