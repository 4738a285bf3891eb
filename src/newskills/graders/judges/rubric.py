# SPDX-License-Identifier: Apache-2.0
"""Points for the criteria that a judge says are met (HealthBench: Arora et al. 2025, arXiv:2505.08775, §3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from newskills.base.judgement import parse_judgement
from newskills.base.records import Row, Score
from newskills.graders.reading.replies import ungradable_score, verdict_score

TAG = "axis:"


class RubricGrader:
    """Fields written: `rubric_met` (a verdict for each criterion), `rubric_score`, `axis_scores` (axis → score), and
    `criteria_met` (name → verdict) where criteria have names.

    A score is the points of the criteria that are met (those of faults are negative) of all positive points: it is at
    most 1, and may be below 0. An axis without positive points has none. A criterion without a verdict leaves the
    sample unscored. Correct: a score of 1.
    """

    name = "rubric"
    version = "6"

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        rubrics = record.get("rubrics")
        nothing: Row = {"rubric_score": None, "axis_scores": {}}
        if not isinstance(rubrics, list) or not rubrics:
            return ungradable_score(stamp, "the record has no rubrics", {"rubric_met": [], **nothing})
        met = [parse_judgement(record.get(f"judgement-rubric-{number}")) for number in range(1, len(rubrics) + 1)]
        if missing := met.count(None):
            why = f"{missing} of {len(met)} criteria have no verdict"
            fields: Row = {"rubric_met": met, **nothing}
            return Score(outcome="unscored", fields=fields, grader=stamp, why=why, cause="judge")
        verdicts = [bool(verdict) for verdict in met]
        score = rubric_score(rubrics, verdicts)
        if score is None:
            return ungradable_score(stamp, "no criterion has positive points", {"rubric_met": met, **nothing})
        axes = {
            tag.removeprefix(TAG) for rubric in rubrics for tag in rubric.get("tags") or () if tag.startswith(TAG)
        }
        scores = {axis: _axis_score(axis, rubrics, verdicts) for axis in sorted(axes)}
        fields = {
            "rubric_met": verdicts,
            "rubric_score": score,
            "axis_scores": {axis: value for axis, value in scores.items() if value is not None},
        }
        pairs = zip(rubrics, verdicts, strict=True)
        if named := {rubric["name"]: verdict for rubric, verdict in pairs if rubric.get("name")}:
            fields["criteria_met"] = named
        why = f"{sum(verdicts)} of {len(verdicts)} criteria are met"
        return verdict_score(stamp, score >= 1, fields, why, min(max(score, 0.0), 1.0))


def rubric_score(rubrics: Sequence[Mapping[str, object]], met: Sequence[bool]) -> float | None:
    """Return the points of what is met as a share of all positive points; None where there are none.

    >>> rubric_score([{"points": 5}, {"points": 3}, {"points": -4}], [True, False, True])
    0.125
    """
    points = [float(str(rubric["points"])) for rubric in rubrics]
    possible = sum(value for value in points if value > 0)
    if not possible:
        return None
    return sum(value for value, verdict in zip(points, met, strict=True) if verdict) / possible


def _axis_score(axis: str, rubrics: Sequence[Mapping[str, object]], met: Sequence[bool]) -> float | None:
    pairs = [
        (rubric, verdict)
        for rubric, verdict in zip(rubrics, met, strict=True)
        if f"{TAG}{axis}" in (rubric.get("tags") or ())  # type: ignore[operator]
    ]
    return rubric_score([rubric for rubric, _ in pairs], [verdict for _, verdict in pairs])
