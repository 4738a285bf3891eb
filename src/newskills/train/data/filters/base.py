# SPDX-License-Identifier: Apache-2.0
"""What a filter is."""

from __future__ import annotations

from enum import IntEnum
from typing import Protocol

from newskills.base.records import Row


class FilterVerdict(IntEnum):
    """What a filter has done with a row."""

    KEPT = 0
    CHANGED = 1
    DROPPED = 2


class Filter(Protocol):
    """`name` is its key under `filters.` (and in the report). `apply` may change the row in place."""

    @property
    def name(self) -> str: ...

    def apply(self, row: Row) -> FilterVerdict: ...
