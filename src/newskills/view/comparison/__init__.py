# SPDX-License-Identifier: Apache-2.0
"""Runs beside each other: is one better, in what do they differ, and what is each difference worth."""

from newskills.view.comparison.ingredients import Difference, run_differences
from newskills.view.comparison.paired_runs import (
    BenchmarkComparison,
    CompareOptions,
    Comparison,
    Flip,
    Side,
    compare_run_folders,
)

__all__ = [
    "BenchmarkComparison",
    "CompareOptions",
    "Comparison",
    "Difference",
    "Flip",
    "Side",
    "compare_run_folders",
    "run_differences",
]
