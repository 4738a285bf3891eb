# SPDX-License-Identifier: Apache-2.0
"""Error rates of speech: sums over the corpus, beside what each sample is worth."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from newskills.base.judgement import parse_judgement
from newskills.base.records import Number, Row
from newskills.metrics.counting.base import NO_ANSWER, ScoreMetric, Scores, is_lost
from newskills.metrics.counting.corpus import jackknife_number, mean_number
from newskills.metrics.translation import corpus_bleu

_SUMS = ("substitutions", "insertions", "deletions", "ref_words")
_GAINS = frozenset({"keyword_precision", "keyword_recall", "keyword_f1", "punct_f1", "cap_accuracy"})
_UNITS = {"char_rate": 1.0}
_MACRO = "wer_macro"
_SHOWN_METRICS = (
    "wer", _MACRO, "wer_c", "wer_pc", "per", "punct_f1", "cap_accuracy", "cer", "bleu", "comet", "ne_wer", "ne_fnr",
    "keyword_precision", "keyword_recall", "keyword_f1", "hallucination_rate", "judge_score",
)  # fmt: skip


class AudioMetric(ScoreMetric):
    """`success_rate`, and by what the grader counted: `wer`, `cer`, … (percent, quotients of sums over all samples).

    `wer_macro` is the mean over samples; `substitutions`, `insertions`, `deletions`, `ref_words` are sums (over several
    seeds, their mean); `char_rate`: characters written for a second of silence; `bleu` and `comet` 0–100;
    `judge_score`: points of a judge in percent of the most. Rates are those of `pass@1`: none is picked by its errors.
    """

    score_fields: ClassVar[Mapping[str, Any]] = {
        "is_correct": bool | int | float | None,
        "audio_counts": Any,
        "bleu_counts": Any,
        "judgement": Any,
        "judge_correct": bool | None,
        "judge_rating": int | float | None,
        "comet": int | float | None,
    }
    headline = ("success_rate",)
    columns = ("num_entries", "avg_tokens", "gen_seconds", "success_rate", *_SHOWN_METRICS, NO_ANSWER)

    def __init__(self, *, compute_no_answer: bool = True, answer_key: str = "predicted_answer") -> None:
        super().__init__(compute_no_answer=compute_no_answer, answer_key=answer_key)
        self._counts: dict[str, list[list[Sequence[float] | None]]] = {}

    def scores(self, record: Row) -> Scores:
        if "judgement" not in record or "comet" in record:
            return {"success_rate": record.get("is_correct")}
        verdict = record.get("judge_correct", parse_judgement(record["judgement"]))
        points = record.get("judge_rating")
        judge_score = None if points is None else points / 5
        return {"success_rate": verdict, "judge_score": judge_score}

    def incorrect(self, prediction: Row) -> Row:
        """Return the prediction as one where nothing was heard: every right word is missing."""
        wrong: Row = {"is_correct": False, self.answer_key: None, "outcome": NO_ANSWER}
        if counts := prediction.get("audio_counts"):
            total = counts.get("wer", [0, 0])[1]
            nothing = {"substitutions": 0, "insertions": 0, "deletions": total, "ref_words": total}
            wrong_counts: dict[str, list[float]] = {}
            for name, (_, out_of) in counts.items():
                if name in nothing:
                    wrong_counts[name] = [nothing[name], 1]
                elif name in _GAINS:
                    wrong_counts[name] = [0, out_of]
                else:
                    wrong_counts[name] = [out_of, out_of]
            wrong["audio_counts"] = wrong_counts
        if counted := prediction.get("bleu_counts"):
            wrong["bleu_counts"] = [0, counted[1], *[0] * (len(counted) - 2)]
        if "comet" in prediction:
            wrong["comet"] = 0.0
        elif "judgement" in prediction:
            wrong |= {"judgement": "Judgement: No", "judge_correct": False, "judge_rating": 0.0}
        return prediction | wrong | {"outcome_cause": "truncation"}

    def update(self, predictions: Sequence[Row]) -> None:
        """Count the samples of one problem. Raises DataError where problems have different numbers of samples."""
        super().update(predictions)
        for seed, record in enumerate(predictions):
            if is_lost(record):
                continue
            counts = dict(record.get("audio_counts") or {})
            if record.get("comet") is not None:
                counts["comet"] = [record["comet"], 1]
            if record.get("bleu_counts"):
                counts["bleu"] = record["bleu_counts"]
            if "wer" in counts and counts["wer"][1]:
                counts[_MACRO] = [counts["wer"][0] / counts["wer"][1], 1]
            for name, pair in counts.items():
                self._seed_column(name, seed).append(pair)

    def numbers(self) -> dict[str, dict[str, Number]]:
        numbers = super().numbers()
        for mode, family, k in self._modes():
            if k == 1 or family == "average":
                numbers.setdefault(mode, {}).update(self._corpus_rates(self._seeds_of(family, k)))
        return numbers

    def metrics(self) -> dict[str, Row]:
        modes = super().metrics()
        for mode, family, k in self._modes():
            if k == 1 or family == "average":
                modes[mode] |= self._corpus_totals(self._seeds_of(family, k))
        return modes

    def _seeds_of(self, family: str, k: int) -> int:
        """Return how many samples of a problem a mode of corpus scores takes."""
        if family == "average":
            return k
        return self._samples

    def _seed_column(self, name: str, seed: int) -> list[Sequence[float] | None]:
        columns = self._counts.setdefault(name, [[] for _ in range(self._samples)])
        return columns[seed]

    def _corpus_rates(self, seeds: int) -> dict[str, Number]:
        rates = {}
        for name, columns in self._counts.items():
            if name in _SUMS:
                continue
            unit = _UNITS.get(name, 100.0)
            score = corpus_bleu if name == "bleu" else lambda sums, unit=unit: _ratio_of_sums(sums, unit)
            per_seed = [
                number for column in columns[:seeds] if (number := jackknife_number(column, score)) is not None
            ]
            if per_seed:
                rates[name] = mean_number(per_seed)
        return rates

    def _corpus_totals(self, seeds: int) -> Row:
        totals = {}
        for name in _SUMS:
            if name in self._counts:
                columns = self._counts[name][:seeds]
                total = math.fsum(pair[0] for column in columns for pair in column if pair) / seeds
                totals[name] = int(total) if total == int(total) else total
        return totals


def _ratio_of_sums(sums: Sequence[float], unit: float) -> float:
    counted, total = sums
    if not total:
        return 0.0
    return unit * counted / total


class CriteriaMetric(ScoreMetric):
    """Five criteria of a judge (`avg_correctness`, …, in percent of five points), and how many answers are good, poor.

    `success_rate` and `good_response_rate`: overall 4 points or more; `poor_response_rate`: 2 or fewer.
    """

    _names: ClassVar[tuple[str, ...]] = ("correctness", "relevance", "completeness", "clarity", "overall")
    score_fields: ClassVar[Mapping[str, Any]] = {
        "judge_correct": bool | None,
        **{f"judge_{name}": int | float | None for name in _names},
    }
    headline = ("success_rate",)
    columns = ("num_entries", "avg_tokens", "gen_seconds", "success_rate", "avg_overall", "poor_response_rate")

    def __init__(self, *, compute_no_answer: bool = False, answer_key: str = "generation") -> None:
        super().__init__(compute_no_answer=compute_no_answer, answer_key=answer_key)

    def scores(self, record: Row) -> Scores:
        points = {name: record.get(f"judge_{name}") for name in self._names}
        overall, good = points["overall"], record.get("judge_correct")
        poor_response_rate = None if overall is None else overall <= 2
        return {
            "success_rate": good,
            "good_response_rate": good,
            "poor_response_rate": poor_response_rate,
            **{f"avg_{name}": None if score is None else score / 5 for name, score in points.items()},
        }

    def incorrect(self, prediction: Row) -> Row:
        worst = {f"judge_{name}": 1.0 for name in self._names}
        return prediction | worst | {"judge_correct": False, "outcome": "wrong", "outcome_cause": "truncation"}


class SuccessMetric(ScoreMetric):
    """`success_rate`: whether the answer is right, or follows its instructions."""

    score_fields: ClassVar[Mapping[str, Any]] = dict.fromkeys(
        ("is_correct", "symbolic_correct"), bool | int | float | None
    )
    headline = ("success_rate",)
    columns = ("num_entries", "avg_tokens", "gen_seconds", "success_rate", NO_ANSWER)

    def scores(self, record: Row) -> Scores:
        return {"success_rate": next((record[name] for name in self.score_fields if name in record), None)}

    def incorrect(self, prediction: Row) -> Row:
        wrong: Row = {name: False for name in self.score_fields if name in prediction}
        return prediction | wrong | {self.answer_key: None, "outcome": NO_ANSWER, "outcome_cause": "truncation"}
