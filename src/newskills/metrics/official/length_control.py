# SPDX-License-Identifier: Apache-2.0
"""The win rate that a model would have if its answers were as long as the baseline's (Dubois et al. 2024).

A logistic regression explains preferences by the difference of lengths, the difficulty of the instruction and the
model; the rate is what it predicts without the difference of lengths (arXiv:2404.04475). As the authors' package
alpaca_eval does with scikit-learn: no intercept, L1 penalty whose strength is chosen out of ten by five folds, and
the games of the baseline with itself when asked to be verbose or concise, which hold the model to 50 % there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import stdev
from typing import NamedTuple

_GAMED_WEIGHT = 0.1
_FOLDS = 5
_STRENGTHS = tuple(10 ** (-4 + 8 * step / 9) for step in range(10))
"""Inverse of the penalty."""
_ITERATIONS = 100
_TOLERANCE = 1e-9
_SMALLEST = 1e-15
Features = tuple[float, float, float]


class Game(NamedTuple):
    """A comparison: `preference` for the model (0–1; None: no verdict), lengths in characters."""

    preference: float | None
    model_length: int
    baseline_length: int
    difficulty: float


class GamedGame(NamedTuple):
    """A game of the baseline with itself; `delta`: difference of lengths in standard deviations."""

    preference: float
    delta: float
    difficulty: float


class _Row(NamedTuple):
    features: Features
    preference: float
    weight: float


def length_controlled(games: Sequence[Game], gamed: Sequence[GamedGame]) -> list[float] | None:
    """Return the preference (0–1) that is predicted for each game at equal lengths; None where too little is known."""
    differences = [float(game.baseline_length - game.model_length) for game in games]
    if len(games) < 2 or all(game.preference is None for game in games):
        return None
    spread = stdev(differences)
    rows = [_Row((math.tanh(game.delta), game.difficulty, 0.0), game.preference, _GAMED_WEIGHT) for game in gamed]
    rows += [
        _Row((math.tanh(difference / spread) if spread else 0.0, game.difficulty, 1.0), game.preference, 1.0)
        for game, difference in zip(games, differences, strict=True)
        if game.preference is not None
    ]
    _, of_difficulty, of_model = _fit_coefficients(rows, _choose_strength(rows))
    return [_logistic(of_difficulty * game.difficulty + of_model) for game in games]


def _choose_strength(rows: Sequence[_Row]) -> float:
    """Return the strength whose fits best predict the folds that they have not seen."""
    losses = [0.0] * len(_STRENGTHS)
    folds = [(len(rows) - 1 - position) % _FOLDS for position in range(len(rows))]
    for fold in range(_FOLDS):
        seen = [row for row, its_fold in zip(rows, folds, strict=True) if its_fold != fold]
        unseen = [row for row, its_fold in zip(rows, folds, strict=True) if its_fold == fold]
        coefficients: Features = (0.0, 0.0, 0.0)
        for at, strength in enumerate(_STRENGTHS):
            coefficients = _fit_coefficients(seen, strength, coefficients)
            losses[at] += _mean_loss(unseen, coefficients)
    return _STRENGTHS[losses.index(min(losses))]


def _mean_loss(rows: Sequence[_Row], coefficients: Features) -> float:
    total = 0.0
    for features, preference, weight in rows:
        share = min(max(_logistic(_dot_product(features, coefficients)), _SMALLEST), 1 - _SMALLEST)
        total -= weight * (preference * math.log(share) + (1 - preference) * math.log(1 - share))
    if rows:
        return total / len(rows)
    return 0.0


def _fit_coefficients(rows: Sequence[_Row], strength: float, start: Features = (0.0, 0.0, 0.0)) -> Features:
    """Fit coefficients that minimise |w|₁ + strength · Σ weight · loss, by Newton steps with soft thresholds."""
    coefficients = start
    value = _objective(rows, strength, coefficients)
    for _ in range(_ITERATIONS):
        gradient, curvature = _derivatives(rows, strength, coefficients)
        target = _penalised_step(coefficients, gradient, curvature)
        step = 1.0
        while step > _TOLERANCE:
            moved: Features = tuple(  # type: ignore[assignment]
                old + step * (new - old) for old, new in zip(coefficients, target, strict=True)
            )
            if (reached := _objective(rows, strength, moved)) <= value:
                break
            step /= 2
        else:
            return coefficients
        gain, coefficients, value = value - reached, moved, reached
        if gain <= _TOLERANCE * max(1.0, abs(value)):
            break
    return coefficients


def _objective(rows: Sequence[_Row], strength: float, coefficients: Features) -> float:
    a, b, c = coefficients
    total = 0.0
    for (x, y, z), preference, weight in rows:
        linear = a * x + b * y + c * z
        # log(1 + e^linear) − preference · linear, without overflow
        total += weight * (max(linear, 0.0) + math.log1p(math.exp(-abs(linear))) - preference * linear)
    return strength * total + abs(a) + abs(b) + abs(c)


def _derivatives(
    rows: Sequence[_Row], strength: float, coefficients: Features
) -> tuple[list[float], list[list[float]]]:
    a, b, c = coefficients
    gx = gy = gz = xx = xy = xz = yy = yz = zz = 0.0
    for (x, y, z), preference, weight in rows:
        share = _logistic(a * x + b * y + c * z)
        slope, bend = weight * (share - preference), weight * share * (1 - share)
        gx, gy, gz = gx + slope * x, gy + slope * y, gz + slope * z
        xx, xy, xz = xx + bend * x * x, xy + bend * x * y, xz + bend * x * z
        yy, yz, zz = yy + bend * y * y, yz + bend * y * z, zz + bend * z * z
    gradient = [strength * value for value in (gx, gy, gz)]
    return gradient, [[strength * value for value in line] for line in ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))]


def _penalised_step(
    coefficients: Features, gradient: Sequence[float], curvature: Sequence[Sequence[float]]
) -> Features:
    """Return the minimum of the quadratic model with its penalty, by coordinates."""
    moved = list(coefficients)
    for _ in range(_ITERATIONS):
        change = 0.0
        for at in range(len(moved)):
            bend = curvature[at][at]
            if bend <= 0:
                continue
            slope = gradient[at] + math.fsum(
                curvature[at][other] * (moved[other] - coefficients[other]) for other in range(len(moved))
            )
            wanted = moved[at] - slope / bend
            shrunk = math.copysign(max(abs(wanted) - 1 / bend, 0.0), wanted)
            change = max(change, abs(shrunk - moved[at]))
            moved[at] = shrunk
        if change <= _TOLERANCE:
            break
    return moved[0], moved[1], moved[2]


def _dot_product(first: Features, second: Features) -> float:
    return first[0] * second[0] + first[1] * second[1] + first[2] * second[2]


def _logistic(linear: float) -> float:
    if linear >= 0:
        return 1 / (1 + math.exp(-linear))
    return 1 - 1 / (1 + math.exp(linear))
