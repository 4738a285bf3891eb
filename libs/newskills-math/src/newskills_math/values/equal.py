# SPDX-License-Identifier: Apache-2.0
"""Whether two expressions have the same value: exactly where possible, else by probing with 50 digits.

Expressions with variables are probed at fixed unremarkable points, positive and negative; those made of functions of
whole numbers (floor, factorial, `(-1)^n`) at whole numbers. Two analytic expressions that agree to 30 digits at
several such points are equal for every purpose of grading; one point where they differ proves the contrary.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from fractions import Fraction
from itertools import chain
from typing import Any, NamedTuple

from newskills_math.syntax.nodes import (
    Node,
    TooBig,
    Unreadable,
    has_kind,
    number_node,
    replace_nodes,
    symbols,
    walk_tree,
)
from newskills_math.values import exact as fast
from newskills_math.values import modular
from newskills_math.values.evaluate import DIGITS, NotExact, Numeric, Undefined, exact_value, own_context
from newskills_math.values.sampling import (
    Point,
    break_points,
    near_zero,
    sample_points,
    whole_break_points,
    whole_points,
)
from newskills_math.values.series import has_infinite, is_infinite

_INDICES = frozenset("nkmNKMijlpqrstabcd")
_AGREE = -30
_MANY_DIGITS = 700
_MOST_DIGITS = 40_000
_DIGITS_PER_SIZE = 4
_MOST_VARIABLES = 100
_NOTHING = number_node(0)
_WHOLE_FUNCTIONS = frozenset({"factorial", "binom", "gcd", "lcm"})


class Options(NamedTuple):
    """What decides beside the two texts.

    digits     significant digits within which a printed float stands for an exact value
    symbolic   whether computer algebra decides what everything else leaves open
    """

    digits: int = 15
    symbolic: bool = True


def same_value(gold: Node, pred: Node, options: Options) -> bool | None:
    """Return whether the values are the same: True, False, or None where they cannot be computed."""
    names = symbols(gold) | symbols(pred)
    if not names and not has_kind(gold, "app") and not has_kind(pred, "app"):
        return _same_constant(gold, pred, options)
    if len(names) > _MOST_VARIABLES:
        return None
    if _whole_number_talk(gold) or _whole_number_talk(pred):
        return _same_at(gold, pred, whole_points(names), whole_break_points(gold, pred))
    if has_infinite(gold) or has_infinite(pred):
        return _same_at(gold, pred, near_zero(names), ())
    return _same_at(gold, pred, sample_points(names), break_points(gold, pred))


def _same_constant(gold: Node, pred: Node, options: Options) -> bool | None:
    a, b = _exact_value(gold), _exact_value(pred)
    if a is not None and b is not None:
        return a == b or fast.are_close(a, b, _decimal_places(gold), _decimal_places(pred), options.digits)
    if (
        max(_decimal_places(gold), _decimal_places(pred)) < 0
        and modular.is_rational(gold)
        and modular.is_rational(pred)
    ):
        return modular.same_number(gold, pred)
    verdict = _compare_numerically(gold, pred, options, natural=True)
    if verdict is False and (_bare_log(gold) or _bare_log(pred)):
        return _compare_numerically(gold, pred, options, natural=False)
    return verdict


def _exact_value(node: Node) -> Fraction | None:
    try:
        return exact_value(node, {})
    except (NotExact, Undefined, TooBig):
        return None


def _compare_numerically(gold: Node, pred: Node, options: Options, *, natural: bool) -> bool | None:
    big_gold, a, cut_gold = _comparable_value(gold, natural)
    big_pred, b, cut_pred = _comparable_value(pred, natural)
    if cut_gold or cut_pred:
        if cut_gold and cut_pred and numbers_agree(a, b):
            return True
        return None
    if big_gold or big_pred:
        if a is not None or b is not None:
            return False
        return None
    if a is None or b is None:
        return None
    if numbers_agree(a, b):
        if max(_decimal_places(gold), _decimal_places(pred)) >= 0:
            return True
        return _stays_equal(gold, pred, a, b, natural)
    places = [p for p in (_decimal_places(gold), _decimal_places(pred)) if p >= 0]
    return bool(places) and _rounds_to(a, b, min(places), options.digits)


def _comparable_value(node: Node, natural: bool) -> tuple[bool, Any, bool]:
    """Return (whether it has no value that could be compared: beyond computing or undefined, the value or None, whether
    that is only the beginning of an infinite sum)."""
    numeric = Numeric({}, natural_log=natural)
    try:
        return False, numeric.value(node), numeric.truncated
    except (TooBig, Undefined):
        return True, None, False
    except Unreadable:
        return False, None, False


def _attempt_value(numeric: Numeric, node: Node) -> tuple[bool, Any]:
    """Return (whether it is beyond computing, the value or None)."""
    try:
        return False, numeric.value(node)
    except TooBig:
        return True, None
    except (Undefined, Unreadable):
        return False, None


def numbers_agree(a: Any, b: Any) -> bool:
    """Return whether two 50-digit numbers are the same to 30 digits; a rounding remainder counts as zero."""
    mp = own_context()
    difference = abs(a - b)
    if difference == 0:
        return True
    size = max(abs(a), abs(b))
    smaller = min(abs(a), abs(b))
    if smaller == 0 or difference == size:
        return bool(size < mp.mpf(10) ** -45)
    return bool(difference < size * mp.mpf(10) ** _AGREE)


def _stays_equal(gold: Node, pred: Node, a: Any, b: Any, natural: bool) -> bool | None:
    """Return whether values that agree to 30 digits still do with hundreds: `1+e^{-1000}` is not 1, nor `e^{-1000}` 0.

    The digits grow with the numbers that occur on the way: `\\sqrt{9^{1010}-1}` needs thousands; None where they would
    be too many. What stands beside zero is a rounding remainder if it shrinks with more digits.
    """
    if has_infinite(gold) or has_infinite(pred):
        return True
    digits = _MANY_DIGITS
    while True:
        first, second = (Numeric({}, natural_log=natural, digits=digits) for _ in range(2))
        try:
            more_a, more_b = first.value(gold), second.value(pred)
        except (TooBig, Undefined, Unreadable):
            return True
        wanted = _DIGITS_PER_SIZE * max(first.widest, second.widest)
        if wanted <= digits:
            break
        if wanted > _MOST_DIGITS:
            return None
        digits = wanted
    size = max(abs(more_a), abs(more_b))
    if a != b and abs(a - b) == max(abs(a), abs(b)):
        return bool(size * 2 <= abs(a - b))
    return bool(abs(more_a - more_b) <= size * own_context(digits).mpf(10) ** (DIGITS - digits))


def _rounds_to(a: Any, b: Any, places: int, digits: int) -> bool:
    """Compare a decimal with an irrational value: at least six places and six significant digits, correctly rounded."""
    mp = own_context()
    difference, size = abs(a - b), max(abs(a), abs(b))
    if difference < size * mp.mpf(10) ** (1 - digits):
        return True
    return places >= 6 and bool(
        difference <= mp.mpf("0.51") * mp.mpf(10) ** -places and difference < size * mp.mpf("1e-6")
    )


def _decimal_places(node: Node) -> int:
    """Count the digits after the point where the whole side is one decimal literal, else -1."""
    while node.kind in ("neg", "unit", "percent"):
        node = node.args[0]
    if node.kind == "num":
        return node.places
    if (
        node.kind == "mul"
        and node.args[0].kind == "num"
        and node.args[0].places >= 0
        and node.args[1].kind == "pow"
    ):
        power = _exact_value(node.args[1])
        if power is not None and node.args[1].args[0] == Node("num", value=Fraction(10)):
            return max(node.args[0].places - len(str(power.numerator)) + len(str(power.denominator)), 0)
    return -1


def _bare_log(node: Node) -> bool:
    return any(n.kind == "fn" and n.name == "log" for n in walk_tree(node))


def _whole_number_talk(node: Node) -> bool:
    for n in walk_tree(replace_nodes(node, lambda n: _NOTHING if is_infinite(n) else None)):
        if n.kind == "fn" and n.name in ("floor", "ceil") and symbols(n):
            if symbols(n) <= _INDICES and not _is_whole(n.args[0]):
                return True
            continue
        if n.kind == "fn" and n.name in _WHOLE_FUNCTIONS and symbols(n):
            return True
        if n.kind == "big" and symbols(n):
            return True
        if n.kind == "pow" and n.args[0].kind == "neg" and symbols(n.args[1]) and not symbols(n.args[0]):
            return True
        if (
            n.kind == "fn"
            and n.name in ("sin", "cos", "tan")
            and has_kind(n, "const")
            and symbols(n) <= {"n", "k", "m"}
            and symbols(n)
        ):
            return True
    return False


def _is_whole(node: Node) -> bool:
    """Return whether it is a whole number wherever its variables are: then they cannot be meant to be whole."""
    if node.kind in ("add", "mul", "neg"):
        return all(_is_whole(a) for a in node.args)
    return node.kind == "sym" or (node.kind == "num" and node.value.denominator == 1)


def _same_at(gold: Node, pred: Node, usual: Iterable[Point], far: Iterable[Point]) -> bool | None:
    """Compare two sides at points; at `far` ones only two values that are real all through prove a difference."""
    agreed = 0
    natural = True
    bare_log = _bare_log(gold) or _bare_log(pred)
    for point in usual:
        verdict = _agree_at(gold, pred, point, natural)
        if verdict is False and agreed == 0 and bare_log and natural:
            natural = False
            verdict = _agree_at(gold, pred, point, natural)
        if verdict is False:
            return False
        agreed += verdict is True
    if agreed < 2:
        return None
    return not any(_differ_at(gold, pred, point, natural) for point in far)


def _differ_at(gold: Node, pred: Node, point: Point, natural: bool) -> bool:
    with suppress(NotExact, Undefined, TooBig):
        return exact_value(gold, point) != exact_value(pred, point)
    mp = own_context()
    real = {n: mp.mpf(v.numerator) / v.denominator for n, v in point.items()}
    left, right = Numeric(real, natural_log=natural), Numeric(real, natural_log=natural)
    with suppress(Undefined, TooBig, Unreadable):
        a, b = left.value(gold), right.value(pred)
        unsure = left.truncated or right.truncated or left.branched or right.branched
        return not unsure and not numbers_agree(a, b)
    return False


def _agree_at(gold: Node, pred: Node, point: Point, natural: bool) -> bool | None:
    """Compare two sides at one point. None: one of the two is not defined, or gold is not real, at this point; beyond
    computing is not computable."""
    with suppress(NotExact, Undefined, TooBig):
        return exact_value(gold, point) == exact_value(pred, point)
    mp = own_context()
    real = {n: mp.mpf(v.numerator) / v.denominator for n, v in point.items()}
    left, right = Numeric(real, natural_log=natural), Numeric(real, natural_log=natural)
    (big_gold, a), (big_pred, b) = _attempt_value(left, gold), _attempt_value(right, pred)
    if a is None or b is None:
        if (big_gold and b is not None) or (big_pred and a is not None):
            return False
        return None
    if left.truncated or right.truncated:
        if left.truncated and right.truncated and numbers_agree(a, b):
            return True
        return None
    if numbers_agree(a, b):
        return True
    all_positive = all(v > 0 for v in point.values())
    if not all_positive and abs(mp.im(a)) > abs(a) * mp.mpf("1e-30"):
        return None
    return False


def constant_ratio(first: Node, second: Node) -> Any:
    """Return the constant c with second = c · first everywhere, None if there is none or it cannot be told."""
    names = symbols(first) | symbols(second)
    mp = own_context()
    terms: list[Any] = []
    for point in chain(sample_points(names), break_points(first, second)):
        real = {n: mp.mpf(v.numerator) / v.denominator for n, v in point.items()}
        left, right = Numeric(real), Numeric(real)
        try:
            a, b = left.value(first), right.value(second)
        except (Undefined, Unreadable, TooBig):
            continue
        if left.truncated or right.truncated or (len(terms) > 2 and (left.branched or right.branched)):
            continue
        if a == 0 or b == 0:
            return None
        terms.append(b / a)
        if not numbers_agree(terms[0], terms[-1]):
            return None
    if len(terms) >= 2:
        return terms[0]
    return None


def differ_by_constant(first: Node, second: Node) -> bool:
    """Return whether their difference is the same at all usual points where both have values."""
    mp = own_context()
    differences: list[Any] = []
    for point in sample_points(symbols(first) | symbols(second)):
        real = {n: mp.mpf(v.numerator) / v.denominator for n, v in point.items()}
        left, right = Numeric(real), Numeric(real)
        with suppress(Undefined, Unreadable, TooBig):
            differences.append(right.value(second) - left.value(first))
            if left.truncated or right.truncated or abs(differences[-1] - differences[0]) > mp.mpf(10) ** _AGREE:
                return False
    return len(differences) > 2


def real_value(node: Node) -> Any:
    """Return the value of a constant as a real mpf, or None."""
    numeric = Numeric({})
    try:
        value = numeric.value(node)
    except (Undefined, Unreadable, TooBig):
        return None
    mp = own_context()
    if abs(mp.im(value)) == 0 and not numeric.truncated:
        return mp.re(value)
    return None


def rename_symbol(node: Node, old: str, new: str) -> Node:
    return replace_nodes(node, lambda n: Node("sym", name=new) if n.kind == "sym" and n.name == old else None)
