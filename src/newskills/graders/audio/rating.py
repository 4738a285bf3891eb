# SPDX-License-Identifier: Apache-2.0
"""Judges that give points to answers about sound: `Rating: 4`, or five criteria of one to five points each."""

from __future__ import annotations

import re

from newskills.base.judgement import parse_judgement
from newskills.base.reading.offered_verdicts import own_words
from newskills.base.records import Row, Score

_RATING = re.compile(r"\brating\W{0,8}:\W{0,8}([0-5](?:\.\d{1,2})?)\b", re.IGNORECASE)
CRITERIA = ("correctness", "relevance", "completeness", "clarity", "overall")
_CRITERION = re.compile(rf"\b({'|'.join(CRITERIA)})\W{{0,8}}:\W{{0,8}}([0-5](?:\.\d{{1,2}})?)\b", re.IGNORECASE)
_GOOD = 3.0
_GOOD_OVERALL = 4.0


class AudioRatingGrader:
    """`judge_rating` (0–5) and `judge_correct` (from 3 on; or the verdict of a judge that says yes or no)."""

    name = "audio_rating"
    version = "3"

    def grade(self, record: Row) -> Score:
        text = str(record.get("judgement") or "")
        verdict = parse_judgement(text)
        ratings = _RATING.findall(own_words(text))
        points: float | None = None
        correct = verdict
        if ratings:
            points = float(ratings[-1])
            correct = points >= _GOOD
        elif verdict is not None:
            points = 5.0 * verdict
        return _rating_score(self.name, {"judge_rating": points, "judge_correct": correct}, correct, points)


class CriteriaGrader:
    """`judge_<criterion>` (1–5) for five criteria and `judge_correct`: overall 4 or more."""

    name = "mmau-pro"
    version = "2"

    def grade(self, record: Row) -> Score:
        points_by_criterion = {
            name.lower(): float(points)
            for name, points in _CRITERION.findall(own_words(str(record.get("judgement") or "")))
        }
        fields: Row = {f"judge_{name}": None for name in CRITERIA}
        if not all(name in points_by_criterion for name in CRITERIA):
            return _rating_score(self.name, {**fields, "judge_correct": None}, None, None)
        fields = {f"judge_{name}": points_by_criterion[name] for name in CRITERIA}
        overall = points_by_criterion["overall"]
        correct = overall >= _GOOD_OVERALL
        return _rating_score(self.name, {**fields, "judge_correct": correct}, correct, overall)


def _rating_score(name: str, fields: Row, correct: bool | None, points: float | None) -> Score:
    stamp = f"{name}@2"
    if correct is None or points is None:
        why = "the judge's text has no points"
        return Score(outcome="unscored", fields=fields, grader=stamp, why=why, cause="judge")
    outcome, cause = ("correct", None) if correct else ("wrong", "model")
    return Score(outcome=outcome, fields=fields, grader=stamp, cause=cause, value=points / 5)  # type: ignore[arg-type]
