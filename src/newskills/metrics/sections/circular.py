# SPDX-License-Identifier: Apache-2.0
"""Questions that count together: the orders of one question's options (MMBench: arXiv:2307.06281, §4.2), the questions
about one figure, and one question about several figures (HallusionBench: arXiv:2310.14566)."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from newskills.base.records import Number, Row
from newskills.metrics.counting.base import NO_ANSWER, Scores, percent_number, values_unless_lost
from newskills.metrics.counting.seeds import SeedMetric

CIRCULAR = "circular_accuracy"


class GroupsMetric(SeedMetric):
    """Base: for each figure the share of groups of samples that are right as a whole; `accuracy` over all samples.

    A group of which a sample could not be scored is left out, unless another one is wrong.
    """

    names: ClassVar[tuple[str, ...]]
    """Of the figures."""
    headline = ("accuracy",)

    def __init__(self) -> None:
        super().__init__()
        self.columns = ("num_entries", "avg_tokens", "gen_seconds", *self.names, "accuracy", NO_ANSWER)
        self._groups: list[dict[tuple[str, str], list[float | None]]] = []

    @abstractmethod
    def groups(self, record: Row) -> Iterable[tuple[str, object]]:
        """Yield (figure, group) for each that the sample counts in."""

    def value(self, record: Row) -> float | None:
        """Return the score of a sample."""
        correct: float | None = record.get("symbolic_correct")
        return correct

    def scores(self, record: Row) -> Scores:
        return {"accuracy": self.value(record)}

    def update(self, predictions: Sequence[Row]) -> None:
        """Count the samples of one problem. Raises DataError where problems have different numbers of samples."""
        super().update(predictions)
        self._groups += [{} for _ in predictions[len(self._groups) :]]
        values = values_unless_lost(predictions, self.value)
        for seed, (record, value) in enumerate(zip(predictions, values, strict=True)):
            for name, group in self.groups(record):
                self._groups[seed].setdefault((name, str(group)), []).append(value)

    def figures(self) -> Iterable[str]:
        return self.names

    def figure(self, name: str, seed: int) -> Number | None:
        values = [_group_value(members) for (figure, _), members in self._groups[seed].items() if figure == name]
        counted = Counter(value for value in values if value is not None)
        if not counted:
            return None
        return percent_number(counted, values.count(None))

    def incorrect(self, prediction: Row) -> Row:
        wrong: Row = {"symbolic_correct": False, self.answer_key: None, "outcome": NO_ANSWER}
        return prediction | wrong | {"outcome_cause": "truncation"}


class CircularMetric(GroupsMetric):
    """`circular_accuracy`: questions (`question_id`) of which every order is right; `accuracy` over all orders."""

    score_fields: ClassVar[Mapping[str, Any]] = {"symbolic_correct": bool | int | float | None, "question_id": Any}
    names = (CIRCULAR,)

    def groups(self, record: Row) -> Iterable[tuple[str, object]]:
        yield CIRCULAR, record.get("question_id")


class HallusionMetric(GroupsMetric):
    """`pair_accuracy`: questions (`pair_id`) that are right with every figure; `figure_accuracy`: figures (`figure_id`)
    all of whose questions are right; `easy_accuracy` and `hard_accuracy`: the pairs of such questions (`is_hard`).

    Without a figure, a model that does not answer is right.
    """

    score_fields: ClassVar[Mapping[str, Any]] = {
        "symbolic_correct": bool | int | float | None,
        "pair_id": str,
        "figure_id": str | None,
        "is_hard": bool,
    }
    names = ("pair_accuracy", "figure_accuracy", "easy_accuracy", "hard_accuracy")

    def value(self, record: Row) -> float | None:
        unsure = record.get("outcome") == NO_ANSWER and record.get("outcome_cause") != "truncation"
        if unsure and record["figure_id"] is None:
            return 1.0
        return super().value(record)

    def groups(self, record: Row) -> Iterable[tuple[str, object]]:
        yield "pair_accuracy", record["pair_id"]
        difficulty = "hard_accuracy" if record["is_hard"] else "easy_accuracy"
        yield difficulty, record["pair_id"]
        if record["figure_id"] is not None:
            yield "figure_accuracy", record["figure_id"]


def _group_value(members: Sequence[float | None]) -> float | None:
    """Return 1 where all members are right, 0 where one is wrong; None where an unscored one leaves that open."""
    if any(value == 0 for value in members):
        return 0.0
    if None in members:
        return None
    return 1.0
