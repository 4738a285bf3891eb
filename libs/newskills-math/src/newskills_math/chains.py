# SPDX-License-Identifier: Apache-2.0
"""What a chain of `=` and `≈` says: one value, and what has it.

`x = \\frac{1}{3} = 0.333` says that x is 1/3. The value is the last side, before `≈` the exact one; a decimal that only
rounds a side before it is never the value. No other side is compared with a right answer, or a chain of all numbers
would be right everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple

from newskills_math import quantities
from newskills_math.syntax.nodes import Node, Unreadable, has_kind, symbols, walk_tree
from newskills_math.values.equal import real_value
from newskills_math.values.evaluate import own_context

Same = Callable[[Node, Node], bool | None]
_RELATIONS = frozenset("=≈")
_MOST_SIDES = 40
_ROUGHLY = 0.01
"""How far sides may be apart whose decimals are part of a calculation."""
_FEW_DIGITS = 100
"""A decimal shows three significant digits from here on, without its point."""


_EQUAL = re.compile(r"=|≈|\\(?:approx|simeq|doteq)(?![a-zA-Z])")
_OTHER_RELATION = re.compile(
    r"[<>!:=]=|=[<>]|[<>≤≥≠,;]|\\(?:neq?|leq?|geq?|lt|gt|equiv|sim|cong|in|subset|to|text)(?![a-zA-Z])"
)
_SIGN = re.compile(rf"[(){{}}\[\]]|{_EQUAL.pattern}")
_NAME = re.compile(r"(?:\\[a-zA-Z]+|(?<![a-zA-Z])[a-zA-Z](?![a-zA-Z])|[A-Z]+|[\s{}()|'^*_])+")
_LONGEST_NAME = 40


class Chain(NamedTuple):
    """`names` (sides with variables, each once) have `value`; `shown` is the last decimal that rounds it, if any.

    `sides` are all that were written, `constants` those without variables.
    """

    names: tuple[Node, ...]
    value: Node
    shown: Node | None
    constants: tuple[Node, ...]
    sides: tuple[Node, ...]


def read_chain(node: Node) -> Chain | None:
    """Return the chain that a relation is; None for anything else, and where no side is a value."""
    if node.kind != "rel" or not set(node.name) <= _RELATIONS:
        return None
    sides = tuple(side for side in node.args if not _is_dots(side))
    constants = tuple(side for side in sides if is_constant(side))
    names = tuple(dict.fromkeys(side for side in sides if not is_constant(side)))
    if not constants:
        return None
    value, shown = _chain_value(node)
    return Chain(names, value, shown, constants, sides)


def by_sides(text: str, read: Callable[[str], Node]) -> Node | None:
    """Return the chain that a text is (`\\max = 3+2 = 5`) where `read` does not know the whole, a side at a time.

    A side that it does not know either is a name, if it has neither digits nor words; else there is no chain.
    """
    if _OTHER_RELATION.search(text) is not None:
        return None
    texts, relations = _split_sides(text)
    sides = [_read_side(side, read) for side in texts]
    readable = [side for side in sides if side is not None]
    if relations and len(readable) == len(sides):
        return Node("rel", tuple(readable), name=relations)
    return None


def known_sides(text: str, read: Callable[[str], Node]) -> Node | None:
    """Return the chain of those sides only that `read` knows; None where they are fewer than two."""
    sides = [side for side in (_read_side(side, read) for side in _split_sides(text)[0]) if side is not None]
    if len(sides) > 1:
        return Node("rel", tuple(sides), name="=" * (len(sides) - 1))
    return None


def _split_sides(text: str) -> tuple[list[str], str]:
    """Return the sides of a text and the relations between them."""
    texts, relations, depth, start = [], "", 0, 0
    for mark in _SIGN.finditer(text):
        if mark[0] in "({[":
            depth += 1
        elif mark[0] in ")}]":
            depth -= 1
        elif depth == 0:
            texts.append(text[start : mark.start()].strip())
            relations += "=" if mark[0] == "=" else "≈"
            start = mark.end()
    return [*texts, text[start:].strip()], relations


def _read_side(text: str, read: Callable[[str], Node]) -> Node | None:
    try:
        return read(text)
    except Unreadable:
        is_name = len(text) <= _LONGEST_NAME and _NAME.fullmatch(text) is not None
        if is_name:
            return Node("sym", name="".join(text.split()))
        return None


def is_constant(side: Node) -> bool:
    """Return whether it has a value of its own: neither variables nor unknown functions."""
    return not symbols(side) and not has_kind(side, "app")


def _chain_value(node: Node) -> tuple[Node, Node | None]:
    """Return (the value, the last decimal that rounds it) of a relation with at least one constant side."""
    exact: list[Node] = []
    about: list[Node] = []
    for relation, side in zip("=" + node.name, node.args, strict=True):
        if is_constant(side) and not _is_dots(side):
            if about or (exact and relation == "≈"):
                about.append(side)
            else:
                exact.append(side)
    value, *others = exact
    shown: Node | None = None
    for side in others:
        if value != side and is_rounding_of(value, side):
            shown = side
        else:
            value = side
    if about and is_rounding_of(value, about[-1], whole=True):
        shown = about[-1]
    return value, shown


def _is_dots(side: Node) -> bool:
    return side.kind == "const" and side.name == "dots"


def shows_enough(side: Node) -> bool:
    """Return whether a decimal has three significant digits: enough to stand for the value beside which it was
    written."""
    digits = _read_literal(side)
    return digits is not None and digits.has_point and abs(digits.value) >= _FEW_DIGITS * digits.unit


def contradicts_itself(node: Node, same: Same) -> bool:
    """Return whether the sides of a chain in it, at the top or as a member of a list, differ by more than rounding."""
    if node.kind == "rel":
        return _is_inconsistent(node, same)
    return node.kind in ("list", "set", "tuple") and any(contradicts_itself(member, same) for member in node.args)


def _is_inconsistent(node: Node, same: Same) -> bool:
    if not set(node.name) <= _RELATIONS:
        return False
    if len(node.args) > _MOST_SIDES:
        return True
    if len(node.args) == 2 and not all(map(is_constant, node.args)):
        return False
    if (stated := read_chain(node)) is not None:
        relations = dict(zip(node.args[1:], node.name, strict=True))
        return any(
            not _sides_agree(stated.value, side, same, whole=relations.get(side) == "≈")
            for side in stated.constants
        )
    last_of: dict[frozenset[str], Node] = {}
    for side in node.args[1:]:
        if has_kind(side, "app"):
            continue
        variables = frozenset(symbols(side))
        if variables in last_of and same(last_of[variables], side) is False:
            return True
        last_of[variables] = side
    return False


def _sides_agree(value: Node, side: Node, same: Same, *, whole: bool) -> bool:
    """Return whether a side says what the value does, as far as it shows; what cannot be told counts as agreement."""
    if value == side or is_rounding_of(value, side, whole=whole) or is_rounding_of(side, value, whole=whole):
        return True
    if same(value, side) is not False:
        return True
    worked_out = [node for node in (value, side) if _read_literal(node) is None]
    has_decimals = any(n.kind == "num" and n.places > 0 for node in worked_out for n in walk_tree(node))
    if not has_decimals and not (whole and len(worked_out) == 2):
        return False
    return any(abs(a - b) <= _ROUGHLY * max(abs(a), abs(b)) for a, b in _real_pairs(value, side))


def is_rounding_of(exact: Node, shown: Node, *, whole: bool = False) -> bool:
    """Return whether `shown` is a decimal, or with `whole` an integer, that rounds or cuts off the value of `exact`."""
    digits = _read_literal(shown)
    if digits is None or not (digits.has_point or whole):
        return False
    for value, near in _real_pairs(exact, shown):
        size = abs(near) if near else own_context().mpf(1)
        unit = size * digits.unit.numerator / digits.unit.denominator
        if digits.value:
            unit = unit * digits.value.denominator / abs(digits.value.numerator)
        off = abs(value) - abs(near)
        is_cut_off = value * near > 0 and 0 <= off < unit * own_context().mpf("0.9999999")
        if abs(value - near) <= unit * own_context().mpf("0.5000001") or is_cut_off:
            return True
    return False


def _real_pairs(first: Node, second: Node) -> Iterator[tuple[Any, Any]]:
    """Yield the real values of both, under each reading of their units, percent and degree signs."""
    a, b = quantities.read_pair(first, second)
    if not quantities.are_comparable(a, b):
        return
    for left, right in quantities.value_readings(a, b):
        values = real_value(left), real_value(right)
        if None not in values:
            yield values


class _Literal(NamedTuple):
    """A number as it is written, and what its last digit counts."""

    value: Fraction
    unit: Fraction
    has_point: bool


def _read_literal(node: Node) -> _Literal | None:
    """Return the literal of a number with a sign, a unit or a power of ten; None for a calculation."""
    while node.kind in ("neg", "unit", "percent", "deg"):
        node = node.args[0]
    if node.kind == "num" and (node.places >= 0 or node.value.denominator == 1):
        return _Literal(node.value, _last_digit(node), node.places > 0)
    if node.kind == "mul" and node.args[0].kind == "num" and node.args[1].kind == "pow":
        power = node.args[1]
        if (
            power.args[0] == Node("num", value=Fraction(10))
            and (size := real_value(power)) is not None
            and size > 0
        ):
            scale = Fraction(str(size)) if size >= 1 else 1 / Fraction(str(1 / size))
            mantissa = node.args[0]
            return _Literal(mantissa.value * scale, _last_digit(mantissa) * scale, mantissa.places > 0)
    return None


def _last_digit(number: Node) -> Fraction:
    """Return the value of the last digit, `0.01` for 3.14; of an integer that ends in zeros the last digit that is
    none.
    """
    if number.places >= 0:
        return Fraction(1, 10**number.places)
    digits = str(abs(number.value.numerator))
    zeros = len(digits) - len(digits.rstrip("0")) if number.value else 0
    return Fraction(10**zeros)
