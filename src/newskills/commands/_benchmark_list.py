# SPDX-License-Identifier: Apache-2.0
"""The list of benchmarks. The dispatcher shows it without loading what commands are made of."""

from __future__ import annotations

from newskills.benchmarks import GROUP, list_benchmarks
from newskills.commands._columns import print_table


def show_benchmarks(category: str | None = None) -> None:
    """Built-in ones, then those of installed packages. Raises UnknownNameError for an unknown category."""
    rows = [(entry.name, entry.category, entry.title) for entry in list_benchmarks(category)]
    if category is None:
        from importlib.metadata import entry_points

        rows += sorted((point.name, "plug-in", point.value) for point in entry_points(group=GROUP))
    print_table(rows)
