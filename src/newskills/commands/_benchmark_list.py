# SPDX-License-Identifier: Apache-2.0
"""The list of benchmarks. The dispatcher shows it without loading what commands are made of."""

from __future__ import annotations

from newskills.benchmarks import list_benchmarks
from newskills.commands._columns import print_table


def show_benchmarks(category: str | None = None) -> None:
    """Raises UnknownNameError for an unknown category."""
    print_table([(entry.name, entry.category, entry.title) for entry in list_benchmarks(category)])
