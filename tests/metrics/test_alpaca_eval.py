# SPDX-License-Identifier: Apache-2.0
"""Win rates at equal lengths: what must hold of any fit; the authors' own figures are in tests/official."""

from __future__ import annotations

import math
import random

import pytest

from newskills.metrics.official.length_control import (
    _STRENGTHS,
    Game,
    GamedGame,
    _derivatives,
    _fit,
    _logistic,
    _mean_loss,
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
    coefficients = _fit(rows, strength)
    slopes, _ = _derivatives(rows, strength, coefficients)
    for coefficient, slope in zip(coefficients, slopes, strict=True):
        if coefficient:
            assert slope == pytest.approx(-math.copysign(1, coefficient), abs=1e-3)
        else:
            assert abs(slope) <= 1 + 1e-3


def test_a_strong_penalty_leaves_nothing() -> None:
    assert _fit(drawn_rows(1), _STRENGTHS[0]) == (0.0, 0.0, 0.0)


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
