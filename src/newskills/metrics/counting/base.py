# SPDX-License-Identifier: Apache-2.0
"""One engine for all metrics that give each sample a score.

A metric says which fields it reads, what a sample scores, and what a wrong sample looks like. Everything else is
here: pass@k, averages over samples with their variation, votes, rewards, answers that are missing, tokens, time,
intervals, and the account of how samples ended. An unscored sample is neither right nor wrong: it leaves the
numerator and the denominator of its problem; a problem with fewer than k scored samples is left out of pass@k and
of the votes over k.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate, chain
from typing import Any, ClassVar, TypeVar, get_args

from msgspec import Struct

from newskills.base.errors import DataError
from newskills.base.records import Cause, Ledger, Number, Outcome, Row
from newskills.base.stats import Interval, mean_interval, wilson_interval
from newskills.metrics.counting import votes
from newskills.metrics.counting.tally import AVERAGE_MODE, Tally, mean_of

T = TypeVar("T")
Scores = Mapping[str, float | None]
"""Name → score of one sample, 0–1; None or absent = unscored."""

REWARD_FIELD = "reward_model_score"
VOTE_FIELD = "_vote"
"""Field of a record in memory: the text that answers of one vote share, where those who read the records know it."""
COMMON_FIELDS: Mapping[str, Any] = {
    "id": Any,
    "outcome": Any,
    "outcome_cause": str | None,
    "error": Any,
    "finish_reason": Any,
    "num_generated_tokens": int | float | None,
    "num_reasoning_tokens": int | float | None,
    "num_answer_tokens": int | float | None,
    "generation_start_time": int | float | None,
    "generation_end_time": int | float | None,
    REWARD_FIELD: int | float | None,
}
OUTCOMES: Mapping[str, Outcome] = {outcome: outcome for outcome in get_args(Outcome)}
DEFAULT_CAUSES: Mapping[Outcome, Cause | None] = {
    "correct": None,
    "wrong": "model",
    "no_answer": "model",
    "unscored": "harness",
}
NO_ANSWER = "no_answer"
FAMILIES = ("pass", "majority", "rm_best", "rm_majority")
_CLOCK_DIGITS = 6
"""Seconds since 1970 hold no more, and a whole number of them must not fall below itself."""
TOKEN_FIELDS = {"reasoning_tokens": "num_reasoning_tokens", "answer_tokens": "num_answer_tokens"}


class Counts(Struct, kw_only=True):
    """What a metric has counted in a part of a file with one sample of each problem.

    alone      name of a score, score, whether an answer lacks, how many problems
    endings    outcome, cause, how many
    beside     what the class of the metric counts by itself
    """

    problems: int
    alone: list[tuple[str, bool | int | float | None, bool, int]]
    endings: list[tuple[Outcome, str | None, int]]
    finishes: dict[str, int]
    beside: dict[str, int]
    tokens: int | float
    with_tokens: int
    start: float | None
    end: float | None
    has_answers: bool


class ScoreMetric(ABC):
    """Base of score metrics.

    score_fields   keys of a record that `scores` reads → their types
    headline       names of scores, the one that decides first (for records without `outcome`)
    interval       how sure a mean over problems is; value of a problem → how many problems have it
    divisible      whether this very class (none derived from it) counts nothing but what `Counts` holds
    """

    score_fields: ClassVar[Mapping[str, Any]]
    headline: ClassVar[tuple[str, ...]]
    interval: Callable[[Mapping[float, int]], Interval] = staticmethod(mean_interval)
    columns: tuple[str, ...] = ()
    divisible: ClassVar[bool] = False

    def __init__(self, *, compute_no_answer: bool = True, answer_key: str = "predicted_answer") -> None:
        self.compute_no_answer = compute_no_answer
        self.answer_key = answer_key
        self.fields: Mapping[str, Any] = {**COMMON_FIELDS, answer_key: Any, **self.score_fields}
        self._problems = self._samples = 0
        self._score_tallies: dict[str, Tally] = {}
        self._alone: dict[tuple[str, float | None, bool], int] = {}
        """Problems of one sample that are alike, not counted yet: name of a score, score, whether an answer lacks."""
        self._tokens: Counter[int] = Counter()
        self._with_tokens = 0
        self._start, self._end = math.inf, -math.inf
        self._has_answers = False
        self._endings: Counter[tuple[Outcome, Cause | None]] = Counter()
        self._finishes: Counter[str] = Counter()
        self._beside: Counter[str] = Counter()
        self._all_alone = True

    @property
    def is_divisible(self) -> bool:
        """Whether parts of a file with one sample of each problem may be counted apart."""
        return bool(vars(type(self)).get("divisible", False))

    @abstractmethod
    def scores(self, record: Row) -> Scores:
        """Return the scores of one sample."""

    @abstractmethod
    def incorrect(self, prediction: Row) -> Row:
        """Return `prediction` as a wrong one without an answer."""

    def answer(self, record: Row) -> str | None:
        """Return the answer of the sample; None = no answer."""
        answer = record.get(self.answer_key)
        if answer is None or record.get("outcome") == NO_ANSWER:
            return None
        return str(answer)

    def vote(self, record: Row) -> str | None:
        """Return the text that votes compare: that of its group, else the answer itself; None = no answer."""
        answer = self.answer(record)
        if answer is None:
            return None
        voted: str | None = record.get(VOTE_FIELD, answer)
        return voted

    def update(self, predictions: Sequence[Row]) -> None:
        """Count the samples of one problem. Raises DataError where problems have different numbers of samples."""
        self._samples = self._samples or len(predictions)
        if len(predictions) != self._samples:
            raise DataError(
                f"Problem {predictions[0].get('id', self._problems + 1)} has {len(predictions)} predictions, "
                f"earlier ones have {self._samples}."
            )
        self._problems += 1
        if self._samples == 1 and predictions[0].get(REWARD_FIELD) is None:
            self._update_one(predictions[0])
            return
        self._all_alone = False
        lost = [is_lost(record) for record in predictions]
        scores = [{} if gone else self.scores(record) for gone, record in zip(lost, predictions, strict=True)]
        answers = [self.answer(record) for record in predictions]
        voted = [self.vote(record) for record in predictions]
        rewards = [record.get(REWARD_FIELD) for record in predictions]
        self._endings.update(map(self.ending, predictions, scores, answers))
        self._finishes.update(reason for r in predictions if isinstance(reason := r.get("finish_reason"), str))
        self._has_answers = self._has_answers or any(self.answer_key in record for record in predictions)
        values_of_samples: dict[tuple[float | None, ...], dict[str, Sequence[float]]] = {}
        for name in dict.fromkeys(chain.from_iterable(scores)):
            samples = tuple([score.get(name) for score in scores])
            if samples not in values_of_samples:
                values_of_samples[samples] = family_values(samples, voted, rewards)
            self._tally(name).add(samples, values_of_samples[samples])
        if self.compute_no_answer:
            self._count_missing(answers, lost)
        self._count_tokens(predictions, lost)
        self._count_time(predictions)

    def _update_one(self, record: Row) -> None:
        """Count a problem of one sample, at a fifth of the cost of the general way: millions of rows are looked at
        so."""
        gone = is_lost(record)
        scores = {} if gone else self.scores(record)
        answer = self.answer(record)
        lacks_answer = answer is None
        self._endings[self.ending(record, scores, answer)] += 1
        if isinstance(reason := record.get("finish_reason"), str):
            self._finishes[reason] += 1
        self._has_answers = self._has_answers or self.answer_key in record
        for name, score in scores.items():
            self._count_alone(name, score, lacks_answer)
        if self.compute_no_answer:
            without_answer = None if gone else float(lacks_answer)
            self._count_alone(NO_ANSWER, without_answer, lacks_answer)
        if (tokens := record.get("num_generated_tokens")) or (tokens == 0 and not gone):
            self._tokens[1] += tokens
            self._with_tokens += 1
        if (start := record.get("generation_start_time")) is not None and start < self._start:
            self._start = start
        if (end := record.get("generation_end_time")) is not None and end > self._end:
            self._end = end

    def _count_alone(self, name: str, score: float | None, lacks_answer: bool, problems: int = 1) -> None:
        key = name, score, lacks_answer
        if key in self._alone:
            self._alone[key] += problems
        else:
            self._tally(name)  # names keep the order in which they come
            self._alone[key] = problems

    def part_counts(self) -> Counts | None:
        """Return what was counted so far; None where it cannot be told apart (rewards, or several samples of a
        problem)."""
        if not self._all_alone:
            return None
        start = self._start if math.isfinite(self._start) else None
        end = self._end if math.isfinite(self._end) else None
        return Counts(
            problems=self._problems,
            alone=[(*key, problems) for key, problems in self._alone.items()],
            endings=[(*ending, problems) for ending, problems in self._endings.items()],
            finishes=dict(self._finishes),
            beside=dict(self._beside),
            tokens=self._tokens[1],
            with_tokens=self._with_tokens,
            start=start,
            end=end,
            has_answers=self._has_answers,
        )

    def absorb(self, counts: Counts) -> None:
        """Count the problems of another part, behind those so far."""
        self._samples = 1
        self._problems += counts.problems
        for name, score, lacks_answer, problems in counts.alone:
            self._count_alone(name, score, lacks_answer, problems)
        for outcome, cause, problems in counts.endings:
            self._endings[outcome, cause] += problems  # type: ignore[index] # records of others have causes of their own
        self._finishes.update(counts.finishes)
        self._beside.update(counts.beside)
        self._tokens[1] += counts.tokens  # type: ignore[assignment] # as `_update_one` adds them
        self._with_tokens += counts.with_tokens
        if counts.start is not None:
            self._start = min(self._start, counts.start)
        if counts.end is not None:
            self._end = max(self._end, counts.end)
        self._has_answers = self._has_answers or counts.has_answers

    @property
    def _tallies(self) -> dict[str, Tally]:
        """Score → its counts."""
        alone, self._alone = self._alone, {}
        for (name, score, lacks_answer), problems in alone.items():
            if name != NO_ANSWER:
                answer = None if lacks_answer else ""
                values = family_values((score,), [answer], [None])
            elif score is None:
                values = {"pass": []}
            else:
                values = {"pass": [score == 1]}
            self._tally(name).add_alike(score, values, problems)
        return self._score_tallies

    def metrics(self) -> dict[str, Row]:
        numbers = self.numbers()
        statistics = {name: tally.statistics() for name, tally in self._tallies.items() if name != NO_ANSWER}
        modes: dict[str, Row] = {}
        for mode, family, k in self._modes():
            row_numbers = numbers.get(mode, {})
            row = self._common() | {name: number.value for name, number in row_numbers.items()}
            if family == AVERAGE_MODE:
                row |= {f"{name}_statistics": by_k[k] for name, by_k in statistics.items() if k in by_k}
            modes[mode] = row | self._beyond(row_numbers)
        return modes

    def numbers(self) -> dict[str, dict[str, Number]]:
        order = self._scored() + [NO_ANSWER] * (self._has_answers and NO_ANSWER in self._tallies)
        by_score = {
            name: {family: self._tallies[name].values(family) for family in (*FAMILIES, AVERAGE_MODE)}
            for name in order
        }
        if NO_ANSWER in by_score:
            by_score[NO_ANSWER] |= dict.fromkeys(FAMILIES, by_score[NO_ANSWER]["pass"])
        total = self._problems * self._samples
        return {
            mode: {
                name: percent_number(by_score[name][family][k], total - self._tallies[name].scored, self.interval)
                for name in order
                if k in by_score[name][family]
            }
            for mode, family, k in self._modes()
        }

    def ledger(self) -> Ledger:
        ledger, causes = Ledger(), Counter[str]()
        for (outcome, cause), count in self._endings.items():
            setattr(ledger, outcome, getattr(ledger, outcome) + count)
            if cause is not None:
                causes[cause] += count
        ledger.causes = dict(causes)
        ledger.finish_reasons = dict(self._finishes)
        return ledger

    def shown(self) -> tuple[str, ...]:
        """Return the modes of the largest N."""
        n = self._samples
        if n <= 1:
            return ("pass@1",)
        modes = [mode for mode, _, _ in self._modes()]
        wanted = (f"pass@1[avg-of-{n}]", f"majority@{n}", f"rm_best@{n}", f"rm_majority@{n}", f"pass@{n}")
        return tuple(mode for mode in wanted if mode in modes)

    def _modes(self) -> list[tuple[str, str, int]]:
        """Return (mode, family, k) in the order of metrics.json."""
        n = self._samples
        modes = [(f"pass@{k}", "pass", k) for k in range(1, n + 1)]
        modes += [(f"pass@1[avg-of-{k}]", AVERAGE_MODE, k) for k in range(2, n + 1)]
        if not self._has_answers:
            return modes
        modes += [(f"majority@{k}", "majority", k) for k in range(2, n + 1)]
        rewarded = any("rm_best" in self._tallies[name].families() for name in self._scored())
        if rewarded:
            for family in ("rm_best", "rm_majority"):
                modes += [(f"{family}@{k}", family, k) for k in range(1, n + 1)]
        return modes

    def _scored(self) -> list[str]:
        """Return the names of the scores."""
        return [name for name in self._tallies if name != NO_ANSWER and name not in TOKEN_FIELDS]

    def _common(self) -> Row:
        row: Row = {"num_entries": self._problems}
        if self._with_tokens:
            tokens = sum(Fraction(total) / samples for samples, total in self._tokens.items())
            row["avg_tokens"] = int(tokens / self._with_tokens)
        if self._start <= self._end:
            row["gen_seconds"] = int(round(self._end - self._start, _CLOCK_DIGITS))
        return row

    def _beyond(self, numbers: Mapping[str, Number]) -> Row:
        """Return what the contract does not know: intervals, and the share of samples that could not be scored."""
        row: Row = {
            f"{name}_interval": [number.low, number.high]
            for name, number in numbers.items()
            if name != NO_ANSWER and math.isfinite(number.low)
        }
        unscored = sum(count for (outcome, _), count in self._endings.items() if outcome == "unscored")
        if unscored:
            row["unscored"] = 100.0 * unscored / (self._problems * self._samples)
        return row

    def _tally(self, name: str) -> Tally:
        if name not in self._score_tallies:
            self._score_tallies[name] = Tally(self._samples)
        return self._score_tallies[name]

    def _count_missing(self, answers: votes.Answers, lost: Sequence[bool]) -> None:
        """Count missing answers; several samples together lack an answer where all of them do, in votes as in
        pass@k."""
        missing = [None if gone else answer is None for gone, answer in zip(lost, answers, strict=True)]
        together = list(accumulate((none for none in missing if none is not None), min))
        self._tally(NO_ANSWER).add(missing, {"pass": together})

    def _count_tokens(self, predictions: Sequence[Row], lost: Sequence[bool]) -> None:
        """Count the tokens. A request that failed has generated nothing, and says nothing about the length of
        answers."""
        generated = [record.get("num_generated_tokens") for record in predictions]
        counted = [n for n, gone in zip(generated, lost, strict=True) if n or (n == 0 and not gone)]
        if counted:
            self._tokens[len(counted)] += sum(counted)
            self._with_tokens += 1
        for name, field in TOKEN_FIELDS.items():
            if any(field in record for record in predictions):
                self._tally(name).add([record.get(field) for record in predictions], {})

    def _count_time(self, predictions: Sequence[Row]) -> None:
        starts = [record.get("generation_start_time") for record in predictions]
        ends = [record.get("generation_end_time") for record in predictions]
        self._start = min([self._start, *(start for start in starts if start is not None)])
        self._end = max([self._end, *(end for end in ends if end is not None)])

    def ending(self, record: Row, scores: Scores, answer: str | None) -> tuple[Outcome, Cause | None]:
        """Return the record's own outcome and its cause; else what its fields tell."""
        outcome = _record_outcome(record)
        if outcome is not None:
            return outcome, record.get("outcome_cause") or DEFAULT_CAUSES[outcome]
        names = [name for name in self.headline if name in scores]
        value = scores[names[0]] if names else None
        if value is None:
            return "unscored", _cause_of_no_score(record)
        if value == 1:
            return "correct", None
        if answer is not None or self.answer_key not in record:
            return "wrong", "model"
        if record.get("finish_reason") == "length":
            return "no_answer", "truncation"
        return "no_answer", "model"


