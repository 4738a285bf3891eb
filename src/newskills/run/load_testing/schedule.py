# SPDX-License-Identifier: Apache-2.0
"""When the requests of an open loop are due."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from itertools import count

from newskills.run.load_testing.records import LoadLevel


def due_times(load: LoadLevel) -> list[float] | Iterator[float]:
    """Return the seconds after the level's begin at which its requests are due; without end where only its time is
    limited.

    The gaps follow a gamma distribution, as those of vLLM 0.33.0 (`get_request` in `vllm/benchmarks/serve.py`): the
    first request waits a gap, and a known number of requests is stretched so that the rate is met exactly.
    """
    gaps = _arrival_gaps(load)
    if not load.requests:
        return _burst_times(gaps, load.burst)
    groups = math.ceil(load.requests / load.burst)
    times = [0.0] * groups
    total = 0.0
    for place in range(groups):
        total += next(gaps)
        times[place] = total
    if total:
        stretch = groups * load.burst / load.value / total
        times = [time * stretch for time in times]
    return [time for time in times for _ in range(load.burst)][: load.requests]


def _arrival_gaps(load: LoadLevel) -> Iterator[float]:
    """Yield the seconds between groups of arrivals."""
    draw = random.Random(f"{load.name} {load.seed}")  # noqa: S311 - no secret
    mean = load.burst / load.value if load.value else 0.0
    while True:
        if not mean or not load.burstiness:
            yield mean
        else:
            yield draw.gammavariate(load.burstiness, mean / load.burstiness)


def _burst_times(gaps: Iterator[float], burst: int) -> Iterator[float]:
    time = 0.0
    for place in count():
        if place % burst == 0:
            time += next(gaps)
        yield time
