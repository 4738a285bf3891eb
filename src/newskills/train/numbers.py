# SPDX-License-Identifier: Apache-2.0
"""Functions of losses, also where exp would overflow."""

from __future__ import annotations

import math


def sigmoid(value: float) -> float:
    """Return 1 / (1 + exp(−value)).

    >>> sigmoid(0.0), sigmoid(-1000.0)
    (0.5, 0.0)
    """
    if value < 0:
        return math.exp(value) / (1 + math.exp(value))
    return 1 / (1 + math.exp(-value))


def softplus(value: float) -> float:
    """Return log(1 + exp(value)).

    >>> softplus(1000.0)
    1000.0
    """
    return max(value, 0.0) + math.log1p(math.exp(-abs(value)))
