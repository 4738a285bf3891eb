# SPDX-License-Identifier: Apache-2.0
"""Filters by length in tokens."""

from __future__ import annotations

from msgspec import Struct

from newskills.base.protocols import Tokenizer
from newskills.base.records import Row
from newskills.train.data.filters.base import FilterVerdict

_MARGIN = 8


class RemoveLenOutliers(Struct, frozen=True, kw_only=True):
    """Drops a row whose `key` has fewer than `least` or more than `most` tokens (no special ones).

    With `chars`, `least` counts characters.
    """

    name: str
    key: str
    least: int
    most: int
    chars: bool
    tokenizer: Tokenizer

    def apply(self, row: Row) -> FilterVerdict:
        text = row[self.key]
        if self.chars and len(text) < self.least:
            return FilterVerdict.DROPPED
        open_below = self.chars or not self.least
        # A token covers at least one character of plain ASCII, so that a short text need not be cut up.
        if open_below and len(text) + _MARGIN <= self.most and text.isascii():
            return FilterVerdict.KEPT
        count = len(self.tokenizer.encode(text))
        if count > self.most or (not self.chars and count < self.least):
            return FilterVerdict.DROPPED
        return FilterVerdict.KEPT
