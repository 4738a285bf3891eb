# SPDX-License-Identifier: Apache-2.0
"""What a person is told beside the results."""

from __future__ import annotations

import sys
from functools import cache

from newskills.base.benchmark import Benchmark


@cache
def print_note(text: str) -> None:
    """Print a note once, however often a command comes to the same conclusion."""
    sys.stderr.write(f"note: {text}\n")


def warn_of_hedges(benchmark: Benchmark) -> None:
    """Warn where scores become rewards that a reply which says several things may earn."""
    if benchmark.hedgeable:
        print_note(
            f"{benchmark.name} rewards replies that name many answers: {benchmark.hedgeable}. A policy finds that; "
            "punish length (++reward.length.penalty), or train on another benchmark."
        )
