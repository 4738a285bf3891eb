# SPDX-License-Identifier: Apache-2.0
"""Win rates at equal lengths: what must hold of any fit; the authors' own figures are in tests/official."""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.base.records import Row
from newskills.metrics import make_metric
from newskills.metrics.official.length_control import (
    _STRENGTHS,
    Game,
    GamedGame,
    _choose_strength,
    _derivatives,
    _fit_coefficients,
    _logistic,
    _mean_loss,
    _objective,
    _Row,
    length_controlled,
)


def drawn_rows(seed: int, rows: int = 60) -> list[_Row]:
    chance = random.Random(seed)
    drawn = []
    for _ in range(rows):
        features = (chance.uniform(-1, 1), chance.gauss(0, 1), float(chance.random() < 0.8))
        share = _logistic(0.8 * features[0] + 0.5 * features[1] - 0.6 * features[2])
        drawn.append(_Row(features, float(chance.random() < share), chance.choice((0.1, 1.0))))
    return drawn


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("strength", _STRENGTHS[3:7])
def test_a_fit_is_where_no_coefficient_can_be_bettered(seed: int, strength: float) -> None:
    """At the minimum the slope balances the penalty of what is not 0, and does not exceed that of what is."""
    rows = drawn_rows(seed)
    coefficients = _fit_coefficients(rows, strength)
    slopes, _ = _derivatives(rows, strength, coefficients)
    for coefficient, slope in zip(coefficients, slopes, strict=True):
        if coefficient:
            assert slope == pytest.approx(-math.copysign(1, coefficient), abs=1e-3)
        else:
            assert abs(slope) <= 1 + 1e-3


def test_a_strong_penalty_leaves_nothing() -> None:
    assert _fit_coefficients(drawn_rows(1), _STRENGTHS[0]) == (0.0, 0.0, 0.0)


def test_the_loss_of_rows() -> None:
    rows = [_Row((1.0, 0.0, 0.0), 1.0, 1.0), _Row((0.0, 1.0, 0.0), 0.25, 0.1)]
    first = math.log1p(math.exp(-2))
    second = -0.1 * (0.25 * math.log(0.5) + 0.75 * math.log(0.5))
    assert _mean_loss(rows, (2.0, 0.0, 5.0)) == pytest.approx((first + second) / 2)
    assert _mean_loss([], (2.0, 0.0, 5.0)) == 0.0
    certain = [_Row((1.0, 0.0, 0.0), 0.0, 1.0)]
    assert _mean_loss(certain, (1000.0, 0.0, 0.0)) == pytest.approx(-math.log(1e-15), rel=1e-2)


def test_what_only_length_explains_is_gone_at_equal_lengths() -> None:
    """Longer answers always win; half of the model's are longer, so that it wins half of the time."""
    longer = [Game(1.0, 1200 + 10 * at, 400, 0.0) for at in range(60)]
    shorter = [Game(0.0, 400, 1200 + 10 * at, 0.0) for at in range(60)]
    gamed = [GamedGame(0.9, -1.0, 0.0), GamedGame(0.1, 1.0, 0.0)] * 30
    mixed = [game for pair in zip(longer, shorter, strict=True) for game in pair]
    rates = length_controlled(mixed, gamed)
    assert rates is not None
    assert rates == pytest.approx([0.5] * 120, abs=0.05)
    mostly_longer = [*longer, *shorter[:20]]
    rates = length_controlled(mostly_longer, gamed)
    assert rates is not None
    assert max(rates) < 0.7 < sum(game.preference or 0 for game in mostly_longer) / len(mostly_longer)


def test_too_little_is_known() -> None:
    assert length_controlled([Game(1.0, 10, 20, 0.0)], []) is None
    assert length_controlled([Game(None, 10, 20, 0.0)] * 5, []) is None
    assert length_controlled([Game(1.0, 10, 20, 0.0)] * 5, []) is not None, "all differ alike"


COEFFICIENTS = st.tuples(*[st.floats(-3, 3)] * 3)


