# SPDX-License-Identifier: Apache-2.0
"""Benchmarks by name: built-in (one file each), from entry points, from paths, and from folders of other packages.

Listing reads a generated catalog and imports no benchmark. `-` and `_` are the same in names, case does not
matter, aliases work everywhere, `group.member` names a sub-benchmark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from newskills.benchmarks.listing import (
    ENTRY_POINTS,
    STATE_MEANING,
    STATES,
    BenchmarkPlaces,
    CatalogEntry,
    Extra,
    State,
    catalog_entries,
    list_all,
    list_benchmarks,
    state_of,
)

if TYPE_CHECKING:  # listing needs no records, and they cost it 20 ms
    from newskills.benchmarks.lookup import expand_benchmarks, get_benchmark, get_group, member_of, place_of

__all__ = [
    "ENTRY_POINTS",
    "STATES",
    "STATE_MEANING",
    "BenchmarkPlaces",
    "CatalogEntry",
    "Extra",
    "State",
    "catalog_entries",
    "expand_benchmarks",
    "get_benchmark",
    "get_group",
    "list_all",
    "list_benchmarks",
    "member_of",
    "place_of",
    "state_of",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from newskills.benchmarks import lookup

    return getattr(lookup, name)
