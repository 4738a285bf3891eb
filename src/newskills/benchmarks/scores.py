# SPDX-License-Identifier: Apache-2.0
"""What the scores of groups are made of: the headline of a member, plain means, and means weighted by entries."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

from newskills.base.records import Row

Metrics = Mapping[str, Row]
"""Mode → metrics of one benchmark, as in metrics.json."""

_AVERAGE = re.compile(r"pass@1\[avg-of-(\d+)\]")


def headline_mode(metrics: Metrics) -> tuple[str, Row]:
    """Return the mode that is averaged over as many samples as there are, and its metrics. Raises KeyError where there
    is none."""
    averages = {int(match[1]): mode for mode in metrics if (match := _AVERAGE.fullmatch(mode))}
    mode = averages[max(averages)] if averages else "pass@1"
    return mode, metrics[mode]


def headline(metrics: Metrics, metric: str) -> float:
    """Return `metric` at `pass@1`, averaged over as many samples as there are. Raises KeyError where there is
    none."""
    return float(headline_mode(metrics)[1][metric])


def entries(metrics: Metrics) -> int:
    """Return the number of problems of a benchmark. Raises KeyError."""
    return int(next(iter(metrics.values()))["num_entries"])


def mean(values: Iterable[float]) -> float:
    """Return the mean. Raises ValueError where there are no values."""
    value_list = list(values)
    if not value_list:
        raise ValueError("there is nothing to average")
    return math.fsum(value_list) / len(value_list)


def weighted(members: Iterable[Metrics], metric: str) -> float:
    """Return the mean of the members' headlines, each counted as often as it has problems. Raises KeyError,
    ValueError."""
    pairs = [(entries(metrics), headline(metrics, metric)) for metrics in members]
    total = sum(count for count, _ in pairs)
    if not total:
        raise ValueError("there is nothing to average")
    return math.fsum(count * value for count, value in pairs) / total