@given(st.integers(0, 99), st.floats(0.01, 100), COEFFICIENTS)
def test_what_a_fit_minimises_and_its_derivatives(
    seed: int, strength: float, coefficients: tuple[float, float, float]
) -> None:
    """Against the formula of a penalised logistic regression, and against differences of it."""
    rows = drawn_rows(seed, 12)

    def loss(at: Sequence[float]) -> float:
        total = 0.0
        for features, preference, weight in rows:
            linear = math.fsum(a * x for a, x in zip(at, features, strict=True))
            total += weight * (math.log(1 + math.exp(linear)) - preference * linear)
        return strength * total

    def moved(at: int, step: float, other: int = 0, more: float = 0.0) -> float:
        point = list(coefficients)
        point[at] += step
        point[other] += more
        return loss(point)

    scale = max(1.0, strength)
    penalty = sum(map(abs, coefficients))
    assert _objective(rows, strength, coefficients) == pytest.approx(loss(coefficients) + penalty)
    gradient, curvature = _derivatives(rows, strength, coefficients)
    for at in range(3):
        slope = (moved(at, 1e-5) - moved(at, -1e-5)) / 2e-5
        assert gradient[at] == pytest.approx(slope, abs=1e-4 * scale)
        for other in range(3):
            h = 1e-3
            bend = (
                moved(at, h, other, h)
                - moved(at, h, other, -h)
                - moved(at, -h, other, h)
                + moved(at, -h, other, -h)
            ) / (4 * h * h)
            assert curvature[at][other] == pytest.approx(bend, abs=1e-4 * scale)


def test_a_linear_value_without_bounds_overflows_nowhere() -> None:
    rows = [_Row((1.0, 0.0, 0.0), 1.0, 1.0), _Row((-1.0, 0.0, 0.0), 0.0, 0.5)]
    assert _objective(rows, 1.0, (2000.0, 0.0, 0.0)) == pytest.approx(2000)
    assert _objective(rows, 1.0, (-2000.0, 0.0, 0.0)) == pytest.approx(2000 + 2000 * 1.5)
    assert (_logistic(2000), _logistic(-2000), _logistic(0)) == (1.0, 0.0, 0.5)
    assert _logistic(1) == pytest.approx(1 / (1 + math.exp(-1)))
    assert _logistic(-1) == pytest.approx(1 - _logistic(1))


@pytest.mark.parametrize("seed", range(4))
def test_the_strength_is_that_whose_fits_predict_unseen_folds_best(seed: int) -> None:
    rows = drawn_rows(seed, 43)
    losses = []
    for strength in _STRENGTHS:
        loss = 0.0
        for fold in range(5):
            unseen = rows[::-1][fold::5]
            seen = [row for row in rows if row not in unseen]
            loss += _mean_loss(unseen, _fit_coefficients(seen, strength))
        losses.append(loss)
    assert _choose_strength(rows) == _STRENGTHS[losses.index(min(losses))]


def test_ten_strengths_from_a_ten_thousandth_to_ten_thousand() -> None:
    assert len(_STRENGTHS) == 10
    assert (_STRENGTHS[0], _STRENGTHS[-1]) == pytest.approx((1e-4, 1e4))
    steps = [later / earlier for earlier, later in itertools.pairwise(_STRENGTHS)]
    assert steps == pytest.approx([10 ** (8 / 9)] * 9)


def test_rates_are_what_the_fit_says_at_equal_lengths() -> None:
    """Rows of the fit: games of the baseline with itself, a tenth each, then the games with a preference."""
    chance = random.Random(3)
    games = [
        Game(float(chance.random() < 0.6), chance.randint(50, 900), chance.randint(50, 900), chance.gauss(0, 1))
        for _ in range(30)
    ]
    games[4] = games[4]._replace(preference=None)
    gamed = [GamedGame(chance.random(), chance.gauss(0, 1), chance.gauss(0, 1)) for _ in range(40)]
    spread = statistics.stdev(game.baseline_length - game.model_length for game in games)
    rows = [_Row((math.tanh(game.delta), game.difficulty, 0.0), game.preference, 0.1) for game in gamed]
    for game in games:
        if game.preference is not None:
            apart = (game.baseline_length - game.model_length) / spread
            rows.append(_Row((math.tanh(apart), game.difficulty, 1.0), game.preference, 1.0))
    _, difficulty, model = _fit_coefficients(rows, _choose_strength(rows))
    assert difficulty or model
    assert length_controlled(games, gamed) == pytest.approx(
        [_logistic(difficulty * game.difficulty + model) for game in games]
    )


