# SPDX-License-Identifier: Apache-2.0
"""Win rates over games with a baseline, and marks from 1 to 10."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from msgspec.structs import replace

from newskills.base.records import Number, Row
from newskills.base.stats import bootstrap_interval
from newskills.metrics.counting.base import ScoreMetric, Scores

STRONG_WIN_WEIGHT = 3
_WINS = {"A>>B": 1.0, "A>B": 1.0, "A=B": 0.5, "A<B": 0.0, "A<<B": 0.0}
_RESAMPLES = 1000
Games = tuple[float, float]
"""Of a problem: weighted points, and weights."""


class ArenaMetric(ScoreMetric):
    """`score`: the chance in percent to beat the baseline, by Bradley and Terry's model of all games.

    With two players the model's maximum of likelihood is the weighted share of games won, a tie being half a win and
    a strong verdict three games (Li et al. 2024, arXiv:2406.11939). `95_CI`: bounds relative to the score, by drawing
    problems with replacement; `elo`: the same as a difference of Elo points; `invalid_scores`: games without a
    verdict; `order_flips`: of the problems with both games, in percent, those that the answer wins in one order and
    loses in the other; `category_<name>`: the same for each category, where there are several. With several samples:
    pass@1[avg-of-N] counts all games, pass@N the best verdict of each order.
    """

    score_fields: ClassVar[Mapping[str, Any]] = {"arena_games": Any, "arena_win": Any, "category": Any}
    headline = ("win",)
    columns: tuple[str, ...] = (
        "num_entries",
        "avg_tokens",
        "gen_seconds",
        "score",
        "95_CI",
        "elo",
        "invalid_scores",
    )

    def __init__(self) -> None:
        super().__init__(compute_no_answer=False, answer_key="generation")
        self._games: dict[str, list[list[list[str | None]]]] = {}

    def scores(self, record: Row) -> Scores:
        return {"win": record.get("arena_win")}

    def incorrect(self, prediction: Row) -> Row:
        worst: Row = {"arena_games": ["A<<B", "A<<B"], "arena_win": 0.0}
        return prediction | worst | {"outcome": "wrong", "outcome_cause": "truncation"}

    def update(self, predictions: Sequence[Row]) -> None:
        super().update(predictions)
        games = [list(record.get("arena_games") or [None, None]) for record in predictions]
        self._games.setdefault(str(predictions[0].get("category")), []).append(games)

    def numbers(self) -> dict[str, dict[str, Number]]:
        problems = [problem for listed in self._games.values() for problem in listed]
        return {
            mode: {"score": number}
            for mode in self._used_modes()
            if (number := _win_rate(problems, mode)) is not None
        }

    def metrics(self) -> dict[str, Row]:
        problems = [problem for listed in self._games.values() for problem in listed]
        modes = {}
        for mode in self._used_modes():
            row = self._common() | _mode_summary(problems, mode)
            if len(self._games) > 1:
                row |= {f"category_{name}": _mode_summary(listed, mode) for name, listed in self._games.items()}
            modes[mode] = row
        return modes

    def shown(self) -> tuple[str, ...]:
        return ()

    def _used_modes(self) -> list[str]:
        n = self._samples
        if n <= 1:
            return ["pass@1"]
        return ["pass@1", f"pass@1[avg-of-{n}]", f"pass@{n}"]


def _mode_summary(problems: Sequence[list[list[str | None]]], mode: str) -> Row:
    number = _win_rate(problems, mode)
    pairs = [games for problem in problems for games in _counted_games(problem, mode)]
    invalid = sum(game is None for games in pairs for game in games)
    complete = [[_WINS[game] for game in games if game is not None] for games in pairs if None not in games]
    if number is None:
        return {"invalid_scores": invalid}
    share = min(max(number.value / 100, 1e-6), 1 - 1e-6)
    order_flips = None
    if complete:
        order_flips = 100 * sum({0.0, 1.0} <= set(wins) for wins in complete) / len(complete)
    return {
        "score": number.value,
        "95_CI": [number.low - number.value, number.high - number.value],
        "elo": 400 * math.log10(share / (1 - share)),
        "invalid_scores": invalid,
        "order_flips": order_flips,
    }


def _counted_games(problem: list[list[str | None]], mode: str) -> list[list[str | None]]:
    """Return the games that a mode counts: of the first sample, of all, or the best of each order."""
    if mode == "pass@1":
        return problem[:1]
    if "avg-of" in mode:
        return problem
    orders = zip(*problem, strict=True)
    return [[max((game for game in games if game), key=_game_rank, default=None) for games in orders]]


def _game_rank(game: str) -> tuple[float, int]:
    win = _WINS[game]
    if not win:
        return win, -_game_weight(game)
    return win, _game_weight(game)


def _game_weight(game: str) -> int:
    """Return what a verdict counts: a strong one (`A>>B`) more than a slight one."""
    if len(game) == len("A>>B"):
        return STRONG_WIN_WEIGHT
    return 1


def _win_rate(problems: Sequence[list[list[str | None]]], mode: str) -> Number | None:
    """Return the win rate; None without any verdict."""
    counted = [_weighted_points(_counted_games(problem, mode)) for problem in problems]
    judged_games = [games for games in counted if games[1]]
    if not judged_games:
        return None
    low, high = bootstrap_interval(judged_games, _win_percent, resamples=_RESAMPLES)
    value = _win_percent(judged_games)
    unscored = len(counted) - len(judged_games)
    return Number(value=value, low=low, high=high, n=len(judged_games), unscored=unscored, method="bootstrap")


def _weighted_points(samples: Sequence[Sequence[str | None]]) -> Games:
    weighted = [_points_and_weight(game) for games in samples for game in games if game in _WINS]
    return math.fsum(points for points, _ in weighted), math.fsum(weight for _, weight in weighted)


def _points_and_weight(game: str | None) -> Games:
    assert game is not None, "only verdicts are counted"
    return _game_weight(game) * _WINS[game], _game_weight(game)


def _win_percent(games: Sequence[Games]) -> float:
    return 100 * math.fsum(points for points, _ in games) / math.fsum(weight for _, weight in games)


class RatingMetric(ScoreMetric):
    """`rating`: the mean mark from 1 to 10; `turn_1`, `turn_2`, …: those of each turn. Categories are subsets."""

    score_fields: ClassVar[Mapping[str, Any]] = {"ratings": Any}
    headline = ("rating",)
    columns: tuple[str, ...] = ("num_entries", "avg_tokens", "gen_seconds", "rating", "turn_1", "turn_2")

    def __init__(self) -> None:
        super().__init__(compute_no_answer=False, answer_key="generation")

    def scores(self, record: Row) -> Scores:
        ratings: dict[str, float | None] = record.get("ratings") or {}
        shares = {name: None if value is None else value / 10 for name, value in ratings.items()}
        present = [value for value in shares.values() if value is not None]
        whole = None
        if present and len(present) == len(shares):
            whole = math.fsum(present) / len(present)
        turns = {name.replace("-", "_"): value for name, value in shares.items() if name.startswith("turn")}
        return {"rating": whole, **turns}

    def incorrect(self, prediction: Row) -> Row:
        worst: Row = {"ratings": dict.fromkeys(prediction.get("ratings") or {"all": 1}, 1)}
        return prediction | worst | {"outcome": "wrong", "outcome_cause": "truncation"}

    def numbers(self) -> dict[str, dict[str, Number]]:
        """Return the numbers in marks, not percent."""
        return {
            mode: {
                name: replace(number, value=number.value / 10, low=number.low / 10, high=number.high / 10)
                for name, number in numbers.items()
            }
            for mode, numbers in super().numbers().items()
        }
