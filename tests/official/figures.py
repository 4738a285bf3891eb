# SPDX-License-Identifier: Apache-2.0
"""Figures of all comparisons with official scorers, for the page that `docs/generate.py` makes of them."""

from __future__ import annotations

import json
from pathlib import Path

from msgspec import to_builtins

from newskills.benchmarks.standing import Agreed
from tests.agreement.page import measured
from tests.agreement.registry import comparisons
from tests.official.compared import COMPARISONS, compared

FIGURES = Path(__file__).with_name("figures.json")


def measure() -> dict[str, Agreed]:
    """Benchmark → comparison with its official scorer, all run now."""
    figures: dict[str, Agreed] = {}
    for comparison in comparisons().values():
        figure = measured(comparison)
        for name in comparison.benchmarks:
            figures[name] = Agreed(comparison.scorer, figure.attempts, figure.share)
    for recording in COMPARISONS:
        result = compared(recording)
        for name in result.benchmarks:
            figures[name] = Agreed(result.scorer, result.attempts, result.agreement)
    return figures


def write() -> None:
    text = json.dumps(to_builtins(measure()), indent=1, sort_keys=True)
    FIGURES.write_text(text + "\n", encoding="utf-8")
