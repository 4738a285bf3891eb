# SPDX-License-Identifier: Apache-2.0
"""AlpacaEval 2: preferences over a baseline, at equal lengths and as they are (arXiv:2404.04475)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from statistics import stdev
from typing import Any, ClassVar

from newskills.base.reading.reply_text import without_thinking
from newskills.base.records import Number, Row
from newskills.metrics.counting.base import ScoreMetric, Scores, values_unless_lost
from newskills.metrics.counting.tally import AVERAGE_MODE
from newskills.metrics.official.length_control import Game, GamedGame, length_controlled

_DEVIATIONS = 1.96
"""Of a normal distribution, within which 95 % lie."""


class AlpacaEvalMetric(ScoreMetric):
    """`length_controlled_winrate`: percent of answers that would be preferred if they were as long as the baseline's;
    `win_rate`: percent that are preferred, a tie being half of one.

    The first needs `instruction_difficulty` and `gamed_games`, which come with the benchmark's rows. Its interval is
    1.96 standard errors of the predicted preferences, as the authors give them. Of several samples the rate is the mean
    of theirs; pass@k has none.
    """

    score_fields: ClassVar[Mapping[str, Any]] = {
        "arena_win": int | float | None,
        "baseline_answer": str | None,
        "instruction_difficulty": int | float | None,
        "gamed_games": Any,
    }
    headline = ("win_rate",)
    columns = ("num_entries", "avg_tokens", "gen_seconds", "length_controlled_winrate", "win_rate")

    def __init__(self) -> None:
        super().__init__(compute_no_answer=False, answer_key="generation")
        self._games: list[list[Game | None]] = []
        self._gamed: list[GamedGame] = []

    def scores(self, record: Row) -> Scores:
        return {"win_rate": record.get("arena_win")}

    def incorrect(self, prediction: Row) -> Row:
        return prediction | {"arena_win": 0.0, "outcome": "wrong", "outcome_cause": "truncation"}

    def update(self, predictions: Sequence[Row]) -> None:
        super().update(predictions)
        first = predictions[0]
        difficulty = first.get("instruction_difficulty")
        if difficulty is not None:
            self._games.append(values_unless_lost(predictions, partial(_game_of, difficulty=difficulty)))
            self._gamed += [
                GamedGame(preference, delta, difficulty) for preference, delta in first.get("gamed_games") or []
            ]

    def numbers(self) -> dict[str, dict[str, Number]]:
        modes = super().numbers()
        if not self._gamed:
            return modes
        rates = [self._sample_win_rate(sample) for sample in range(self._samples)]
        for mode, family, k in self._modes():
            scored = [rate for rate in rates[:k] if rate is not None]
            if scored and (k == 1 or family == AVERAGE_MODE):
                modes[mode] = {"length_controlled_winrate": _mean_number(scored), **modes[mode]}
        return modes

    def _sample_win_rate(self, sample: int) -> Number | None:
        games = [game for samples in self._games if (game := samples[sample]) is not None]
        preferences = length_controlled(games, self._gamed)
        if preferences is None:
            return None
        value = 100 * math.fsum(preferences) / len(preferences)
        half = 100 * _DEVIATIONS * stdev(preferences) / math.sqrt(len(preferences))
        unscored = self._problems - sum(game.preference is not None for game in games)
        return Number(
            value=value,
            low=max(0.0, value - half),
            high=min(100.0, value + half),
            n=len(preferences),
            unscored=unscored,
            method="normal",
        )


def _game_of(record: Row, difficulty: float) -> Game:
    answer = without_thinking(str(record.get("generation") or ""))
    return Game(record.get("arena_win"), len(answer), len(str(record.get("baseline_answer") or "")), difficulty)


def _mean_number(rates: Sequence[Number]) -> Number:
    value, low, high = (
        math.fsum(getattr(rate, name) for rate in rates) / len(rates) for name in ("value", "low", "high")
    )
    unscored = sum(rate.unscored for rate in rates)
    return Number(value=value, low=low, high=high, n=rates[0].n, unscored=unscored, method="normal")
