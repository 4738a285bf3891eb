# SPDX-License-Identifier: Apache-2.0
"""The list of benchmarks. The dispatcher shows it without loading what commands are made of."""

from __future__ import annotations

import os
import sys

from newskills.base.tables import print_table
from newskills.benchmarks import ENTRY_POINTS, STATE_MEANING, STATES, list_all, state_of
from newskills.benchmarks.folders import data_dir


def show_benchmarks(category: str | None = None) -> None:
    """Built-in ones and groups, then those of installed packages. Raises UnknownNameError for an unknown category."""
    entries = list_all(category)
    root = data_dir()
    states = [state_of(entry, root) for entry in entries]
    rows = [
        (entry.name, entry.category, entry.title if state == "verified" else f"{entry.title} ({state})")
        for entry, state in zip(entries, states, strict=True)
    ]
    if category is None and _some_package_declares(f"[{ENTRY_POINTS}]"):
        from importlib.metadata import entry_points

        rows += sorted((point.name, "plug-in", point.value) for point in entry_points(group=ENTRY_POINTS))
    print_table(rows)
    sys.stdout.flush()
    for state in STATES:
        if count := states.count(state):
            sys.stderr.write(f"{count} of {len(entries)} are {state}: {STATE_MEANING[state]}.\n")


def _some_package_declares(section: str) -> bool:
    """Whether any installed package has such entry points: told without the 20 ms that importlib.metadata costs."""
    for place in sys.path:
        try:
            names = os.listdir(place or ".")
        except OSError:
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info")):
                try:
                    with open(
                        f"{place or '.'}/{name}/entry_points.txt", encoding="utf-8", errors="replace"
                    ) as file:
                        if section in file.read():
                            return True
                except OSError:
                    continue
    return False
