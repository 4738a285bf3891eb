# SPDX-License-Identifier: Apache-2.0
"""The list of benchmarks. The dispatcher shows it without loading what commands are made of."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from newskills.base.errors import UnknownNameError
from newskills.base.tables import output_width, print_table, table_lines, wrap_text
from newskills.base.terminal import counted, format_first
from newskills.benchmarks import ENTRY_POINTS, STATE_MEANING, STATES, CatalogEntry, list_all, state_of
from newskills.benchmarks.folders import PreparedFile, data_dir, prepared_files

OWN = "your own"
"""Category of what is prepared and in no catalog."""
PLAIN = "verified"
"""The state that is not marked."""
_NAMED = 8
"""Prepared benchmarks that the last lines name."""


class ListedName(NamedTuple):
    """`category`: of other names than those of benchmarks, their kind; `rows`: of the default split, empty = not
    counted; `state`: empty = nothing to say."""

    name: str
    category: str
    title: str
    rows: str = ""
    needs: str = ""
    state: str = ""
    prepared: bool = False


def show_benchmarks(category: str | None = None, search: str = "", *, prepared: bool = False) -> None:
    """List built-in benchmarks and groups, those of installed packages, and what else is prepared here; on a
    terminal by category, in a pipe a line for each. Raises UnknownNameError for an unknown category, or if nothing
    fits `search`."""
    root = data_dir()
    files = prepared_files(root)
    fitting = fitting_benchmarks(files, root, category, search, prepared=prepared)
    _print_benchmarks(fitting)
    sys.stdout.flush()
    _print_explanation(fitting, files, str(root))


def fitting_benchmarks(
    files: Sequence[PreparedFile], root: Path, category: str | None, search: str, *, prepared: bool
) -> list[ListedName]:
    """Return the benchmarks that fit, with what is prepared in `root`. Raises UnknownNameError
    as `show_benchmarks`."""
    splits = {(file.name, file.split) for file in files}
    entries = list_all(category)
    listed = []
    for entry in entries:
        state = state_of(entry, root)
        here = (entry.data or entry.name, entry.split) in splits
        if entry.members:
            rows = counted(len(entry.members), "member")
        elif entry.items:
            rows = f"{entry.items:,}"
        else:
            rows = ""
        needs = ", ".join(entry.needs())
        listed.append(ListedName(entry.name, entry.category, entry.title, rows, needs, state, here))
    if category is None:
        listed += [*_of_packages(), *_own_benchmarks(files, entries)]
    fitting = [
        item
        for item in listed
        if item.prepared >= prepared and holds_all(f"{item.name} {item.category} {item.title}", search)
    ]
    if search and not fitting:
        raise UnknownNameError(
            "benchmark", search, [item.name for item in listed], hint="All of them: ns list benchmarks"
        )
    return fitting


def holds_all(text: str, words: str) -> bool:
    """Return whether all of `words` occur in `text`, in any order; case, `-` and `_` do not matter."""
    if not words:
        return True
    folded = _searchable_text(text)
    return all(word in folded for word in _searchable_text(words).split())


def _searchable_text(text: str) -> str:
    return text.lower().replace("-", " ").replace("_", " ") + " " + text.lower()


def _of_packages() -> list[ListedName]:
    if not _some_package_declares(f"[{ENTRY_POINTS}]"):
        return []
    from importlib.metadata import entry_points

    points = sorted((point.name, point.value) for point in entry_points(group=ENTRY_POINTS))
    return [ListedName(name, "plug-in", value) for name, value in points]


def _own_benchmarks(files: Sequence[PreparedFile], entries: Sequence[CatalogEntry]) -> list[ListedName]:
    """Return the prepared benchmarks that are in no catalog."""
    listed = {name for entry in entries for name in (entry.name, entry.data)}
    return [
        ListedName(file.name, OWN, f"split {file.split}", f"{file.rows:,}", prepared=True)
        for file in files
        if file.name not in listed
    ]


def _print_benchmarks(listed: Sequence[ListedName]) -> None:
    if (width := output_width()) is None:
        print_table(
            [(item.name, item.category, item.rows, _prepared_mark(item), _one_line(item)) for item in listed]
        )
        return
    for category, members in groupby(listed, key=lambda item: item.category):
        its = list(members)
        sys.stdout.write(f"{category} ({len(its)})\n")
        rows = [(item.name, item.rows, _prepared_mark(item), _two_lines(item)) for item in its]
        for line in table_lines(rows, width=width - 2):
            sys.stdout.write(f"  {line}\n")
        sys.stdout.write("\n")


def _prepared_mark(item: ListedName) -> str:
    if item.prepared:
        return "*"
    return ""


def _one_line(item: ListedName) -> str:
    needs = f" [needs {item.needs}]" if item.needs else ""
    return item.title + needs + _state_remark(item)


def _two_lines(item: ListedName) -> str:
    remarks = _state_remark(item)
    if item.needs:
        remarks += f" needs {item.needs}"
    if remarks:
        return f"{item.title}\n{remarks.strip()}"
    return item.title


def _state_remark(item: ListedName) -> str:
    if item.state not in ("", PLAIN):
        return f" ({item.state})"
    return ""


def _print_explanation(listed: Sequence[ListedName], files: Sequence[PreparedFile], root: str) -> None:
    """Print what stands beside the table: how many there are, what is prepared, and what the states mean."""
    here = [item.name for item in listed if item.prepared]
    lines = [f"{counted(len(listed), 'benchmark')} listed. Figures: rows of the default split."]
    if here:
        lines.append(f"* {len(here)} prepared on this machine, in {root}: {format_first(here, _NAMED)}.")
    else:
        lines += [f"None of these is prepared on this machine, in {root}.", "To prepare one: ns prepare_data NAME"]
    for state in STATES:
        if state != PLAIN and (count := sum(item.state == state for item in listed)):
            lines.append(f"{count} of {len(listed)} are {state}: {STATE_MEANING[state]}.")
    width = output_width()
    sys.stderr.write("".join(f"{part}\n" for line in lines for part in wrap_text(line, width, hanging="  ")))


def _some_package_declares(section: str) -> bool:
    """Return whether any installed package has such entry points, without the 20 ms that importlib.metadata
    costs."""
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