def preferred(win: float | None, own: str, baseline: str = "bb", **more: object) -> Row:
    gamed = {"instruction_difficulty": 0.25, "gamed_games": [[0.5, 0.1], [0.25, -1.0]]}
    return {"arena_win": win, "generation": own, "baseline_answer": baseline, **gamed, **more}


LOST: Row = {"outcome": "unscored", "outcome_cause": "provider"}


def test_the_rate_of_each_sample_and_their_mean() -> None:
    data = [
        [preferred(1.0, "<think>long</think>aaaa"), preferred(0.0, "aaaa")],
        [preferred(0.5, "a", instruction_difficulty=-0.5), preferred(1.0, "aaaaaa")],
        [preferred(0.0, "aaa"), preferred(None, "a") | LOST],
        [preferred(1.0, "aaaaaaa"), preferred(None, "aa", outcome="unscored", outcome_cause="judge")],
    ]
    metric = make_metric("alpaca_eval")
    for samples in data:
        metric.update(samples)
    gamed = [GamedGame(p, delta, d) for d in (0.25, -0.5, 0.25, 0.25) for p, delta in ((0.5, 0.1), (0.25, -1.0))]
    first = [Game(1.0, 4, 2, 0.25), Game(0.5, 1, 2, -0.5), Game(0.0, 3, 2, 0.25), Game(1.0, 7, 2, 0.25)]
    second = [Game(0.0, 4, 2, 0.25), Game(1.0, 6, 2, -0.5), Game(None, 2, 2, 0.25)]
    rates = [length_controlled(games, gamed) for games in (first, second)]
    values, halves = [], []
    for rate in rates:
        assert rate is not None
        values.append(100 * statistics.fmean(rate))
        halves.append(196 * statistics.stdev(rate) / math.sqrt(len(rate)))
    numbers = metric.numbers()
    one, both = (numbers[mode]["length_controlled_winrate"] for mode in ("pass@1", "pass@1[avg-of-2]"))
    # pass@1 of several samples is the mean of those that are there
    assert one.value == pytest.approx(values[0])
    assert (one.low, one.high) == pytest.approx((max(0, values[0] - halves[0]), min(100, values[0] + halves[0])))
    assert (one.n, one.unscored, one.method) == (4, 0, "normal")
    assert both.value == pytest.approx(statistics.fmean(values))
    lows = [max(0.0, value - half) for value, half in zip(values, halves, strict=True)]
    highs = [min(100.0, value + half) for value, half in zip(values, halves, strict=True)]
    assert (both.low, both.high) == pytest.approx((statistics.fmean(lows), statistics.fmean(highs)))
    assert (both.n, both.unscored) == (4, 2)
    assert "length_controlled_winrate" not in numbers["pass@2"]
    assert list(numbers["pass@1"]) == ["length_controlled_winrate", "win_rate"], "the first is the benchmark's own"


def test_without_difficulties_or_games_of_the_baseline_there_is_the_plain_rate() -> None:
    for missing in ("instruction_difficulty", "gamed_games"):
        metric = make_metric("alpaca_eval")
        for win in (1.0, 0.5):
            metric.update([preferred(win, "a") | {missing: None}])
        assert set(metric.numbers()["pass@1"]) == {"win_rate"}
        assert metric.metrics()["pass@1"]["win_rate"] == 75.0
    metric = make_metric("alpaca_eval")
    metric.update([preferred(1.0, "a")])
    assert set(metric.numbers()["pass@1"]) == {"win_rate"}, "of one game nothing is known"
