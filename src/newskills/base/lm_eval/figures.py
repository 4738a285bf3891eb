# SPDX-License-Identifier: Apache-2.0
"""Figures of lm_eval in metrics.json: how they are called, and which are shares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FIGURES = "lm_eval"
"""Key of metrics.json beside the usual metrics: the package's own figures, unchanged."""


def column_of(metric: str, chosen_filter: str, filter_count: int) -> str:
    """Return what a figure is called in tables: with its filter, where there are several."""
    if filter_count > 1:
        return f"{metric},{chosen_filter}"
    return metric


def is_share(row: Mapping[str, Any], key: str) -> bool:
    """Return whether the figure `metric,filter` of a task is a share of its documents, which tables show in percent."""
    return key in row.get(FIGURES, {}).get("shares", ())
