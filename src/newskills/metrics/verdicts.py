# SPDX-License-Identifier: Apache-2.0
"""Shares of verdicts, and ratios of them: answers to questions of fact, refusals, and answers that show a bias."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, NamedTuple

from newskills.base.judgement import parse_verdict
from newskills.base.records import Number, Row
from newskills.base.stats import Z95
from newskills.metrics.counting.base import ScoreMetric, Scores


class RatioTerm(NamedTuple):
    """A verdict's place in a ratio: what it adds above and below the line."""

    verdict: str
    above: float
    below: float


def ratio_of_sums(shares: Mapping[str, float], parts: Iterable[RatioTerm], problems: int) -> Number | None:
    """Compute Σ above / Σ below over problems, in percent, with its interval by linearisation (Cochran 1977,
    §6.3).

    `shares`: verdict → share of problems, 0–1. None where nothing is below the line.
    """
    parts = list(parts)
    below = math.fsum(shares[part.verdict] * part.below for part in parts)
    if below <= 0:
        return None
    value = math.fsum(shares[part.verdict] * part.above for part in parts) / below
    squares = math.fsum(shares[part.verdict] * (part.above - value * part.below) ** 2 for part in parts)
    half = Z95 * math.sqrt(squares / problems) / below
    return Number(
        value=100 * value, low=100 * (value - half), high=100 * (value + half), n=problems, method="linearised"
    )


class VerdictMetric(ScoreMetric):
    """Base: each verdict is a score; `ratios` are added to the averages (pass@1), where they make sense.

    names    verdict → name of its share
    ratios   name → parts; verdicts that are not named in it add nothing
    """

    names: ClassVar[Mapping[str, str]]
    ratios: ClassVar[Mapping[str, tuple[RatioTerm, ...]]] = {}

    def __init__(self) -> None:
        super().__init__(compute_no_answer=False)

    @abstractmethod
    def verdict(self, record: Row) -> str | None:
        """Return the verdict of a record; None where it is unscored."""

    def scores(self, record: Row) -> Scores:
        actual = self.verdict(record)
        return {name: None if actual is None else actual == verdict for verdict, name in self.names.items()}

    def numbers(self) -> dict[str, dict[str, Number]]:
        modes = super().numbers()
        for mode, numbers in modes.items():
            if not mode.startswith("pass@1") or not all(name in numbers for name in self.names.values()):
                continue
            shares = {verdict: numbers[name].value / 100 for verdict, name in self.names.items()}
            problems = min(numbers[name].n for name in self.names.values())
            for name, parts in self.ratios.items():
                if (number := ratio_of_sums(shares, parts, problems)) is not None:
                    numbers[name] = number
        return modes


class JudgedFactMetric(VerdictMetric):
    """Base of metrics over a judge's letter; the `verdict` field is the grader's, else the judge's text is read."""

    letters: ClassVar[Mapping[str, str]]
    wrong: ClassVar[str] = "incorrect"
    score_fields: ClassVar[Mapping[str, Any]] = {"verdict": str | None, "judgement": Any}

    def verdict(self, record: Row) -> str | None:
        verdict = record.get("verdict")
        if verdict in self.names:
            return verdict
        return parse_verdict(record.get("judgement"), self.letters)

    def incorrect(self, prediction: Row) -> Row:
        return prediction | {"verdict": self.wrong, "outcome": "wrong", "outcome_cause": "truncation"}


class SimpleQAMetric(JudgedFactMetric):
    """`correct`, `incorrect`, `not_attempted`; `accuracy_given_attempted`; `f1`, the harmonic mean of the first and
    the latter (arXiv:2411.04368)."""

    letters: ClassVar[Mapping[str, str]] = {"A": "correct", "B": "incorrect", "C": "not_attempted"}
    names: ClassVar[Mapping[str, str]] = {name: name for name in letters.values()}
    ratios: ClassVar[Mapping[str, tuple[RatioTerm, ...]]] = {
        "accuracy_given_attempted": (RatioTerm("correct", 1, 1), RatioTerm("incorrect", 0, 1)),
        "f1": (RatioTerm("correct", 2, 2), RatioTerm("incorrect", 0, 2), RatioTerm("not_attempted", 0, 1)),
    }
    headline = ("correct",)
    columns = ("num_entries", "avg_tokens", "gen_seconds", *names, *ratios)


class OmniscienceMetric(JudgedFactMetric):
    """Shares of four verdicts; `judge_omni_index`, right less wrong answers; `judge_omni_hallucination`, the share of
    wrong answers among those that are not right."""

    letters: ClassVar[Mapping[str, str]] = {
        "A": "correct",
        "B": "incorrect",
        "C": "partially_correct",
        "D": "abstained",
    }
    names: ClassVar[Mapping[str, str]] = {name: f"judge_{name}" for name in letters.values()}
    ratios: ClassVar[Mapping[str, tuple[RatioTerm, ...]]] = {
        "judge_omni_index": (
            RatioTerm("correct", 1, 1),
            RatioTerm("incorrect", -1, 1),
            RatioTerm("partially_correct", 0, 1),
            RatioTerm("abstained", 0, 1),
        ),
        "judge_omni_hallucination": (
            RatioTerm("incorrect", 1, 1),
            RatioTerm("partially_correct", 0, 1),
            RatioTerm("abstained", 0, 1),
        ),
    }
    headline = ("judge_correct",)
    columns = ("num_entries", "avg_tokens", "gen_seconds", *names.values(), *ratios)
