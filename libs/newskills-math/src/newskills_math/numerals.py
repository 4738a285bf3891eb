# SPDX-License-Identifier: Apache-2.0
"""Numbers in words (`twenty-one`, `one hundred and five`, `three and a half`), and those in a stated base."""

from __future__ import annotations

import re

from newskills_math.syntax.nodes import Node
from newskills_math.syntax.tables import NUMBER_WORDS

_WORDS = re.compile(r"[A-Za-z]+(?:[- ][A-Za-z]+){0,9}")
_PARTS = {
    word: size
    for size, words in {
        2: "half halves",
        3: "third thirds",
        4: "quarter quarters fourth fourths",
        5: "fifth fifths",
        6: "sixth sixths",
        7: "seventh sevenths",
        8: "eighth eighths",
        9: "ninth ninths",
        10: "tenth tenths",
        100: "hundredth hundredths",
    }.items()
    for word in words.split()
}
_LONGEST = 60
_SCALES = {"thousand": 1_000, "million": 1_000_000}


def spelled_number(text: str) -> str | None:
    """Return the number that the whole text spells, in digits; None for any other text."""
    if len(text) > _LONGEST or _WORDS.fullmatch(text) is None:
        return None
    words = text.lower().replace("-", " ").split()
    if words[-1] in _PARTS:
        return _spelled_fraction(words)
    value = _spelled_cardinal(words)
    if value is not None:
        return str(value)
    return None


def _spelled_fraction(words: list[str]) -> str | None:
    size = _PARTS[words[-1]]
    if words == ["half"]:
        return "\\frac{1}{2}"
    whole, parts = 0, words[:-1]
    if "and" in parts:
        at = parts.index("and")
        whole, parts = _spelled_cardinal(parts[:at]) or 0, parts[at + 1 :]
        if not whole:
            return None
    count = 1 if parts in (["a"], ["an"]) else _spelled_cardinal(parts)
    if count:
        return f"\\frac{{{whole * size + count}}}{{{size}}}"
    return None


def _spelled_cardinal(words: list[str]) -> int | None:
    """Add up thousands and millions, each with what stands before it."""
    total, group = 0, list[str]()
    largest = 1_000_000_000
    for word in words:
        if word not in _SCALES:
            group.append(word)
            continue
        count = _below_thousand(group)
        if count is None or _SCALES[word] >= largest:
            return None
        largest = _SCALES[word]
        total, group = total + count * largest, []
    if not group:
        return total or None
    words_after = group[1:] if total and group[0] == "and" else group
    rest = _below_thousand(words_after)
    if rest is None:
        return None
    return total + rest


def _below_thousand(words: list[str]) -> int | None:
    if words[:1] == ["a"] and words[1:2] == ["hundred"]:
        words = ["one", *words[1:]]
    if "hundred" in words[:2]:
        at = words.index("hundred")
        count = NUMBER_WORDS.get(words[0], 0) if at else 1
        rest = words[at + 2 :] if words[at + 1 : at + 2] == ["and"] else words[at + 1 :]
        below = _below_hundred(rest) if rest else 0
        if 0 < count < 10 and below is not None:
            return count * 100 + below
        return None
    return _below_hundred(words)


def _below_hundred(words: list[str]) -> int | None:
    values = [NUMBER_WORDS.get(word, 100) for word in words]
    if len(values) == 1 and values[0] < 100:
        return values[0]
    if len(values) == 2 and 20 <= values[0] < 100 and 0 < values[1] < 10:
        return sum(values)
    return None


def same_numeral(gold: Node, pred: Node) -> bool:
    """Return whether digits and base agree of numbers in a stated base; one that gold does not state may be stated."""
    if gold.kind == pred.kind:
        return gold.places == pred.places and gold.name.lstrip("0").upper() == pred.name.lstrip("0").upper()
    if gold.kind == "num" and gold.places < 0 and gold.value.denominator == 1 and len(pred.name) > 1:
        return str(gold.value.numerator) == pred.name.lstrip("0")
    return False
