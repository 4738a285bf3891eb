# SPDX-License-Identifier: Apache-2.0
"""The fast path: plain numbers read by one regular expression and compared exactly."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple

_INTEGER = re.compile(r"[+-]?\d{1,300}")
_NUMBER = re.compile(
    r"""(?P<sign>[+-]?)\s*
    (?:(?P<whole>[1-9]\d{0,2}(?:(?:\\!,\\!|,|\{,\}|\{\\,\}|,\\!|\\,|\\!|,\s\\!)\d{3})+|\d{1,300})(?P<tail>\.\d{0,300})?|(?P<only>\.\d{1,300}))
    (?:[eE](?P<exp>[+-]?\d{1,3})|\s*(?:\\times|\\cdot|x|\*)\s*10\^(?:\{(?P<ten>[+-]?\d{1,3})\}|(?P<ten1>\d)))?
    (?P<percent>\s*\\?%)?""",
    re.VERBOSE,
)
_FRACTION = re.compile(
    r"(?P<sign>[+-]?)\s*(?:\\[dtc]?frac\s*(?:\{\s*(?P<a>[+-]?\d{1,300})\s*\}|(?P<a1>\d))\s*(?:\{\s*(?P<b>\d{1,300})\s*\}|(?P<b1>\d))"
    r"|(?P<c>\d{1,300})\s*/\s*(?P<d>\d{1,300}))"
)


class PlainNumber(NamedTuple):
    """A plain number: its value, digits after the point (-1 = exact integer or fraction), and whether in percent."""

    value: Fraction
    places: int = -1
    percent: bool = False


def plain_number(text: str) -> PlainNumber | None:
    """Return the number that the whole of `text` is, else None."""
    if _INTEGER.fullmatch(text):
        return PlainNumber(Fraction(int(text)))
    if len(text) > 700:
        return None
    if (match := _NUMBER.fullmatch(text)) is not None:
        return _read_decimal(match)
    if (match := _FRACTION.fullmatch(text)) is not None:
        top = int(match["a"] or match["a1"] or match["c"])
        bottom = int(match["b"] or match["b1"] or match["d"])
        if bottom == 0:
            return None
        signed_top = -top if match["sign"] == "-" else top
        return PlainNumber(Fraction(signed_top, bottom))
    return None


def _read_decimal(match: re.Match[str]) -> PlainNumber:
    whole = re.sub(r"[^\d]", "", match["whole"] or "0")
    digits = (match["tail"] or match["only"] or "").lstrip(".")
    power = int(match["exp"] or match["ten"] or match["ten1"] or 0)
    value = Fraction(int(whole + digits)) * Fraction(10) ** (power - len(digits))
    exact = not digits and power >= 0
    signed_value = -value if match["sign"] == "-" else value
    places = -1 if exact else max(len(digits) - power, 0)
    return PlainNumber(
        signed_value,
        places,
        bool(match["percent"]),
    )


def are_close(a: Fraction, b: Fraction, places_a: int, places_b: int, digits: int) -> bool:
    """Return whether two unequal numbers are the same up to rounding.

    A decimal stands for what rounds to it only when it shows at least six places and six significant digits (as the
    reference does), or when both agree to `digits` significant digits (a float that was printed).
    """
    if a == b:
        return True
    if (a < 0) != (b < 0) or not a or not b:
        return False
    difference, size = abs(a - b), max(abs(a), abs(b))
    if difference * 10**digits <= size and max(places_a, places_b) >= 0:
        return True
    shown = [p for p in (places_a, places_b) if p >= 0]
    if not shown:
        return False
    places = min(shown)
    return places >= 6 and difference * 10**places <= Fraction(51, 100) and difference * 10**6 <= size