def _cause_of_no_score(record: Row) -> Cause:
    if is_lost(record):
        return "provider"
    if "judgement" in record:
        return "judge"
    return "grader"


def family_values(
    samples: Sequence[float | None], answers: votes.Answers, rewards: Sequence[float | None]
) -> dict[str, Sequence[float]]:
    """Return family → the problem's values for k = 1, 2, … scored samples."""
    scores = [score for score in samples if score is not None]
    if len(scores) < len(samples):
        kept = [i for i, score in enumerate(samples) if score is not None]
        answers, rewards = [answers[i] for i in kept], [rewards[i] for i in kept]
    values = {"pass": votes.pass_at_each_k(scores), "majority": votes.majority_at_each_k(answers, scores)}
    if rewards.count(None) < len(rewards):
        values["rm_best"] = votes.rewarded_best(answers, scores, rewards)
        values["rm_majority"] = votes.rewarded_majority(answers, scores, rewards)
    return values


def values_unless_lost(predictions: Sequence[Row], value_of: Callable[[Row], T | None]) -> list[T | None]:
    """Return what `value_of` says of each sample; None for those of which no verdict can be had."""
    return [None if is_lost(record) else value_of(record) for record in predictions]


def is_lost(record: Row) -> bool:
    """Return whether no verdict can be had of this sample, whatever its other fields say.

    A record of others tells so by `error` without any generated token. Where only a judge failed, the grader's
    verdict holds.
    """
    outcome = _record_outcome(record)
    if outcome is not None:
        return bool(outcome == "unscored" and record.get("outcome_cause") != "judge")
    return bool(record.get("error")) and not record.get("num_generated_tokens")


def _record_outcome(record: Row) -> Outcome | None:
    """Return the outcome as our own engine wrote it; data sets may use the name for something else."""
    outcome = record.get("outcome")
    if not isinstance(outcome, str):
        return None
    return OUTCOMES.get(outcome)


def percent_number(
    values: Mapping[float, int],
    unscored: int,
    interval_of: Callable[[Mapping[float, int]], Interval] = mean_interval,
) -> Number:
    """Return mean and interval of values 0–1, in percent; `values`: value of a problem → how many problems have
    it."""
    interval = interval_of(values)
    return Number(
        value=100.0 * mean_of(values),
        low=100.0 * interval.low,
        high=100.0 * interval.high,
        n=sum(values.values()),
        unscored=unscored,
        method=interval.method,
    )


def clustered_number(number: Number, problems: Number) -> Number:
    """Return `number`, of parts of problems, with the interval of as many units as there are problems."""
    low, high = wilson_interval(number.value / 100, problems.n)
    return Number(
        value=number.value,
        low=100 * low,
        high=100 * high,
        n=problems.n,
        unscored=problems.unscored,
        method="cluster",
    )
