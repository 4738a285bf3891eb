# SPDX-License-Identifier: Apache-2.0
"""Filters that look for given words in a solution, exactly as they are written."""

from __future__ import annotations

from msgspec import Struct

from newskills.base.reading.reply_text import has_ended_thinking
from newskills.base.records import Row
from newskills.train.data.filters.base import FilterVerdict

CODE_ERRORS = ("Traceback (most recent call last)", "<output cut>", "Timed out", "SyntaxError")
PLOTS = ("import matplotlib", "from matplotlib")
CODE = ("<tool_call>", "</tool_call>")
_ASIDES = (
    "verify this with Python",
    "verify this using Python",
    "confirm this with Python",
    "use Python to plot",
    "verify this solution using Python",
    "use Python to verify",
    "confirm this result with some Python",
)
VERIFICATION = tuple(f"Let's {aside}" for aside in _ASIDES)


class DropWith(Struct, frozen=True, kw_only=True):
    """Drops a row whose `key` has any of `words`."""

    name: str
    key: str
    words: tuple[str, ...]

    def apply(self, row: Row) -> FilterVerdict:
        text = row[self.key]
        for word in self.words:
            if word in text:
                return FilterVerdict.DROPPED
        return FilterVerdict.KEPT


class DropWithout(Struct, frozen=True, kw_only=True):
    """Drops a row whose `key` lacks one of `words`."""

    name: str
    key: str
    words: tuple[str, ...]

    def apply(self, row: Row) -> FilterVerdict:
        text = row[self.key]
        for word in self.words:
            if word not in text:
                return FilterVerdict.DROPPED
        return FilterVerdict.KEPT


class DropWithoutThinking(Struct, frozen=True, kw_only=True):
    """Drops a row whose `key` has no reasoning that ended."""

    name: str
    key: str

    def apply(self, row: Row) -> FilterVerdict:
        if has_ended_thinking(row[self.key]):
            return FilterVerdict.KEPT
        return FilterVerdict.DROPPED
