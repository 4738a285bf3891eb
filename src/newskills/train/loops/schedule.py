# SPDX-License-Identifier: Apache-2.0
"""Learning rates and the order of data, as functions of seed and step alone, so that nothing of them need be saved."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import TypeVar

from newskills.train.settings import Schedule

T = TypeVar("T")


def rate_at(step: int, steps: int, peak: float, schedule: Schedule, warmup: int = 0) -> float:
    """Return the learning rate of step `step` (from 0) of `steps`: up to `peak` in `warmup` steps, then down to almost
    0."""
    if step < warmup:
        return peak * (step + 1) / warmup
    share = (step - warmup) / max(1, steps - warmup)
    return peak * {"constant": 1.0, "linear": 1 - share, "cosine": (1 + math.cos(math.pi * share)) / 2}[schedule]


def batch_at(items: Sequence[T], step: int, size: int, seed: int) -> list[T]:
    """Return the items of step `step`: every epoch is a shuffle of its own; a batch never holds one twice.

    What an epoch has left when it cannot fill a batch is left out, as trainers of the field do; fewer items than
    `size` are all taken.
    """
    size = min(size, len(items))
    epoch, place = divmod(step, len(items) // size)
    order = list(range(len(items)))
    random.Random(f"{seed}-{epoch}").shuffle(order)  # noqa: S311 - no secret
    return [items[index] for index in order[place * size : (place + 1) * size]]


def steps_of(epochs: float, items: int, size: int) -> int:
    """Return the number of steps of so many epochs; at least one."""
    return max(1, math.ceil(epochs * (items // min(size, items))))
