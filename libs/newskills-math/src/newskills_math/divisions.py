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
    """Compare two ratios; None unless both are ratios of whole numbers, and one of them is written with `to`."""
    if (both := _read_both(_RATIO, "to", pred, gold)) is None:
        return None
    (first, second), (other_first, other_second) = both
    return first * other_second == other_first * second


def same_remainder(pred: str, gold: str) -> bool | None:
    """Compare two quotients with remainders; None unless both are a quotient and a remainder, and one of them says so
    in words."""
    both = _read_both(_REMAINDER, "remainder", pred, gold)
    if both is None:
        return None
    return both[0] == both[1]


def _read_both(pattern: re.Pattern[str], word: str, pred: str, gold: str) -> list[tuple[int, int]] | None:
    """Return the two numbers of each text; None unless both are of that form, and one of them has the word."""
    if word not in pred and word not in gold:
        return None
    matches = pattern.fullmatch(pred), pattern.fullmatch(gold)
    pairs = [(int(match[1]), int(match[2])) for match in matches if match is not None]
    if len(pairs) == 2:
        return pairs
    return None
