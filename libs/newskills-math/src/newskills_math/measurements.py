# SPDX-License-Identifier: Apache-2.0
"""A number followed by units of measurement, read from the text: `9.8 \\mathrm{m\\,s^{-2}}`, `€5`, `45 kJ/mol`.

Units are brought to one normal form (a factor and powers of base units), so that other spellings of the same unit
are the same, and other units are converted where that is exact.
"""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from newskills_math.syntax.units import CURRENCIES, NAMES, PREFIXED, PREFIXES, SYMBOLS, UNPREFIXED

_DIGITS = r"(?:\d{1,3}(?:(?:,|\{,\}|\\,|\\!|,\\!)\d{3})+|\d+)(?:\.\d+)?|\.\d+"
_FACTOR = (
    rf"(?:{_DIGITS})(?:[eE][+-]?\d{{1,4}})?(?:\s*(?:\\times|\\cdot|x|\*)\s*10\s*\^\s*(?:\{{\s*[+-]?\d+\s*\}}|\d))?"
    r"|\\[dt]?frac\s*(?:\{[^{}]{1,60}\}\s*\{[^{}]{1,60}\}|\d\d)|\\sqrt\s*(?:\{[^{}]{1,60}\}|\d)|\\pi(?![a-zA-Z])|/(?=\s*\d)"
)
_VALUE = re.compile(rf"[+-]?\s*(?:(?:{_FACTOR})\s*){{1,6}}|[(\[][-+\d\s.,/]{{1,80}}[)\]]")
_CURRENCY = re.compile(r"([+-]?)\s*\\(euro|pounds|yen|rupee|textdollar|\$)(?![a-zA-Z])\s*([+-]?\s*)(?=[\d.\\])")
_WRAPPED = re.compile(r"\\(?:text|textrm|mathrm|mbox|rm|operatorname|unit|si|textup|textnormal|mathit)\b\s*")
_DRESS = [
    (re.compile(r"\^\s*\{?\s*\\circ\s*\}?|\\degree(?:Celsius)?|\\textdegree"), "°"),
    (re.compile(r"(?i)\bdegrees?\s*(?:celsius|centigrade|C\b)"), "°C"),
    (re.compile(r"(?i)\bdegrees?\s*(?:fahrenheit|F\b)"), "°F"),
    (re.compile(r"\\Omega|\\ohm"), "Ω"),
    (re.compile(r"\\mu(?![a-zA-Z])\s*|μ"), "µ"),
    (re.compile(r"\\AA(?![a-zA-Z])|\\r(?:ing)?\s*A|\\mathring\s*\{?A\}?"), "Å"),
    (re.compile(r"\bper\b"), "/"),
    (re.compile(r"\\(?:cdot|times|quad|qquad)(?![a-zA-Z])|\\[,;:!> ]|[~*]"), " "),
    (re.compile(r"\\\$"), "$"),
    (re.compile(r"[{}]"), ""),
]
_UNIT = re.compile(
    r"\s*(?P<power>(?:square|sq\.?|cubic|cu\.?)\s)?\s*(?P<name>°\s?[CFK]|[A-Za-zµΩÅ]+|[¢$])\.?"
    r"(?:\s*\^\s*\(?(?P<exponent>-?\d)\)?|\s(?P<word>squared|cubed)\b)?\s*"
)
_BLANK = re.compile(r"~|\\[,;:! ]|\\q?quad|(?:\\[a-z]+\s*)?\{(?:\s|~|\\[,;:! ])")
_FEET = re.compile(
    r"(\d{1,6}(?:\.\d{1,6})?)\s*(?:'|\^\s*\{\s*\\prime\s*\}|\^\s*\\prime)\s*(?:(\d{1,2})\s*(?:''|\"))?"
)
_TRAILER = re.compile(r"\s(?:old|long|tall|wide|high|deep|away|each|in total|total|in length|in all)$")
_MAX_UNIT_TEXT = 80
_NEXT_VALUE = re.compile(
    r"(?<=[A-Za-z}.])(?:[\s,~]|\\[,;:! ]|and(?![a-z])|\\text\s?\{\s?and\s?\})*(?=[\d.])|\s+and\s*\}(?=\s*\d)"
)
_PLAIN = re.compile(r"\d{1,12}(?:\.\d{1,12})?")
_TIME = (("s", 1),)
_MOST_PARTS = 4
_LONGEST_SUM = 200


class Measure(NamedTuple):
    """`value` as text; `factor` times the powers of base units in `base`.

    `certain`: it cannot be a product of variables, as `7 N` could.
    """

    value: str
    factor: Fraction
    base: tuple[tuple[str, int], ...]
    certain: bool


def read_measure(text: str) -> Measure | None:
    """Return the measure that the whole text is, else None."""
    if (money := _CURRENCY.match(text)) is not None:
        value = money[1] + money[3].strip() + text[money.end() :]
        if is_value(value):
            return Measure(value, Fraction(1), ((CURRENCIES[money[2]], 1),), True)
        return None
    if (feet := _FEET.fullmatch(text)) is not None:
        inches = Fraction(feet[1]) * 12 + int(feet[2] or 0)
        factor, base = _unit_meaning(NAMES["inch"])
        return Measure(str(inches), factor, base, certain=False)
    return _read_single(text) or _read_sum(text)


