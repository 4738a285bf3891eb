# SPDX-License-Identifier: Apache-2.0
"""Models as judges: their verdicts and marks against those of people."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from newskills.base.judgement import parse_judgement
from newskills.base.records import Number, Row
from newskills.metrics.counting.base import NO_ANSWER, ScoreMetric, Scores, is_lost, percent_number
from newskills.metrics.counting.kinds import KindMetric
from newskills.metrics.counting.tally import AVERAGE_MODE
from newskills.metrics.verdicts import RatioTerm, ratio_of_sums

Said = bool | None
"""Accepted or not; None: no judgement."""
Judged = Sequence[tuple[bool | None, tuple[Said, ...], int]]
"""(what people say, what counts of the judge's runs, how many problems are alike)."""

_SAID: Mapping[str, Said] = {
    "true_positive": True,
    "false_positive": True,
    "true_negative": False,
    "false_negative": False,
    "invalid": None,
}
_POSITIVE = ("true_positive", "false_negative")
_SHARES = {"false_positives": (False, True), "false_negatives": (True, False)}
"""Name → (what people say, what the judge says)."""
_RATIOS: Mapping[str, tuple[RatioTerm, ...]] = {
    "precision": (RatioTerm("accepted", 1, 1), RatioTerm("wrongly_accepted", 0, 1)),
    "recall": (RatioTerm("accepted", 1, 1), RatioTerm("missed", 0, 1)),
    "f1": (RatioTerm("accepted", 2, 2), RatioTerm("wrongly_accepted", 0, 1), RatioTerm("missed", 0, 1)),
}


class AnswerJudgementMetric(ScoreMetric):
    """`correct_judgements`; `false_positives` (wrongly accepted), `false_negatives`, `invalid_judgements`: of all.

    `precision`, `recall` and `f1` are those of accepting, where an answer without a judgement is not accepted. Of
    several judgements, `pass@k` takes the right one if there is one, else the first; `majority@k` accepts where more
    than half do; `pass@1[avg-of-k]` is the mean over runs. Nothing accepted: precision 100; nothing to accept: recall
    100.
    """

    score_fields: ClassVar[Mapping[str, Any]] = {"judgement_kind": str | None, "expected_judgement": Any}
    headline = ("correct_judgements",)
    columns = (
        "num_entries",
        "avg_tokens",
        "gen_seconds",
        "correct_judgements",
        *_SHARES,
        "invalid_judgements",
        *_RATIOS,
    )

    def __init__(self) -> None:
        super().__init__(answer_key="predicted_judgement")
        self._judged: Counter[tuple[bool | None, tuple[Said, ...]]] = Counter()

    def update(self, predictions: Sequence[Row]) -> None:
        super().update(predictions)
        kinds = [str(record.get("judgement_kind")) for record in predictions if not is_lost(record)]
        verdicts = tuple(_SAID[kind] for kind in kinds if kind in _SAID)
        is_positive = next((kind in _POSITIVE for kind in kinds if _SAID.get(kind) is not None), None)
        if is_positive is None:
            expected = parse_judgement(predictions[0].get("expected_judgement"))
        else:
            expected = is_positive
        self._judged[expected, verdicts] += 1

    def answer(self, record: Row) -> str | None:
        verdict = _SAID.get(str(record.get("judgement_kind")))
        if verdict is None:
            return None
        return str(verdict)

    def scores(self, record: Row) -> Scores:
        kind = str(record.get("judgement_kind"))
        if kind not in _SAID:
            return {"correct_judgements": None}
        return {"correct_judgements": kind.startswith("true")}

    def incorrect(self, prediction: Row) -> Row:
        wrong: Row = {"judgement_kind": "invalid", self.answer_key: None}
        return prediction | wrong | {"outcome": NO_ANSWER, "outcome_cause": "truncation"}

    def numbers(self) -> dict[str, dict[str, Number]]:
        modes = super().numbers()
        for mode, family, k in self._modes():
            numbers = modes[mode]
            judged = [
                (expected, taken, count)
                for (expected, verdicts), count in self._judged.items()
                if (taken := _counted_verdicts(family, k, expected, verdicts))
            ]
            if judged:
                lost = numbers["correct_judgements"].unscored
                numbers |= {
                    name: percent_number(_share_counts(judged, kind), lost) for name, kind in _SHARES.items()
                }
                numbers |= {name: _mean_ratio(judged, parts) for name, parts in _RATIOS.items()}
            if NO_ANSWER in numbers:
                numbers["invalid_judgements"] = numbers.pop(NO_ANSWER)
        return modes


def _counted_verdicts(family: str, k: int, expected: bool | None, verdicts: tuple[Said, ...]) -> tuple[Said, ...]:
    """Return the judgements that count: those of the first k runs, or the one that stands for them; nothing of too
    few."""
    first = verdicts[:k]
    if family == AVERAGE_MODE:
        return first
    if len(first) < k:
        return ()
    valid = [verdict for verdict in first if verdict is not None]
    if not valid:
        return (None,)
    if family == "majority":
        return (valid.count(True) > valid.count(False),)
    if expected in valid:
        return (expected,)
    return (valid[0],)


def _verdict_kind(expected: bool | None, verdict: Said) -> str:
    """Return the kind of a judgement: a right answer that is not accepted, for want of a judgement or by one, is
    missed."""
    if verdict is True:
        if expected:
            return "accepted"
        return "wrongly_accepted"
    if expected:
        return "missed"
    return "other"


def _share_counts(judged: Judged, wanted: tuple[bool, bool]) -> Counter[float]:
    """Return share of runs with (expected, said) of a problem → how many problems have it."""
    shares: Counter[float] = Counter()
    for expected, taken, count in judged:
        shares[sum((expected, verdict) == wanted for verdict in taken) / len(taken)] += count
    return shares


def _mean_ratio(judged: Judged, parts: Sequence[RatioTerm]) -> Number:
    """Return the mean over runs; its interval is that of all runs together."""
    runs = max(len(taken) for _, taken, _ in judged)
    pooled: Counter[str] = Counter()
    values = []
    for run in range(runs):
        kinds: Counter[str] = Counter()
        for expected, taken, count in judged:
            if run < len(taken):
                kinds[_verdict_kind(expected, taken[run])] += count
        pooled += kinds
        number = ratio_of_sums(kinds, parts, 1)
        percent = 100.0 if number is None else number.value
        values.append(percent)
    value, problems = math.fsum(values) / runs, sum(count for _, _, count in judged)
    total = pooled.total()
    whole = ratio_of_sums({part.verdict: pooled[part.verdict] / total for part in parts}, parts, problems)
    if whole is None:
        return Number(value=value, low=0.0, high=100.0, n=problems, method="linearised")
    half = (whole.high - whole.low) / 2
    low, high = max(0.0, value - half), min(100.0, value + half)
    return Number(value=value, low=low, high=high, n=problems, method="linearised")


class GradingMetric(KindMetric):
    """`exact_accuracy`, `binarized_accuracy` in percent; `mae`: points (of 7) by which marks are off."""

    score_fields: ClassVar[Mapping[str, Any]] = {
        "exact": bool | None,
        "binarized": bool | None,
        "points_off": int | float | None,
    }
    headline = ("exact_accuracy",)
    columns = ("num_entries", "avg_tokens", "gen_seconds", "exact_accuracy", "binarized_accuracy", "mae")

    def scores(self, record: Row) -> Scores:
        scores = {"exact_accuracy": record.get("exact"), "binarized_accuracy": record.get("binarized")}
        off = record.get("points_off")
        if off is not None:
            scores["mae"] = off / 100
        return scores

    def incorrect(self, prediction: Row) -> Row:
        wrong: Row = {"exact": False, "binarized": False, "points_off": None, self.answer_key: None}
        return prediction | wrong | {"outcome": NO_ANSWER, "outcome_cause": "truncation"}
