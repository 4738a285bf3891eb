# SPDX-License-Identifier: Apache-2.0
"""Filters of the form of a solution: boxed answers, the lead-in line, blocks of code."""

from __future__ import annotations

import re

from msgspec import Struct

from newskills.base.records import Row
from newskills.train.data.filters.base import FilterVerdict

LEAD_IN = "My solution:\n"
_BOXED = re.compile(r"\\boxed\{[^}]*\}")
_BOX = "\\boxed{"
_PYTHON_FENCE = re.compile(r"```[pP]ython")


class DropMultiBoxed(Struct, frozen=True, kw_only=True):
    """Drops a solution with more than one `\\boxed{…}`; braces inside are not matched."""

    key: str
    name: str = "drop_multi_boxed"

    def apply(self, row: Row) -> FilterVerdict:
        text = row[self.key]
        if text.count(_BOX) < 2:
            return FilterVerdict.KEPT
        if len(_BOXED.findall(text)) > 1:
            return FilterVerdict.DROPPED
        return FilterVerdict.KEPT


class TrimPrefix(Struct, frozen=True, kw_only=True):
    """Removes the lead-in line."""

    key: str
    name: str = "trim_prefix"

    def apply(self, row: Row) -> FilterVerdict:
        text = row[self.key]
        if not text.startswith(LEAD_IN):
            return FilterVerdict.KEPT
        row[self.key] = text[len(LEAD_IN) :]
        return FilterVerdict.CHANGED


class TrimSolutions(Struct, frozen=True, kw_only=True):
    """Cuts after the line on which the last boxed answer ends."""

    key: str
    name: str = "trim_solutions"

    def apply(self, row: Row) -> FilterVerdict:
        text = row[self.key]
        end = boxed_end(text)
        cut = text.find("\n", end) if end >= 0 else -1
        if cut < 0:
            return FilterVerdict.KEPT
        row[self.key] = text[:cut]
        return FilterVerdict.CHANGED


class DropIncorrectCodeBlocks(Struct, frozen=True, kw_only=True):
    """Keeps solutions with exactly one block of Python."""

    key: str
    name: str = "drop_incorrect_code_blocks"

    def apply(self, row: Row) -> FilterVerdict:
        if len(_PYTHON_FENCE.findall(row[self.key])) == 1:
            return FilterVerdict.KEPT
        return FilterVerdict.DROPPED


def boxed_end(text: str) -> int:
    """Return where the last `\\boxed{…}` with matched braces ends; -1 where there is none, or it is truncated."""
    start = text.rfind(_BOX)
    if start < 0:
        return -1
    inside = start + len(_BOX)
    close = text.find("}", inside)
    if close < 0 or text.find("{", inside, close) < 0:
        if close >= 0:
            return close + 1
        return -1
    depth = 0
    for at in range(inside - 1, len(text)):
        if text[at] == "{":
            depth += 1
        elif text[at] == "}":
            depth -= 1
            if not depth:
                return at + 1
    return -1


def boxed_answer(text: str) -> str | None:
    """Return the text in the last `\\boxed{…}`; None where there is none."""
    end = boxed_end(text)
    if end < 0:
        return None
    return text[text.rfind(_BOX) + len(_BOX) : end - 1].strip()
