# SPDX-License-Identifier: Apache-2.0
"""Humanity's Last Exam: the judge's verdicts, and whether the model knows what it knows (arXiv:2501.14249)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from newskills.base.judgement import parse_confidence, structured_verdict
from newskills.base.records import Number, Row
from newskills.metrics.counting.base import Scores, values_unless_lost
from newskills.metrics.counting.tally import AVERAGE_MODE
from newskills.metrics.judged import JudgedMetric

_BIN = 100
"""Answers that the authors' script puts together."""


class Confidence(NamedTuple):
    """What the model said of an answer, 0–1, and whether that was right."""

    stated: float
    right: bool


class ExamMetric(JudgedMetric):
    """`judge_correct`, and `calibration_error` of the confidences that the judge read, in percent.

    The latter needs 200 judged answers; of several samples it is the mean of theirs, and pass@k has none.
    """

    columns = (*JudgedMetric.columns, "calibration_error")

    def __init__(self, *, compute_no_answer: bool = False, answer_key: str = "generation") -> None:
        super().__init__(compute_no_answer=compute_no_answer, answer_key=answer_key)
        self._stated: list[list[Confidence | None]] = []

    def update(self, predictions: Sequence[Row]) -> None:
        super().update(predictions)
        self._stated.append(values_unless_lost(predictions, self._confidence))

    def numbers(self) -> dict[str, dict[str, Number]]:
        modes = super().numbers()
        samples = list(zip(*self._stated, strict=True))
        errors = [calibration_error([stated for stated in sample if stated]) for sample in samples]
        for mode, family, k in self._modes():
            errors_of_mode = [error for error in errors[:k] if error is not None]
            if errors_of_mode and (k == 1 or family == AVERAGE_MODE):
                value = 100 * math.fsum(errors_of_mode) / len(errors_of_mode)
                missing = sum(stated is None for sample in samples[:k] for stated in sample)
                modes[mode]["calibration_error"] = Number(
                    value=value, low=-math.inf, high=math.inf, n=self._problems, unscored=missing, method="none"
                )
        return modes

    def _confidence(self, record: Row) -> Confidence | None:
        verdict, percent = self.scores(record).get("judge_correct"), parse_confidence(record.get("judgement"))
        if verdict is None or percent is None:
            return None
        return Confidence(percent / 100, bool(verdict))


class StructuredExamMetric(ExamMetric):
    """The same of verdicts as JSON objects (`++structured_output=HLE_JUDGE_AA`); any other text is none."""

    def scores(self, record: Row) -> Scores:
        if "judgement" in record:
            return {"judge_correct": structured_verdict(record["judgement"])}
        return {}

    def incorrect(self, prediction: Row) -> Row:
        return super().incorrect(prediction) | {"judgement": '{"correct": "no"}'}


def calibration_error(answers: Sequence[Confidence]) -> float | None:
    """Return the root mean square over bins of 100 of mean confidence less share of right answers, 0–1; None below
    200 answers.

    As the authors' script has it, the last bin, which takes what is left over, does not count; its weight is lost.
    Where a bin ends between equal confidences, the script takes whichever its sorting puts first, and this the mean.
    """
    if len(answers) < 2 * _BIN:
        return None
    groups: dict[float, list[bool]] = {}
    for answer in answers:
        groups.setdefault(answer.stated, []).append(answer.right)
    apart_of_group = {stated: stated - sum(right) / len(right) for stated, right in groups.items()}
    ordered = [apart_of_group[stated] for stated, right in sorted(groups.items()) for _ in right]
    squares = 0.0
    for start in range(0, (len(ordered) // _BIN - 1) * _BIN, _BIN):
        apart = math.fsum(ordered[start : start + _BIN]) / _BIN
        squares += _BIN / len(ordered) * apart**2
    return math.sqrt(squares)
