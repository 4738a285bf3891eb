# SPDX-License-Identifier: Apache-2.0
"""Values with units, percent or degree signs, and the readings under which two of them may be the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from typing import NamedTuple

from newskills_math.syntax.multiples import COLLECTIVES, COUNTED_TOGETHER, JOINED_MULTIPLIERS
from newskills_math.syntax.nodes import Node, number_node
from newskills_math.syntax.tables import FILLERS, LAST_WORDS, NUMBER_WORDS, UNITS, VALUE_WORDS

_POWER = re.compile(r"(square|sq|cubic|cu)?\s*([a-z$¢°/]+?)\s*(?:\^(\d))?$")
_LEFT_OVER = re.compile(r"(?<=[a-z])(?<!\bthe)(?<!\bto) left\b")
_OF_DEGREES = frozenset({"angle", "celsius"})
_EXPONENT_WORDS = {"square": 2, "sq": 2, "cubic": 3, "cu": 3}


class Quantity(NamedTuple):
    """`value` times the unit; `dimension` '' = no unit, '?' = a word that is no known unit; `mark`: percent, deg."""

    value: Node
    dimension: str = ""
    factor: Fraction = Fraction(1)
    mark: str = ""


def read_quantity(node: Node) -> Quantity:
    match node.kind:
        case "neg":
            inner = read_quantity(node.args[0])
            return inner._replace(value=Node("neg", (inner.value,)))
        case "unit":
            inner = read_quantity(node.args[0])
            dimension, factor = read_unit(node.name)
            return Quantity(inner.value, dimension, factor, inner.mark)
        case "percent" | "deg":
            return Quantity(node.args[0], mark=node.kind)
        case "add":
            parts = [read_quantity(a) for a in node.args]
            dimensions = {p.dimension for p in parts}
            if len(dimensions) == 1 and dimensions & {d for d, _ in UNITS.values()}:
                scaled = [Node("mul", (number_node(p.factor), p.value)) for p in parts]
                return Quantity(Node("add", tuple(scaled)), parts[0].dimension)
    return Quantity(node)


def read_compound(node: Node) -> Node | None:
    """Read `2 hours and 30 minutes` as one quantity: units of one kind, each smaller than the one before; else None."""
    if any(a.kind != "unit" for a in node.args) or node.name == "or":
        return None
    units = [read_unit(a.name) for a in node.args]
    falling = all(a[1] > b[1] for a, b in pairwise(units))
    if len({dimension for dimension, _ in units}) > 1 or units[0][0].startswith("?") or not falling:
        return None
    return reduce(lambda a, b: Node("add", (a, b)), node.args)


def is_sum(node: Node) -> bool:
    """Return whether the terms of a sum are all of one known kind (`5 ft + 3 in`), so that they add up."""
    return read_quantity(node).dimension != ""


def is_counted(node: Node) -> bool:
    """Return whether it is a number with words behind it, which our own reader has understood."""
    return node.kind == "unit" and node.args[0].kind == "num"


def read_pair(gold: Node, pred: Node) -> tuple[Quantity, Quantity]:
    """Read both as quantities; a letter such as the m of `5 m` is a unit where the other side has one of that kind."""
    multiplied = _apply_multiplier(pred) if gold.kind == "num" else pred
    g, p = read_quantity(gold), read_quantity(multiplied)
    if g.dimension and not p.dimension:
        p = _letter_as_unit(p, g)
    elif p.dimension and not g.dimension:
        g = _letter_as_unit(g, p)
    return g, p


def _apply_multiplier(node: Node) -> Node:
    """Read `1.5M` beside a number: no product with a variable."""
    if node.kind == "mul" and node.args[0].kind == "num" and node.args[1].kind == "sym":
        factor = JOINED_MULTIPLIERS.get(node.args[1].name)
        if factor is None:
            return node
        return Node("mul", (node.args[0], number_node(factor)))
    return node


def _letter_as_unit(loose: Quantity, other: Quantity) -> Quantity:
    node = loose.value
    if node.kind == "mul" and node.args[1].kind == "sym" and node.args[1].name.lower() in UNITS:
        dimension, factor = read_unit(node.args[1].name)
        if dimension == other.dimension:
            return Quantity(node.args[0], dimension, factor)
    return loose


def read_unit(text: str) -> tuple[str, Fraction]:
    """Return (dimension, factor to its base) of a unit's name; for any other words they themselves behind a `?`."""
    name = text.lower().strip(" .").replace(" per ", "/")
    for candidate in (name.replace(" ", ""), name):
        if (unit_and_factor := _look_up_unit(candidate)) is not None:
            return unit_and_factor[0], Fraction(unit_and_factor[1])
    if (match := _POWER.fullmatch(name)) is not None and (unit_and_factor := _look_up_unit(match[2])) is not None:
        exponent = int(match[3] or _EXPONENT_WORDS.get(match[1] or "", 1))
        if unit_and_factor[0] == "length" or exponent == 1:
            if exponent > 1:
                power = f"{unit_and_factor[0]}^{exponent}"
            else:
                power = unit_and_factor[0]
            return power, Fraction(unit_and_factor[1]) ** exponent
    return "?" + name, Fraction(1)


