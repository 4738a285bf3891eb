# SPDX-License-Identifier: Apache-2.0
"""Benchmarks by name: built-in (one file each), from entry points, from paths, and from folders of other packages.

Listing reads a generated catalog and imports no benchmark. `-` and `_` are the same in names, case does not
matter, aliases work everywhere, `group.member` names a sub-benchmark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from newskills.base.errors import UnknownNameError
from newskills.base.registry import fold

if TYPE_CHECKING:  # listing needs no records, and they cost it 20 ms
    from newskills.benchmarks.lookup import expand, get_benchmark, get_group, member_of, place_of

__all__ = [
    "Entry",
    "Extra",
    "Places",
    "expand",
    "get_benchmark",
    "get_group",
    "list_all",
    "list_benchmarks",
    "member_of",
    "place_of",
]

ENTRY_POINTS = "newskills.benchmarks"

UNVERIFIED = (
    "A benchmark that is 'not verified' was written from the source's documentation and tried only on rows of that "
    "form: its live source could not be reached when it was added, so fields may be named differently there, or rows "
    "may have changed."
)
"""What the mark in lists and on pages means."""


class Places(NamedTuple):
    """Where else benchmarks are looked for: a map of names, a data directory with packages in it, folders of them."""

    extra: str | Path | Mapping[str, str] | None
    data_dir: Path
    folders: tuple[Path, ...] = ()


Extra = str | Path | Mapping[str, str] | Places


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from newskills.benchmarks import lookup

    return getattr(lookup, name)


class Entry(NamedTuple):
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


def list_benchmarks(category: str | None = None) -> list[Entry]:
    """The built-in benchmarks, by category and name. Raises UnknownNameError for an unknown category."""
    return [entry for entry in list_all(category) if not entry.members]


def list_all(category: str | None = None) -> list[Entry]:
    """The same with the groups, whose entries have `members`; the category `group` is all of those."""
    found = list(entries())
    if category is None:
        return found
    wanted = fold(category)
    chosen = [entry for entry in found if fold(entry.category) == wanted or (wanted == "group" and entry.members)]
    if not chosen:
        raise UnknownNameError("category", category, {"group", *(entry.category for entry in found)})
    return chosen


def entries() -> Iterator[Entry]:
    """All entries."""
    from newskills.benchmarks.catalog import CATALOG

    return map(Entry._make, CATALOG)
