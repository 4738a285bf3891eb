# SPDX-License-Identifier: Apache-2.0
"""Instruction following: prompts of which all instructions are followed, and instructions, strictly and loosely."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from newskills.base.records import Number, Row
from newskills.metrics.counting.base import (
    NO_ANSWER,
    ScoreMetric,
    Scores,
    clustered_number,
    family_values,
    is_lost,
)

_LEVELS = {"strict": "strict_eval", "loose": "loose_eval"}
_PROMPT, _INSTRUCTION = "prompt_{}_accuracy", "instruction_{}_accuracy"
_NAMES = tuple(kind.format(level) for level in _LEVELS for kind in (_PROMPT, _INSTRUCTION))
AVERAGE_SCORE = "average_score"


class InstructionMetric(ScoreMetric):
    """`prompt_` and `instruction_` `strict_` and `loose_accuracy`, `average_score` (mean of the four).

    Instructions of one prompt are not independent: their interval is that of as many units as there are prompts. Over
    several samples each instruction is looked at by itself (pass@k: one of k samples follows it).
    """

    score_fields: ClassVar[Mapping[str, Any]] = dict.fromkeys(_LEVELS.values(), dict[str, Any] | None)
    headline = (_PROMPT.format("strict"),)
    columns = ("num_prompts", "num_instructions", "avg_tokens", "gen_seconds", AVERAGE_SCORE, *_NAMES)

    def __init__(self, *, answer_key: str = "predicted_answer") -> None:
        super().__init__(compute_no_answer=False, answer_key=answer_key)
        self._instructions = 0

    def scores(self, record: Row) -> Scores:
        return {
            _PROMPT.format(level): record[field]["follow_all_instructions"]
            for level, field in _LEVELS.items()
            if record.get(field)
        }

    def update(self, predictions: Sequence[Row]) -> None:
        super().update(predictions)
        counted = 0
        for level, field in _LEVELS.items():
            lists: list[Sequence[bool]] = [
                record[field]["follow_instruction_list"] if record.get(field) and not is_lost(record) else ()
                for record in predictions
            ]
            counted = max(map(len, lists))
            for i in range(counted):
                samples = [followed[i] if followed else None for followed in lists]
                values = family_values(samples, [None] * len(samples), [None] * len(samples))
                self._tally(_INSTRUCTION.format(level)).add(samples, values)
        self._instructions += counted

    def incorrect(self, prediction: Row) -> Row:
        wrong: Row = {"is_correct": False, "outcome": NO_ANSWER, "outcome_cause": "truncation"}
        for field in _LEVELS.values():
            if verdicts := prediction.get(field):
                nothing = [False] * len(verdicts["follow_instruction_list"])
                wrong[field] = {"follow_instruction_list": nothing, "follow_all_instructions": False}
        return prediction | wrong

    def numbers(self) -> dict[str, dict[str, Number]]:
        numbers = super().numbers()
        return {mode: self._with_average(scores) for mode, scores in numbers.items()}

    def _with_average(self, scores: dict[str, Number]) -> dict[str, Number]:
        prompts = scores.get(_NAMES[0])
        if prompts is None:
            return scores
        four = [
            clustered_number(scores[name], prompts) if "instruction" in name else scores[name] for name in _NAMES
        ]
        mean = Number(
            value=sum(number.value for number in four) / len(four),
            low=sum(number.low for number in four) / len(four),
            high=sum(number.high for number in four) / len(four),
            n=prompts.n,
            unscored=prompts.unscored,
            method="mean",
        )
        return dict(zip(_NAMES, four, strict=True)) | {AVERAGE_SCORE: mean}

    def _common(self) -> Row:
        return super()._common() | {"num_prompts": self._problems, "num_instructions": self._instructions}