def _look_up_unit(name: str) -> tuple[str, str] | None:
    for form in (name, name.removesuffix("s"), name.removesuffix("es")):
        if form in UNITS:
            return UNITS[form]
    return None


def are_comparable(gold: Quantity, pred: Quantity) -> bool:
    """Return whether two units fit: known ones must measure the same thing; other words must be the same, or say
    nothing about the value.

    A right answer may be of five pairs where the reply only says five, not the other way round.
    """
    g, p = gold.dimension, pred.dimension
    if not g.startswith("?") and not p.startswith("?"):
        may_stand = all(_mark_fits(mark, unit) for mark in (gold.mark, pred.mark) for unit in (g, p))
        return may_stand and (not g or not p or g == p)
    if (not g or not p) and "sym" in (gold.value.kind, pred.value.kind):
        return False
    mine, other = _content_words(g), _content_words(p)
    if mine and other and not (mine <= other or other <= mine):
        return False
    if any(word in VALUE_WORDS or _is_another_number(word) for word in mine ^ other):
        return False
    return not (other - mine) & COLLECTIVES or bool(other & COUNTED_TOGETHER)


def _mark_fits(mark: str, dimension: str) -> bool:
    """Return whether what is marked as a percentage or as degrees may have that unit, or be what has it."""
    return not mark or not dimension or (mark == "deg" and dimension in _OF_DEGREES)


def _is_another_number(word: str) -> bool:
    """Return whether a word speaks of another number: `5 for each of the 3 days` is not 5."""
    return word[:1].isdigit() or NUMBER_WORDS.get(word, 1) != 1


def _content_words(words: str) -> frozenset[str]:
    """Return the words that say something, in the singular; where a noun follows, `even` and its like do not."""
    plain = _LEFT_OVER.sub("", words.lstrip("?")).replace("/", " ").replace(".", "")
    words_of_text = [w.strip("(),:;") for w in plain.split()]
    kept = [
        w
        for i, w in enumerate(words_of_text)
        if w not in FILLERS and not (w in LAST_WORDS and i + 1 < len(words_of_text))
    ]
    return frozenset(w if len(w) <= 3 or w in VALUE_WORDS else w.removesuffix("s") for w in kept if w)


def value_readings(gold: Quantity, pred: Quantity) -> Iterator[tuple[Node, Node]]:
    """Yield pairs of plain values of which one must agree.

    A percentage is its number or a hundredth of it, an angle in degrees its number or its value in radians, a
    quantity its number in its own unit, or in the other's.
    """
    if gold.dimension == pred.dimension != "" and gold.factor != pred.factor:
        yield (
            Node("mul", (number_node(gold.factor), gold.value)),
            Node("mul", (number_node(pred.factor), pred.value)),
        )
        return
    if {(gold.dimension, gold.mark), (pred.dimension, pred.mark)} == {("angle", ""), ("", "deg")}:
        yield _in_radians(gold), _in_radians(pred)
        return
    if gold.mark and pred.mark and gold.mark != pred.mark:
        return
    yield gold.value, pred.value
    if gold.mark == pred.mark:
        return
    for marked, swapped in ((gold, False), (pred, True)):
        if marked.mark:
            other = pred.value if not swapped else gold.value
            value = Node(marked.mark, (marked.value,))
            if swapped:
                yield (other, value)
            else:
                yield (value, other)


def _in_radians(angle: Quantity) -> Node:
    if angle.mark == "deg":
        return Node("deg", (angle.value,))
    return angle.value
