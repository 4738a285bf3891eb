# SPDX-License-Identifier: Apache-2.0
"""Filters of arithmetic in solutions."""

from __future__ import annotations

from msgspec import Struct

from newskills.base.records import Row
from newskills.train.data.arithmetic import equality_chains, is_wrong, split_chain
from newskills.train.data.filters.base import FilterVerdict


class DropIncorrectArithmetic(Struct, frozen=True, kw_only=True):
    """Drops a solution in which some chain's first and last side differ by more than the relative `tolerance`."""

    key: str
    tolerance: float = 1e-4
    name: str = "drop_incorrect_arithmetic"

    def apply(self, row: Row) -> FilterVerdict:
        wrong = any(is_wrong(chain, self.tolerance) for chain in equality_chains(row[self.key]))
        if wrong:
            return FilterVerdict.DROPPED
        return FilterVerdict.KEPT


class SplitArithmetic(Struct, frozen=True, kw_only=True):
    """Rewrites right chains with one `=`: one operation per step."""

    key: str
    name: str = "split_arithmetic"

    def apply(self, row: Row) -> FilterVerdict:
        text = row[self.key]
        pieces, end = [], 0
        for chain in equality_chains(text):
            if (longer := split_chain(chain)) is not None:
                pieces += [text[end : chain.start], longer]
                end = chain.start + len(chain.text)
        if not pieces:
            return FilterVerdict.KEPT
        row[self.key] = "".join(pieces) + text[end:]
        if row[self.key] == text:
            return FilterVerdict.KEPT
        return FilterVerdict.CHANGED
