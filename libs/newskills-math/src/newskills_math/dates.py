# SPDX-License-Identifier: Apache-2.0
"""Dates: `July 4, 1776`, `the 4th of July, 1776`, `1776-07-04`."""

from __future__ import annotations

import re
from typing import NamedTuple

_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_NAMES = {form: number for number, name in enumerate(_MONTHS, 1) for form in (name, name[:3])} | {"sept": 9}
_MONTH = rf"(?P<month>{'|'.join(sorted(_NAMES, key=len, reverse=True))})\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?:,?\s*(?:in\s+)?(?P<year>\d{4}))?"
_FORMS = tuple(
    re.compile(form)
    for form in (
        rf"(?:the\s+)?{_DAY}\s*(?:of\s+)?{_MONTH}{_YEAR}",
        rf"{_MONTH}\s*(?:the\s+)?{_DAY}{_YEAR}",
        r"(?P<year>\d{4})[-/](?P<month>\d{1,2})[-/](?P<day>\d{1,2})",
    )
)
_SLASHED = re.compile(r"(\d{1,2})[/.](\d{1,2})[/.](\d{4})")
_BEFORE = re.compile(r"^(?:on\s+)?(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day,?\s*)?")
_DRESS = re.compile(
    r"\\(?:text|textbf|textrm|mathrm|mathbf|mbox)\s*(?=\{)|[{}$]|\^(?=\{?\\?(?:text|mathrm|st|nd|rd|th))|\\(?=[,;:! ])"
)
_LONGEST = 60
_LIKELY = re.compile(r"jan|feb|ma[ry]|apr|ju[nl]|aug|sep|oct|nov|dec|\d[-/.]\d{1,2}[-/.]\d", re.IGNORECASE)


class Date(NamedTuple):
    """`year` 0: not stated."""

    year: int
    month: int
    day: int


def same_date(pred: str, gold: str) -> bool | None:
    """Compare two dates; None unless both are dates, and both state the year or neither does."""
    if max(len(pred), len(gold)) > _LONGEST or _LIKELY.search(gold) is None:
        return None
    first, second = _read_date(pred), _read_date(gold)
    if first is None or second is None or bool(first.year) != bool(second.year):
        return None
    return first == second


def _read_date(text: str) -> Date | None:
    """Read a date; None also where it may be either of two, as `3/4/2021` may."""
    plain = _BEFORE.sub("", " ".join(_DRESS.sub(" ", text).lower().split()), count=1)
    for form in _FORMS:
        if (match := form.fullmatch(plain)) is not None:
            month = _NAMES.get(match["month"]) or int(match["month"])
            return Date(int(match["year"] or 0), month, int(match["day"]))
    if (match := _SLASHED.fullmatch(plain)) is None:
        return None
    first, second, year = (int(number) for number in match.groups())
    readings = {Date(year, month, day) for month, day in ((first, second), (second, first)) if month <= 12}
    if len(readings) == 1:
        return readings.pop()
    return None
