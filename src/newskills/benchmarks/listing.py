# SPDX-License-Identifier: Apache-2.0
"""What the generated catalog knows of benchmarks, and where else they are looked for. Imports no benchmark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from newskills.base.errors import UnknownNameError
from newskills.base.registry import fold

ENTRY_POINTS = "newskills.benchmarks"

UNVERIFIED = (
    "A benchmark that is 'not verified' was written from the source's documentation and tried only on rows of that "
    "form: its live source could not be reached when it was added, so fields may be named differently there, or rows "
    "may have changed."
)
"""What the mark in lists and on pages means."""


class BenchmarkPlaces(NamedTuple):
    """Where else benchmarks are looked for: a map of names, a data directory with packages in it, folders of them."""

    extra: str | Path | Mapping[str, str] | None
    data_dir: Path
    folders: tuple[Path, ...] = ()


Extra = str | Path | Mapping[str, str] | BenchmarkPlaces


class CatalogEntry(NamedTuple):
    """What the catalog knows of a benchmark, or of a group, which has `members`.

    `items` = rows of the default split, 0 = not counted.
    """

    name: str
    aliases: tuple[str, ...]
    category: str
    module: str
    title: str
    split: str
    items: int
    prompt: str
    grader: str
    metric: str
    licence: str
    requires: str
    needs_sandbox: bool
    members: tuple[str, ...] = ()
    verified: bool = True


def list_benchmarks(category: str | None = None) -> list[CatalogEntry]:
    """The built-in benchmarks, by category and name. Raises UnknownNameError for an unknown category."""
    return [entry for entry in list_all(category) if not entry.members]


def list_all(category: str | None = None) -> list[CatalogEntry]:
    """The same with the groups, whose entries have `members`; the category `group` is all of those.

    Raises UnknownNameError for a category that is not there.
    """
    listed = list(entries())
    if category is None:
        return listed
    wanted = fold(category)
    chosen = [entry for entry in listed if fold(entry.category) == wanted or (wanted == "group" and entry.members)]
    if not chosen:
        raise UnknownNameError("category", category, {"group", *(entry.category for entry in listed)})
    return chosen


def entries() -> Iterator[CatalogEntry]:
    """All entries."""
    from newskills.benchmarks.catalog import CATALOG

    return map(CatalogEntry._make, CATALOG)
