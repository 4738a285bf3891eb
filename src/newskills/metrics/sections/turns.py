# SPDX-License-Identifier: Apache-2.0
"""Instructions followed, turn by turn (Multi-IF: He et al. 2024, arXiv:2410.15553, §3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from newskills.base.records import Number, Row
from newskills.metrics.counting.base import NO_ANSWER, Scores, is_lost
from newskills.metrics.counting.corpus import Sums, mean_or_none, sections_jackknife
from newskills.metrics.counting.seeds import SeedMetric

_LEVELS = {"strict": "strict_eval", "loose": "loose_eval"}
_TURNS = (1, 2, 3)
_AVERAGE = "average_accuracy"


def turn_accuracy(turn: int, sums: Mapping[str, Sums]) -> float | None:
    """Return the mean of four accuracies: prompts and instructions, strictly and loosely; None where no sample has
    the turn.

    `sums` of a turn: samples, prompts followed strictly and loosely, instructions, those followed strictly and loosely.
    """
    if str(turn) not in sums:
        return None
    prompts, strict, loose, instructions, each_strict, each_loose = sums[str(turn)]
    return 100.0 * ((strict + loose) / prompts + (each_strict + each_loose) / instructions) / 4


def average_accuracy(sums: Mapping[str, Sums]) -> float | None:
    """Return the mean of the turns' accuracies; None where there are none."""
    values = [value for turn in _TURNS if (value := turn_accuracy(turn, sums)) is not None]
    return mean_or_none(values)


class MultiIFMetric(SeedMetric):
    """`turn_1`, `turn_2`, `turn_3`: the mean of four accuracies, as IFEval's; `average_accuracy` over the turns.

    `conversation_accuracy`: conversations in which every instruction of every turn is followed strictly.
    """

    score_fields: ClassVar[Mapping[str, Any]] = {"turn_evals": Any, "is_correct": bool | None}
    headline = ("conversation_accuracy",)
    columns = ("num_entries", "avg_tokens", "gen_seconds", *(f"turn_{turn}" for turn in _TURNS), _AVERAGE)

    def __init__(self) -> None:
        super().__init__(compute_no_answer=False, answer_key="generation")
        self._by_seed: list[Counter[tuple[str, tuple[float, ...]]]] = []

    def scores(self, record: Row) -> Scores:
        return {"conversation_accuracy": record.get("is_correct")}

    def update(self, predictions: Sequence[Row]) -> None:
        """Count the samples of one problem. Raises DataError where problems have different numbers of samples."""
        super().update(predictions)
        self._by_seed += [Counter() for _ in predictions[len(self._by_seed) :]]
        for seed, record in enumerate(predictions):
            if not is_lost(record):
                self._by_seed[seed].update(_turn_counts(record))

    def figures(self) -> Iterable[str]:
        return (*(f"turn_{turn}" for turn in _TURNS), _AVERAGE)

    def figure(self, name: str, seed: int) -> Number | None:
        if name == _AVERAGE:
            return sections_jackknife(self._by_seed[seed], average_accuracy)
        return sections_jackknife(self._by_seed[seed], partial(turn_accuracy, int(name[-1])))

    def incorrect(self, prediction: Row) -> Row:
        evals = [
            {level: _nothing_followed(values) for level, values in turn.items()}
            for turn in prediction.get("turn_evals") or ()
        ]
        wrong: Row = {"turn_evals": evals, "is_correct": False, "outcome": NO_ANSWER}
        return prediction | wrong | {"outcome_cause": "truncation"}


def _nothing_followed(values: Row) -> Row:
    nothing = [False] * len(values["follow_instruction_list"])
    return {"follow_instruction_list": nothing, "follow_all_instructions": False}


def _turn_counts(record: Row) -> Iterator[tuple[str, tuple[float, ...]]]:
    for number, turn in enumerate(record.get("turn_evals") or (), 1):
        levels = [turn[field] for field in _LEVELS.values()]
        whole = [float(level["follow_all_instructions"]) for level in levels]
        each = [float(sum(level["follow_instruction_list"])) for level in levels]
        yield str(number), (1.0, *whole, float(len(levels[0]["follow_instruction_list"])), *each)
