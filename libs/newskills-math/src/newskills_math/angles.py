# SPDX-License-Identifier: Apache-2.0
"""Angles in degrees, minutes and seconds: `30° 15'`, `30^{\\circ} 15^{\\prime} 20^{\\prime\\prime}`, `30.25°`."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple

_DEGREES = re.compile(r"°|\^\s*(?:\{\s*\\circ\s*\}|\\circ(?![a-zA-Z]))|\\degree(?![a-zA-Z])|degrees?\b")
_NAMES = (
    (_DEGREES, "°"),
    (re.compile(r"\^\s*\{\s*(?:\\prime\s*\\prime|'')\s*\}|''|[\"″”]|seconds?\b"), "s"),
    (
        re.compile(r"\^\s*\{\s*(?:\\prime|')\s*\}|\^\s*\\prime(?![a-zA-Z])|\\prime(?![a-zA-Z])|['′’]|minutes?\b"),
        "m",
    ),
)
_DRESS = re.compile(r"\\(?:text|textrm|mathrm)\s*(?=\{)|\\[,;:! ]|\\q?quad(?![a-zA-Z])|\\left|\\right|[{}()$~\s]")
_NUMBER = r"(\d{1,6}(?:\.\d{1,12})?)"
_ANGLE = re.compile(rf"([+\-−]?){_NUMBER}°(?:{_NUMBER}m)?(?:{_NUMBER}s)?")
_SIXTIETHS = (1, 60, 3600)
_LONGEST = 120


class Angle(NamedTuple):
    """`degrees`, known to `unit` degrees; `parted`: it has minutes or seconds."""

    degrees: Fraction
    unit: Fraction
    parted: bool


def same_angle(pred: str, gold: str) -> bool | None:
    """Compare two angles in degrees; None unless both are angles in degrees and at least one has minutes or seconds.

    Beside decimals (`36.87°`) minutes and seconds may be rounded as these show.
    """
    b = _read_angle(gold)
    a = None if b is None else _read_angle(pred)
    if a is None or b is None or not (a.parted or b.parted):
        return None
    decimal = b if a.parted else a
    if decimal.parted or decimal.unit == 1:
        return a.degrees == b.degrees
    return abs(a.degrees - b.degrees) <= decimal.unit / 2


def _read_angle(text: str) -> Angle | None:
    if len(text) > _LONGEST or _DEGREES.search(text) is None:
        return None
    for pattern, sign in _NAMES:
        text = pattern.sub(sign, text)
    match = _ANGLE.fullmatch(_DRESS.sub("", text))
    if match is None:
        return None
    minus, *parts = match.groups()
    if any(part is not None and float(part) >= 60 for part in parts[1:]):
        return None
    degrees = sum(
        (Fraction(part) / size for part, size in zip(parts, _SIXTIETHS, strict=True) if part), start=Fraction(0)
    )
    decimals = len(parts[0].partition(".")[2])
    signed = -degrees if minus in ("-", "−") else degrees
    return Angle(
        degrees=signed,
        unit=Fraction(1, 10**decimals),
        parted=any(parts[1:]),
    )
