# SPDX-License-Identifier: Apache-2.0
"""Figures of the comparisons that docs/agreement.md does not show, for the page of headlines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from _pytest.outcomes import Skipped
from msgspec import to_builtins

from newskills.benchmarks.pages import Agreement, stored_figures
from tests.agreement.compare import VERDICTS, WHOLE
from tests.graders.originals.ours import PARTS_COMPARED, SCORERS, agreement
from tests.official.compared import COMPARISONS, compared

FIGURES = Path(__file__).with_name("figures.json")


PACKAGES: Mapping[str, tuple[tuple[str, ...], str, str]] = {
    "tests.solve.test_agentdojo": (("agentdojo",), "agentdojo 0.1.35, package `agentdojo`", WHOLE),
    "tests.solve.test_agentharm": (
        ("agentharm", "agentharm-benign"),
        "inspect_evals 0.26.0, `combined_scorer`",
        f"checks of conversations, {VERDICTS}",
    ),
}
"""Test whose `compared()` runs a package that few have → benchmarks, the scorer, and which part of it; their figures
stay where it is missing."""


def measure() -> dict[str, Agreement]:
    """Benchmark → comparison with its official scorer, all run now."""
    figures: dict[str, Agreement] = {}
    for recording in COMPARISONS:
        result = compared(recording)
        for name in result.benchmarks:
            figures[name] = Agreement(result.scorer, result.attempts, result.agreement, result.part)
    for name, scorer in SCORERS.items():
        figures[name] = Agreement(scorer, *agreement(name), PARTS_COMPARED[name])
    stored = stored_figures(FIGURES)
    for module, (names, scorer, part) in PACKAGES.items():
        try:
            compared_here = import_module(module).compared
        except (ImportError, Skipped):
            figures |= {name: stored[name] for name in names if name in stored}
            continue
        differ, attempts = compared_here()
        figures |= dict.fromkeys(names, Agreement(scorer, attempts, 1 - len(differ) / attempts, part))
    return figures


def write() -> None:
    text = json.dumps(to_builtins(measure()), indent=1, sort_keys=True)
    FIGURES.write_text(text + "\n", encoding="utf-8")
