# SPDX-License-Identifier: Apache-2.0
"""The list of benchmarks. The dispatcher shows it without loading what commands are made of."""

from __future__ import annotations

from newskills.benchmarks import ENTRY_POINTS, list_all
from newskills.commands._columns import print_table


def show_benchmarks(category: str | None = None) -> None:
    """Built-in ones, then those of installed packages. Raises UnknownNameError for an unknown category."""
    rows = [(entry.name, entry.category, entry.title) for entry in list_all(category)]
    if category is None:
        from importlib.metadata import entry_points

        rows += sorted((point.name, "plug-in", point.value) for point in entry_points(group=ENTRY_POINTS))
    print_table(rows)