def _read_sum(text: str) -> Measure | None:
    """Read a sum, `2 h 15 min`: units of one kind, each smaller than the one before; measured in the last of them."""
    parts = _NEXT_VALUE.split(text) if len(text) <= _LONGEST_SUM else []
    if not 2 <= len(parts) <= _MOST_PARTS:
        return None
    measures = [measure for part in parts if (measure := _read_single(part)) is not None]
    if len(measures) < len(parts) or len({measure.base for measure in measures}) > 1:
        return None
    falling = all(before.factor > after.factor for before, after in pairwise(measures))
    smallest = measures[-1]
    if not falling or not smallest.base or not all(_PLAIN.fullmatch(measure.value) for measure in measures):
        return None
    if "," in text and smallest.base != _TIME:  # two lengths, or one
        return None
    total = sum(Fraction(measure.value) * measure.factor for measure in measures) / smallest.factor
    return smallest._replace(value=str(total), certain=any(measure.certain for measure in measures))


def _read_single(text: str) -> Measure | None:
    match = _VALUE.match(text)
    if match is None or match.end() == len(text) or len(text) - match.end() > _MAX_UNIT_TEXT:
        return None
    value, rest = match.group().strip(), text[match.end() :]
    if value.endswith("/"):
        return None
    product = _read_units(rest.strip())
    if product is None:
        return None
    factor, base, spellings = product
    spaced = match.group()[-1:].isspace() or _BLANK.match(rest) is not None
    if spellings == ("M",) and not spaced:  # `1.5M` are millions
        return None
    wrapped = _WRAPPED.search(rest) is not None or not rest.isascii() or "\\" in rest
    longer = len(spellings) > 1 or len(spellings[0]) > 1
    return Measure(
        value, factor, base, wrapped or (longer and (spaced or spellings[0] in NAMES or len(spellings[0]) > 3))
    )


def is_value(text: str) -> bool:
    """Return whether the text is a number without letters and units."""
    return _VALUE.fullmatch(text) is not None


@lru_cache(maxsize=4096)
def _read_units(text: str) -> tuple[Fraction, tuple[tuple[str, int], ...], tuple[str, ...]] | None:
    """Read units as (factor, powers of base units, the spellings met)."""
    text = _WRAPPED.sub("", text)
    for pattern, plain in _DRESS:
        text = pattern.sub(plain, text)
    text = _TRAILER.sub("", text.strip(" ."))
    factor, powers, spellings = Fraction(1), Counter[str](), []
    at, sign, inside = 0, 1, False
    while at < len(text):
        if text[at] == "/":
            sign = -sign if inside else -1
            at += 1
            continue
        if text[at] == "(" and sign == -1 and not inside:
            inside, at = True, at + 1
            continue
        if text[at] == ")" and inside:
            inside, sign, at = False, 1, at + 1
            continue
        match = _UNIT.match(text, at)
        if match is None or (unit := _known_unit(match["name"])) is None:
            return None
        exponent = sign * _unit_exponent(match)
        factor *= unit[0] ** exponent
        for name, power in unit[1]:
            powers[name] += power * exponent
        spellings.append(match["name"])
        at = match.end()
        if not inside:
            sign = 1
    if not spellings or inside:
        return None
    return factor, tuple(sorted((n, p) for n, p in powers.items() if p)), tuple(spellings)


def _unit_exponent(match: re.Match[str]) -> int:
    if match["power"]:
        if match["power"].startswith("s"):
            return 2
        return 3
    if match["word"]:
        if match["word"] == "squared":
            return 2
        return 3
    return int(match["exponent"] or 1)


@lru_cache(maxsize=2048)
def _known_unit(name: str) -> tuple[Fraction, tuple[tuple[str, int], ...]] | None:
    name = name.replace(" ", "")
    if name in SYMBOLS:
        return _unit_meaning(SYMBOLS[name])
    prefix, symbol = name[:1], name[1:]
    if prefix in PREFIXES and symbol in PREFIXED and name not in UNPREFIXED:
        factor, base = _unit_meaning(SYMBOLS[symbol])
        return factor * Fraction(PREFIXES[prefix]), base
    lower = name.lower()
    for form in (lower, lower.removesuffix("s"), lower.removesuffix("es")):
        if len(form) > 1 and form in NAMES:
            return _unit_meaning(NAMES[form])
    return None


def _unit_meaning(text: str) -> tuple[Fraction, tuple[tuple[str, int], ...]]:
    """Return factor and powers of a unit: `0.001 m^3` → (1/1000, (("m", 3),))."""
    factor, *units = text.split()
    parts = [unit.partition("^") for unit in units]
    return Fraction(factor), tuple((name, int(power or 1)) for name, _, power in parts)
