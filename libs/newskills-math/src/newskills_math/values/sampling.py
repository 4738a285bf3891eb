# SPDX-License-Identifier: Apache-2.0
"""Where expressions with variables are compared: fixed unremarkable points, and both sides of every break point.

`|x+50|` is `x+50` wherever x is a number of everyday size; so what functions with a break are taken of is read from
the trees, and where it is a polynomial of degree one or two, points are put between and beyond its zeros.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from itertools import combinations, pairwise
from zlib import crc32

from newskills_math.syntax.nodes import Node, TooBig, Unreadable, symbols, walk_tree
from newskills_math.values.evaluate import NotExact, Undefined, exact_value

Point = dict[str, Fraction]
_BROKEN = frozenset({"abs", "sgn", "floor", "ceil", "root", "asin", "acos", "atan", "acot", "asec", "acsc"})
_MOST_BREAKS = 12
_MOST_VARIABLES = 3
_FAR = (Fraction(29, 3), Fraction(211, 3), Fraction(1013, 7), Fraction(10007, 3), Fraction(3_000_001, 3))
_FAR_WHOLE = (37, 101, 1003, 5000, 10_007)


def sample_points(names: frozenset[str]) -> Iterator[Point]:
    """Yield three positive points, then one negative point per variable and one all negative."""
    base = _base_point(names)
    yield base
    yield {n: v * Fraction(7, 4) + Fraction(1, 9) for n, v in base.items()}
    ordered = sorted(names)
    for name in ordered[:_MOST_VARIABLES]:
        yield {n: -v if n == name else v for n, v in base.items()}
    yield {n: -v * Fraction(5, 3) for n, v in base.items()}
    yield {n: v / 5 + Fraction(1, 37) for n, v in base.items()}


def near_zero(names: frozenset[str]) -> Iterator[Point]:
    """Yield points where power series converge; and one usual point, for those that do not near zero."""
    base = _base_point(names)
    for share in (Fraction(1, 7), Fraction(-1, 9), Fraction(1, 13), Fraction(1)):
        yield {n: v * share for n, v in base.items()}


def whole_points(names: frozenset[str]) -> Iterator[Point]:
    ordered = sorted(names)
    for step in range(8):
        yield {n: Fraction(2 + step + (_name_seed(n) % 3 + 2 * i if i else 0) % 7) for i, n in enumerate(ordered)}


def break_points(gold: Node, pred: Node) -> Iterator[Point]:
    """Yield points far out and around the breaks of both; none where neither has a function with breaks."""
    names = symbols(gold) | symbols(pred)
    arguments = list(dict.fromkeys(u for tree in (gold, pred) for u in _break_arguments(tree)))[:_MOST_BREAKS]
    if not arguments:
        return
    base = _base_point(names)
    for name in sorted(names)[:_MOST_VARIABLES]:
        for value in _values_between(sorted(_argument_zeros(arguments, name, base))):
            yield {**base, name: value}
        for value in _FAR:
            yield {**base, name: value}
            yield {**base, name: -value}
    yield {n: 1000 * v for n, v in base.items()}
    yield {n: -1000 * v for n, v in base.items()}


def whole_break_points(gold: Node, pred: Node) -> Iterator[Point]:
    """Yield `break_points` at whole numbers from zero."""
    names = symbols(gold) | symbols(pred)
    arguments = list(dict.fromkeys(u for tree in (gold, pred) for u in _break_arguments(tree)))[:_MOST_BREAKS]
    if not arguments:
        return
    base = next(whole_points(names))
    for name in sorted(names)[:_MOST_VARIABLES]:
        for value in _values_between(sorted(_argument_zeros(arguments, name, base))):
            if value >= 0:
                yield {**base, name: Fraction(round(value))}
        for far in _FAR_WHOLE:
            yield {**base, name: Fraction(far)}


def _break_arguments(tree: Node) -> Iterator[Node]:
    """Yield what functions with a break are taken of, where it has variables."""
    for node in walk_tree(tree):
        if node.kind == "fn" and node.name in ("max", "min"):
            yield from (Node("add", (a, Node("neg", (b,)))) for a, b in combinations(node.args[:4], 2))
        elif _is_broken(node) and symbols(node):
            argument = node.args[0]
            if argument.kind == "pow":
                yield argument.args[0]
            else:
                yield argument


def _is_broken(node: Node) -> bool:
    if node.kind == "fn":
        return node.name in _BROKEN
    return node.kind == "pow" and node.args[1].kind == "div"


def _argument_zeros(arguments: list[Node], name: str, base: Point) -> set[Fraction]:
    """Find where they vanish as functions of one variable, as far as they are polynomials of degree one or two in
    it."""
    zeros: set[Fraction] = set()
    for argument in arguments:
        if name in symbols(argument):
            with suppress(NotExact, Undefined, TooBig, Unreadable, OverflowError):
                zeros |= _of_polynomial([exact_value(argument, {**base, name: Fraction(i)}) for i in range(4)])
    return zeros


def _of_polynomial(values: list[Fraction]) -> set[Fraction]:
    """Return the zeros of the polynomial of degree one or two with these values at 0, 1, 2 and 3, and its vertex."""
    first = [b - a for a, b in pairwise(values)]
    second = [b - a for a, b in pairwise(first)]
    if second[0] != second[1]:
        return set()
    c, a = values[0], second[0] / 2
    b = first[0] - a
    if not a:
        if b:
            return {-c / b}
        return set()
    vertex, spread = -b / (2 * a), b * b - 4 * a * c
    if spread <= 0:
        return {vertex}
    root = Fraction(math.sqrt(spread)) / (2 * a)
    return {vertex, vertex - root, vertex + root}


def _values_between(zeros: list[Fraction]) -> list[Fraction]:
    """Return one value in each of the intervals that the zeros part."""
    if not zeros:
        return []
    low, high = zeros[0], zeros[-1]
    inner = [(a + b) / 2 for a, b in pairwise(zeros)]
    return [low - abs(low) / 3 - 1, *inner, high + abs(high) / 3 + 1]


def _base_point(names: frozenset[str]) -> Point:
    return {n: Fraction(1009 + _name_seed(n) % 4001, 1000 + _name_seed(n + "'") % 1601) for n in names}


def _name_seed(name: str) -> int:
    return crc32(name.encode())
