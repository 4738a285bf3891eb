# SPDX-License-Identifier: Apache-2.0
"""Filters by what is known about a row's answer: votes, and whether there is one."""

from __future__ import annotations

from msgspec import Struct

from newskills.base.records import Row
from newskills.train.data.filters.base import FilterVerdict


class MajorityFilter(Struct, frozen=True, kw_only=True):
    """Drops an answer with fewer than `votes`, or less than `share` (0–1) of all; keeps it where votes are missing."""

    votes: int
    share: float
    name: str = "majority_filter"

    def apply(self, row: Row) -> FilterVerdict:
        majority, total = row.get("majority_votes"), row.get("total_votes")
        if majority is None or total is None:
            return FilterVerdict.KEPT
        few = majority < self.votes or majority < total * self.share
        if few:
            return FilterVerdict.DROPPED
        return FilterVerdict.KEPT


class DropNoneAnswers(Struct, frozen=True, kw_only=True):
    """Drops a row whose expected answer is missing, null or empty."""

    name: str = "drop_none_answers"

    def apply(self, row: Row) -> FilterVerdict:
        if row.get("expected_answer") in (None, ""):
            return FilterVerdict.DROPPED
        return FilterVerdict.KEPT
