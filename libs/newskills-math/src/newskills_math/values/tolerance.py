# SPDX-License-Identifier: Apache-2.0
"""Whether a number is near enough to a reference that was itself rounded or measured."""

from __future__ import annotations

import re
from fractions import Fraction

from newskills_math.measurements import read_measure
from newskills_math.normalise import tidy_answer
from newskills_math.syntax.nodes import TooBig, Unreadable
from newskills_math.syntax.parser import parse
from newskills_math.values.equal import real_value
from newskills_math.values.evaluate import own_context
from newskills_math.values.exact import plain_number

_LONGEST = 400
_NAME = re.compile(r"\\?[a-zA-Z]{1,12}(?:_\{?\w{1,12}\}?)?\s*(?:=|\\approx|\\simeq|≈)\s*")
_ABOUT = re.compile(r"(?:\\approx|\\simeq|\\sim|≈|~)\s*")
_MOST = Fraction(1, 100)
_Base = tuple[tuple[str, int], ...]


def is_near(pred: str, gold: str, share: float, off: float, *, strict: bool = True) -> bool:
    """Return whether both are real numbers and `pred` differs by at most `share` of `gold`, or by `off` and, if
    strict, 1%.

    A unit that only one of them states is forgiven; of two units one must be a multiple of the other.
    """
    if max(len(pred), len(gold)) > _LONGEST:
        return False
    left, right = _read_number(pred), _read_number(gold)
    if left is None or right is None:
        return False
    (a, factor_a, base_a), (b, factor_b, base_b) = left, right
    if base_a and base_b:
        if base_a != base_b:
            return False
        a, b = a * factor_a, b * factor_b
    offset = min(_decimal_fraction(off), _MOST * abs(b)) if strict else _decimal_fraction(off)
    allowed = max(_decimal_fraction(share) * abs(b), offset)
    return abs(a - b) <= allowed


def _decimal_fraction(number: float) -> Fraction:
    """Return what the number says in decimal: 0.05 is 1/20."""
    return Fraction(str(number))


def _read_number(text: str) -> tuple[Fraction, Fraction, _Base] | None:
    """Read (value, factor of its unit, powers of base units)."""
    text = _ABOUT.sub("", _NAME.sub("", tidy_answer(text), count=1), count=1)
    measured = read_measure(text)
    value_text = measured.value if measured else text
    value = _number_value(value_text)
    if value is None:
        return None
    if measured:
        return (value, measured.factor, measured.base)
    return (value, Fraction(1), ())


def _number_value(text: str) -> Fraction | None:
    if (number := plain_number(text)) is not None:
        return number.value
    try:
        value = real_value(parse(text, comma_groups=True))
    except (TooBig, Unreadable, RecursionError):
        return None
    if value is None or not own_context().isfinite(value):
        return None
    return Fraction(str(value))
