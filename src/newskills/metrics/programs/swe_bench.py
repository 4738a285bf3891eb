# SPDX-License-Identifier: Apache-2.0
"""Patches judged by the tests of a repository, in containers outside of newskills."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from newskills.base.records import Row
from newskills.metrics.counting.base import NO_ANSWER, ScoreMetric, Scores

_REPORT = "swe-bench-metrics"


class SweBenchMetric(ScoreMetric):
    """`issues_resolved`, `no_patch` and `patch_cant_apply`, from the harness' report in `swe-bench-metrics`
    (`resolved`, `patch_exists`, `patch_successfully_applied`); a record without one is unscored."""

    score_fields: ClassVar[Mapping[str, Any]] = {_REPORT: dict[str, Any] | None}
    headline = ("issues_resolved",)
    columns = ("num_entries", "avg_tokens", "gen_seconds", "issues_resolved", "no_patch", "patch_cant_apply")

    def __init__(self) -> None:
        super().__init__(compute_no_answer=False)

    def scores(self, record: Row) -> Scores:
        report = record.get(_REPORT)
        if not report:
            return {}
        there = bool(report["patch_exists"])
        return {
            "issues_resolved": bool(report["resolved"]),
            "no_patch": not there,
            "patch_cant_apply": there and not report["patch_successfully_applied"],
        }

    def incorrect(self, prediction: Row) -> Row:
        report = {"resolved": False, "patch_exists": False, "patch_successfully_applied": False}
        wrong: Row = {"outcome": NO_ANSWER, "outcome_cause": "truncation"}
        return prediction | {_REPORT: report} | wrong
