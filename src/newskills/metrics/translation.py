# SPDX-License-Identifier: Apache-2.0
"""Corpus BLEU and chrF by pair of languages, and their means over pairs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from newskills.base.records import Ledger, Number, Row
from newskills.metrics.counting.base import NO_ANSWER, ScoreMetric, Scores, values_unless_lost
from newskills.metrics.counting.corpus import jackknife_number, mean_number

ANY_LANGUAGE = "xx"
_ORDERS = 4
_CHRF_BETA = 4
_COUNTS = {"bleu": "bleu_counts", "chrf": "chrf_counts", "comet": "comet"}
Pair = tuple[str, str]


class SegmentMetric(ScoreMetric):
    """`sentence_chrf`: the mean over segments; its tokens, time and ledger are those of a pair of languages."""

    score_fields: ClassVar[Mapping[str, Any]] = {"sentence_chrf": int | float | None}
    headline = ("sentence_chrf",)

    def scores(self, record: Row) -> Scores:
        return {"sentence_chrf": record.get("sentence_chrf")}

    def common(self) -> Row:
        """Return entries, tokens and seconds."""
        return self._common()

    def incorrect(self, prediction: Row) -> Row:
        """Return the prediction as an empty translation: its counts keep the length of the reference."""
        wrong: Row = {"sentence_chrf": 0.0, self.answer_key: None, "outcome": NO_ANSWER}
        if counts := prediction.get("bleu_counts"):
            wrong["bleu_counts"] = [0, counts[1], *[0] * (2 * _ORDERS)]
        if counts := prediction.get("chrf_counts"):
            wrong["chrf_counts"] = [count if at % 3 == 1 else 0 for at, count in enumerate(counts)]
        if "comet" in prediction:
            wrong["comet"] = 0.0
        return prediction | wrong | {"outcome_cause": "truncation"}


class TranslationMetric:
    """Modes: `xx->xx`, `en->xx`, `xx->de`, `en->de`, …, each with `bleu`, `chrf`, and `comet` if judged (0–100).

    The corpus score of each seed counts, `bleu` is their mean and `bleu_std` their deviation (ddof 0). Modes with xx
    are means over pairs. Intervals are by the jackknife over segments; of a mean over pairs, whose segments are
    translations of the same texts, the mean of theirs, which is never too narrow.
    """

    columns = ("num_entries", "avg_tokens", "gen_seconds", "bleu", "chrf", "comet")

    def __init__(self) -> None:
        own = {"source_language": str, "target_language": str, **dict.fromkeys(_COUNTS.values(), Any)}
        self._all = SegmentMetric(compute_no_answer=False)
        self.fields: Mapping[str, Any] = {**self._all.fields, **own}
        self._parts: dict[Pair, SegmentMetric] = {}
        self._segments: dict[Pair, list[list[Row]]] = {}

    def update(self, predictions: Sequence[Row]) -> None:
        """Count the samples of one segment. Raises DataError where segments have different numbers of samples."""
        self._all.update(predictions)
        source, target = predictions[0]["source_language"], predictions[0]["target_language"]
        for pair in dict.fromkeys(
            ((source, target), (source, ANY_LANGUAGE), (ANY_LANGUAGE, target), (ANY_LANGUAGE, ANY_LANGUAGE))
        ):
            if pair not in self._parts:
                self._parts[pair] = SegmentMetric(compute_no_answer=False)
            self._parts[pair].update(predictions)
        counts = [values or {} for values in values_unless_lost(predictions, _segment_counts)]
        self._segments.setdefault((source, target), []).append(counts)

    def incorrect(self, prediction: Row) -> Row:
        return self._all.incorrect(prediction)

    def metrics(self) -> dict[str, Row]:
        modes = {}
        for mode, numbers_of_mode in self.numbers().items():
            source, _, target = mode.partition("->")
            row = self._parts[source, target].common()
            for name, number in numbers_of_mode.items():
                row |= {name: number.value, f"{name}_interval": [number.low, number.high]}
                deviation = self._seed_deviation(source, target, name)
                row |= {} if deviation is None else {f"{name}_std": deviation}
            modes[mode] = row
        return modes

    def numbers(self) -> dict[str, dict[str, Number]]:
        by_pair = {pair: _pair_numbers(segments) for pair, segments in self._segments.items()}
        return {
            f"{source}->{target}": _mean_by_score([by_pair[pair] for pair in self._member_pairs(source, target)])
            for source, target in sorted(self._parts, key=_general_first)
        }

    def ledger(self) -> Ledger:
        return self._all.ledger()

    def shown(self) -> tuple[str, ...]:
        return ()

    def _member_pairs(self, source: str, target: str) -> list[Pair]:
        return [
            pair
            for pair in self._segments
            if source in (ANY_LANGUAGE, pair[0]) and target in (ANY_LANGUAGE, pair[1])
        ]

    def _seed_deviation(self, source: str, target: str, name: str) -> float | None:
        """Return the standard deviation over seeds; None for a single one."""
        by_pair = [_seed_scores(self._segments[pair], name) for pair in self._member_pairs(source, target)]
        seeds = [math.fsum(scores) / len(scores) for scores in zip(*by_pair, strict=False)]
        if len(seeds) < 2:
            return None
        mean = math.fsum(seeds) / len(seeds)
        return math.sqrt(math.fsum((score - mean) ** 2 for score in seeds) / len(seeds))


def _segment_counts(record: Row) -> Row:
    return {name: _sums_of(record, field) for name, field in _COUNTS.items()}


def _sums_of(record: Row, field: str) -> Any:
    """Return what a segment adds to the sums of its corpus."""
    value = record.get(field)
    if isinstance(value, int | float):
        return [value, 1]
    return value


def _general_first(pair: Pair) -> tuple[int, Pair]:
    return 2 - pair.count(ANY_LANGUAGE), pair


def _pair_numbers(segments: Sequence[Sequence[Row]]) -> dict[str, Number]:
    numbers = {}
    for name in _COUNTS:
        seeds = range(len(segments[0]))
        per_seed = [
            jackknife_number([segment[seed].get(name) for segment in segments], SCORES[name]) for seed in seeds
        ]
        present = [number for number in per_seed if number is not None]
        if present:
            numbers[name] = mean_number(present)
    return numbers


def _seed_scores(segments: Sequence[Sequence[Row]], name: str) -> list[float]:
    """Return the corpus score of each seed."""
    scores = []
    for seed in range(len(segments[0])):
        rows = [counts for segment in segments if (counts := segment[seed].get(name))]
        if rows:
            scores.append(SCORES[name]([sum(column) for column in zip(*rows, strict=True)]))
    return scores


def _mean_by_score(pairs: Sequence[Mapping[str, Number]]) -> dict[str, Number]:
    return {
        name: mean_number([pair[name] for pair in pairs])
        for name in _COUNTS
        if all(name in pair for pair in pairs)
    }


def corpus_bleu(counts: Sequence[float]) -> float:
    """Compute corpus BLEU, 0–100: geometric mean of four precisions, none of them 0 (halved for each), times
    brevity."""
    ours, theirs, *grams = counts
    matches, totals = grams[:_ORDERS], grams[_ORDERS:]
    if not any(matches) or not all(totals):
        return 0.0
    halving, logarithms = 1.0, 0.0
    for same, total in zip(matches, totals, strict=True):
        if not same:
            halving *= 2
        precision = same / total if same else 1 / (halving * total)
        logarithms += math.log(precision)
    brevity = math.exp(1 - theirs / ours) if ours < theirs else 1.0
    return 100 * brevity * math.exp(logarithms / _ORDERS)


def corpus_chrf(counts: Sequence[float]) -> float:
    """Compute corpus chrF2, 0–100: F2 of precision and recall of characters, averaged over the lengths both sides
    have."""
    matched = [counts[at : at + 3] for at in range(0, len(counts), 3) if counts[at] and counts[at + 1]]
    if not matched:
        return 0.0
    precision = math.fsum(same / ours for ours, _, same in matched) / len(matched)
    recall = math.fsum(same / theirs for _, theirs, same in matched) / len(matched)
    if not precision + recall:
        return 0.0
    return 100 * (1 + _CHRF_BETA) * precision * recall / (_CHRF_BETA * precision + recall)


def mean_comet(counts: Sequence[float]) -> float:
    """Return the mean of the segments' scores, in percent."""
    total, segments = counts
    if segments:
        return 100 * total / segments
    return 0.0


SCORES: Mapping[str, Callable[[Sequence[float]], float]] = {
    "bleu": corpus_bleu,
    "chrf": corpus_chrf,
    "comet": mean_comet,
}
