# SPDX-License-Identifier: Apache-2.0
"""Ratios and divisions with a remainder in words: `3 to 1` is `3:1`, `17 R 3` is `17 remainder 3`."""

from __future__ import annotations

import re

_BLANK = r"(?:\s|~|\\[,;:! ]|[{}$]|\\(?:text|mathrm|textrm|mbox)(?=\s*\{))"
_RATIO = re.compile(rf"(\d{{1,9}}){_BLANK}*(?::|\bto\b){_BLANK}*(\d{{1,9}})")
_REMAINDER = re.compile(
    rf"(?:{_BLANK}*quotient)?{_BLANK}*(\d{{1,15}}){_BLANK}*(?:,|;|and|with)?{_BLANK}*(?:an?\s+)?(?:r|rem|remainder)\b\.?"
    rf"{_BLANK}*(?:of|is|=)?{_BLANK}*(\d{{1,15}}){_BLANK}*",
    re.IGNORECASE,
)


def same_ratio(pred: str, gold: str) -> bool | None:
    """None unless both are ratios of whole numbers, and one of them is written with `to`."""
    if "to" not in pred and "to" not in gold:
        return None
    first, second = _RATIO.fullmatch(pred), _RATIO.fullmatch(gold)
    if first is None or second is None:
        return None
    return int(first[1]) * int(second[2]) == int(first[2]) * int(second[1])


def same_remainder(pred: str, gold: str) -> bool | None:
    """None unless both are a quotient and a remainder, and one of them says so in words."""
    if "remainder" not in pred and "remainder" not in gold:
        return None
    first, second = _REMAINDER.fullmatch(pred), _REMAINDER.fullmatch(gold)
    if first is None or second is None:
        return None
    return [int(n) for n in first.groups()] == [int(n) for n in second.groups()]
