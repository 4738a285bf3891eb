# SPDX-License-Identifier: Apache-2.0
"""Times of day: `3:00 PM`, `3 p.m.`, `15:00`."""

from __future__ import annotations

import re
from typing import NamedTuple

_HALF = re.compile(r"(?:[aApP]\.?\s?[mM]\.?|[nN]oon|[mM]idnight)[\s})$]{0,4}$")
_NAMED = re.compile(r"(?:12(?::00)?(?:pm)?)?noon|(?:12(?::00)?(?:am)?)?midnight")
_DRESS = re.compile(
    r"\\(?:text|textbf|textrm|mathrm|mathbf|mbox)\s*(?=\{)|\\[,;:! ]|\\colon(?![a-zA-Z])|\\left|\\right|[{}$~\s.]"
)
_TIME = re.compile(r"(\d{1,2})(?::([0-5]\d))?(?:([ap])m)?")
_LONGEST = 60


class Clock(NamedTuple):
    """`minutes` since midnight; `half` whether a.m. or p.m. was said."""

    minutes: int
    half: bool


def same_time(pred: str, gold: str) -> bool | None:
    """Compare two times of day; None unless both are times and at least one says which half of the day it means.

    Where only one says it, the other may be of 24 hours; the right answer, not the reply, may also leave it open.
    """
    if _HALF.search(pred) is None and _HALF.search(gold) is None:
        return None
    a, b = _read_clock(pred), _read_clock(gold)
    if a is None or b is None:
        return None
    if a.half and b.half:
        return a.minutes == b.minutes
    with_half, bare = (a, b) if a.half else (b, a)
    if bare.minutes == with_half.minutes:
        return True
    return not b.half and 60 <= bare.minutes < 13 * 60 and (bare.minutes - with_half.minutes) % 720 == 0


def _read_clock(text: str) -> Clock | None:
    if len(text) > _LONGEST:
        return None
    plain = _DRESS.sub("", text.replace(r"\colon", ":")).lower()
    if _NAMED.fullmatch(plain) is not None:
        minutes = 720 if plain.endswith("noon") else 0
        return Clock(minutes, half=True)
    match = _TIME.fullmatch(plain)
    if match is None or not (match[2] or match[3]):
        return None
    hour, minute, half = int(match[1]), int(match[2] or 0), match[3]
    last_hour = 12 if half else 24
    if hour > last_hour or (half and not hour):
        return None
    if half:
        hour %= 12
    if half == "p":
        hour += 12
    return Clock(hour * 60 + minute, bool(half))
