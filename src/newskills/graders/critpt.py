# SPDX-License-Identifier: Apache-2.0
"""CritPt: what the service of its makers needs to decide (Zhu et al. 2025, arXiv:2509.26574).

The right answers are not public. The service takes the functions of all problems at once and tells only the share of
right ones, so that no single answer can be called right or wrong here.
"""

from __future__ import annotations

from newskills.base.records import Row, Score
from newskills.graders.code.extract import extract_code
from newskills.graders.reading.replies import no_answer_score

_FUNCTION = "def answer("


class CritPtGrader:
    """Field written: `generated_code`, the function to send in; an answer that has one stays unscored, as its judge,
    the service, was not asked."""

    name = "critpt"
    version = "3"
    answer_keys = ("generation",)

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        code = extract_code(str(record.get("generation") or "")).code
        if _FUNCTION not in code:
            return no_answer_score(
                stamp, record, {"generated_code": "", "predicted_answer": None, "is_correct": False}
            )
        fields: Row = {"generated_code": code, "predicted_answer": code, "is_correct": None}
        why = "only the service at https://artificialanalysis.ai decides: see ns critpt submit"
        return Score(outcome="unscored", fields=fields, grader=stamp, why=why, cause="judge")
