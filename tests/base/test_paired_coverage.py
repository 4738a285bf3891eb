# SPDX-License-Identifier: Apache-2.0
"""95 % intervals hold the truth in 95 % of comparisons: simulated with numpy, which agrees with the product."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

from newskills.base import paired

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

ROUNDS = 2000
NIGHT = pytest.mark.nightly
CASES = [
    (30, 1, 0.1),
    pytest.param(300, 1, 0.05, marks=NIGHT),
    pytest.param(3000, 1, 0.02, marks=NIGHT),
    (30, 4, 0.1),
]
"""Problems, samples of each, and the share of its right answers that the second system loses."""


def comparisons(n: int, samples: int, loss: float, draw: np.random.Generator) -> Counts:
    """How many of `samples` answers each side has right, (ROUNDS, n, 2); problems differ in difficulty."""
    chances = draw.beta(0.8, 0.5, size=(ROUNDS, n))
    return draw.binomial(samples, np.stack([chances, chances * (1 - loss)], axis=-1))


def intervals(samples: int, rights: Counts, draw: np.random.Generator) -> Floats:
    """Low and high of each round, (ROUNDS, 2), as `paired_difference` defines them.

    Two problems more, of tossed coins; then 2.5 % and 97.5 % of the means of problems drawn with replacement.
    """
    gains = rights[..., 1] - rights[..., 0]
    weights = np.stack([(gains == gain).sum(axis=1) for gain in range(-samples, samples + 1)], axis=-1) + 0.0
    coin = math.isqrt(samples)
    weights[:, [samples - coin, samples, samples + coin]] += (0.5, 1, 0.5)
    total = rights.shape[1] + 2
    values = np.arange(-samples, samples + 1) / (samples * total)
    means = (draw.multinomial(total, weight / total, size=paired.RESAMPLES) @ values for weight in weights)
    bounds = np.array([np.quantile(drawn, (0.025, 0.975)) for drawn in means])
    mean = gains.mean(axis=1) / samples
    return np.stack([np.minimum(bounds[:, 0], mean), np.maximum(bounds[:, 1], mean)], axis=-1)


def intervals_of_the_product(samples: int, rights: Counts) -> Floats:
    def answers(right: int) -> list[int]:
        return [1] * right + [0] * (samples - right)

    results = [
        paired.paired_difference([answers(b) for b, _ in pairs], [answers(a) for _, a in pairs])
        for pairs in rights.tolist()
    ]
    return np.array([(result.low, result.high) for result in results])


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize(("n", "samples", "loss"), CASES)
def test_intervals_cover_the_truth_as_often_as_they_say(n: int, samples: int, loss: float) -> None:
    draw = np.random.default_rng(n + samples)
    rights = comparisons(n, samples, loss, draw)
    simulated = intervals(samples, rights, draw)
    truth = -loss * 0.8 / 1.3
    assert 0.93 <= np.mean((simulated[:, 0] <= truth) & (truth <= simulated[:, 1])) <= 0.97

    some = rights[:100]
    differences = intervals_of_the_product(samples, some) - simulated[: len(some)]
    width = np.mean(simulated[:, 1] - simulated[:, 0])
    step = 1 / (samples * (n + 2))
    # Both draw 2,000 means, so a bound is known to 1.5 % of the width, and the mean of a hundred to a tenth of that.
    assert np.abs(differences).max() <= 0.1 * width + step
    assert np.abs(differences.mean(axis=0)).max() <= 0.01 * width
