# SPDX-License-Identifier: Apache-2.0
"""Conditions on a comparison that fail a build."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from newskills.base.errors import ConfigError, DataError, GateError
from newskills.view.comparison.paired_runs import Comparison, check_benchmark

WORSE = "worse"
_BELOW = re.compile(r"\s*(?P<benchmark>\S+)\s*<\s*(?P<points>[+-]?\d+(?:\.\d+)?)\s*")


class Condition(Struct, frozen=True):
    """Fails where a benchmark's difference is below `points`; without a benchmark, where any is worse."""

    benchmark: str = ""
    points: float = 0.0


def parse_condition(text: str) -> Condition:
    """Parse `worse`, or `gsm8k < -1.0`. Raises ConfigError."""
    if text.strip() == WORSE:
        return Condition()
    if match := _BELOW.fullmatch(text):
        return Condition(match["benchmark"], float(match["points"]))
    raise ConfigError(
        f"--fail_if {text!r} is not a condition.",
        hint="Write --fail_if worse, or --fail_if 'gsm8k < -1.0' for a difference in points.",
    )


def check_conditions(conditions: Sequence[Condition], comparison: Comparison) -> None:
    """Raise GateError where a condition holds; DataError, UnknownNameError where one cannot be judged."""
    for condition in conditions:
        if condition.benchmark:
            check_benchmark(condition.benchmark, comparison)
        elif comparison.left_out:
            reasons = " ".join(f"{name}: {why}" for name, why in comparison.left_out.items())
            raise DataError(
                f"--fail_if worse cannot be judged, since benchmarks are not compared. {reasons}",
                hint="Name those that count with --benchmarks.",
            )
    if broken := list(dict.fromkeys(_broken_conditions(conditions, comparison))):
        raise GateError(f"--fail_if: {'; '.join(broken)}.")


def _broken_conditions(conditions: Sequence[Condition], comparison: Comparison) -> Iterator[str]:
    for condition in conditions:
        for item in comparison.benchmarks:
            if not condition.benchmark and item.verdict == "worse":
                yield f"{item.after.run} is worse on {item.benchmark} ({item.difference:+.1f} points)"
            if condition.benchmark == item.benchmark and item.difference < condition.points:
                yield (
                    f"{item.benchmark} of {item.after.run} has {item.difference:+.1f} points, which is less than "
                    f"{condition.points:g}"
                )
