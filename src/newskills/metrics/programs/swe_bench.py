# SPDX-License-Identifier: Apache-2.0
"""Patches judged by the tests of a repository, in containers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from newskills.base.records import Row
from newskills.metrics.counting.base import NO_ANSWER, Scores
from newskills.metrics.programs.agents import EFFORT_FIELDS, ENVIRONMENT_FAILED, AgentMetric

_REPORT = "swe-bench-metrics"


class SweBenchMetric(AgentMetric):
    """`issues_resolved`, `no_patch`, `patch_cant_apply` and `tests_timed_out`, from the harness' report in
    `swe-bench-metrics` (`resolved`, `patch_exists`, `patch_successfully_applied`, `tests_timed_out`); a record without
    one is unscored."""

    score_fields: ClassVar[Mapping[str, Any]] = {_REPORT: dict[str, Any] | None, **EFFORT_FIELDS}
    headline = ("issues_resolved",)
    columns = (
        *("num_entries", "avg_tokens", "gen_seconds", "issues_resolved", "no_patch", "patch_cant_apply"),
        *("tests_timed_out", ENVIRONMENT_FAILED, "avg_steps", "avg_cost"),
    )

    def scores(self, record: Row) -> Scores:
        report = record.get(_REPORT)
        if not report:
            return {}
        there = bool(report["patch_exists"])
        return {
            "issues_resolved": bool(report["resolved"]),
            "no_patch": not there,
            "patch_cant_apply": there and not report["patch_successfully_applied"],
            "tests_timed_out": bool(report.get("tests_timed_out")),
        }

    def incorrect(self, prediction: Row) -> Row:
        report = {"resolved": False, "patch_exists": False, "patch_successfully_applied": False}
        wrong: Row = {"outcome": NO_ANSWER, "outcome_cause": "truncation"}
        return prediction | {_REPORT: report} | wrong
