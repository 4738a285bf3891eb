# SPDX-License-Identifier: Apache-2.0
"""Trees → values: exactly with fractions where that is possible, else with 50 digits.

Every operation is guarded by the size of its operands, so that towers of powers and factorials end as TooBig at
once instead of running.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any
from zlib import crc32

from newskills_math.syntax.nodes import Node, TooBig, Unreadable, has_kind, walk_tree
from newskills_math.values.series import infinite_sum, is_infinite, is_smooth

DIGITS = 50
_MAX_BITS = 60_000
_MAX_TERMS = 2_000
_MAX_STEPS = 30_000
_INFINITE_TERMS = 14
_MOST_ROWS = 24
_SMALL_POWER = 100

Exact = Mapping[str, Fraction]


class NotExact(Exception):
    """The value is no rational number, or not by simple means."""


class Undefined(Exception):
    """Division by zero and the like, at this point."""


def exact_value(node: Node, point: Exact) -> Fraction:
    """Return the rational value of `node` with the variables of `point`. Raises NotExact, Undefined, TooBig."""
    match node.kind:
        case "num":
            return node.value
        case "sym":
            if node.name in point:
                return point[node.name]
        case "based":
            return Fraction(int(node.name, node.places))
        case "fn":
            return _exact_function(node, point)
        case "big":
            return _exact_big(node, point)
        case kind if kind in _OPERATIONS:
            return _OPERATIONS[kind]([exact_value(arg, point) for arg in node.args])
    raise NotExact(node.kind)


def _check_size(value: Fraction) -> Fraction:
    if value.numerator.bit_length() + value.denominator.bit_length() > _MAX_BITS:
        raise NotExact("large")
    return value


def _exact_quotient(parts: list[Fraction]) -> Fraction:
    if len(parts) != 2:
        raise NotExact("ratio")
    if not parts[1]:
        raise Undefined("division by zero")
    return _check_size(parts[0] / parts[1])


def _exact_power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1:
        return _rational_root(base, exponent)
    if base == 0 and exponent <= 0:
        raise Undefined("zero to a power that is not positive")
    if base in (0, 1):
        return base
    if base == -1:
        return Fraction(1 - 2 * (exponent.numerator % 2))
    bits = base.numerator.bit_length() + base.denominator.bit_length()
    if abs(exponent) * bits > _MAX_BITS:
        raise NotExact("large power")
    return base**exponent.numerator


def _rational_root(base: Fraction, exponent: Fraction) -> Fraction:
    """Return `base ** (p/q)` where the q-th root is rational; negative bases have real odd roots."""
    degree = exponent.denominator
    if degree > 64:
        raise NotExact("high root")
    if base < 0 and degree % 2 == 0:
        raise NotExact("complex")
    top, bottom = _integer_root(abs(base.numerator), degree), _integer_root(base.denominator, degree)
    root = Fraction(-top if base < 0 else top, bottom)
    return _exact_power(root, Fraction(exponent.numerator))


def _integer_root(value: int, degree: int) -> int:
    if degree == 2:
        root = math.isqrt(value)
    elif value.bit_length() > 900:
        raise NotExact("large root")
    else:
        root = round(value ** (1 / degree))
    if root**degree != value:
        raise NotExact("irrational root")
    return root


_OPERATIONS: dict[str, Callable[[list[Fraction]], Fraction]] = {
    "add": lambda a: _check_size(a[0] + a[1]),
    "mul": lambda a: _check_size(a[0] * a[1]),
    "neg": lambda a: -a[0],
    "div": _exact_quotient,
    "ratio": _exact_quotient,
    "pow": lambda a: _exact_power(a[0], a[1]),
    "percent": lambda a: a[0] / 100,
    "unit": lambda a: a[0],
}


def _exact_function(node: Node, point: Exact) -> Fraction:
    if node.name == "det":
        rows = [[exact_value(cell, point) for cell in row] for row in square_rows(node)]
        return Fraction(determinant(rows, Fraction(1), _check_size))
    if node.name not in _EXACT:
        raise NotExact(node.name)
    return _check_size(_EXACT[node.name]([exact_value(a, point) for a in node.args]))


def _exact_factorial(args: list[Fraction]) -> Fraction:
    n, step = args[0], int(args[1]) if len(args) > 1 else 1
    if n.denominator != 1 or n < 0:
        raise NotExact("factorial of a fraction")
    if n > 3000:
        raise NotExact("large factorial")
    return Fraction(math.prod(range(int(n), 0, -step)) if n else 1)


def _exact_binomial(args: list[Fraction]) -> Fraction:
    n, k = args
    if n.denominator != 1 or k.denominator != 1 or n < 0 or k < 0 or n > 3000:
        raise NotExact("binomial")
    return Fraction(math.comb(int(n), int(k)))


def _exact_root(args: list[Fraction]) -> Fraction:
    degree = args[1] if len(args) > 1 else Fraction(2)
    if not degree:
        raise Undefined("zeroth root")
    return _exact_power(args[0], 1 / degree)


def _whole_numbers(args: list[Fraction]) -> list[int]:
    if any(a.denominator != 1 for a in args):
        raise NotExact("whole numbers")
    return [int(a) for a in args]


_EXACT: dict[str, Callable[[list[Fraction]], Fraction]] = {
    "factorial": _exact_factorial,
    "binom": _exact_binomial,
    "root": _exact_root,
    "abs": lambda a: abs(a[0]),
    "floor": lambda a: Fraction(math.floor(a[0])),
    "ceil": lambda a: Fraction(math.ceil(a[0])),
    "gcd": lambda a: Fraction(math.gcd(*_whole_numbers(a))),
    "lcm": lambda a: Fraction(math.lcm(*_whole_numbers(a))),
    "max": max,
    "min": min,
    "sgn": lambda a: Fraction((a[0] > 0) - (a[0] < 0)),
}


def square_rows(node: Node) -> list[tuple[Node, ...]]:
    """Return the rows of the square matrix that a determinant is of. Raises Undefined where it is none, TooBig."""
    matrix = node.args[0]
    rows = [row.args for row in matrix.args] if matrix.kind == "matrix" else []
    if not rows or any(len(row) != len(rows) for row in rows):
        raise Undefined("no square matrix")
    if len(rows) > _MOST_ROWS:
        raise TooBig("a determinant")
    return rows


def determinant(rows: list[list[Any]], unit_element: Any, bounded: Callable[[Any], Any]) -> Any:
    """Compute a determinant by Gaussian elimination with the largest pivot; `rows` are used up."""
    result = unit_element
    for k in range(len(rows)):
        best = max(range(k, len(rows)), key=lambda r: abs(rows[r][k]))
        if not rows[best][k]:
            return 0 * unit_element
        if best != k:
            rows[k], rows[best] = rows[best], rows[k]
            result = -result
        result = bounded(result * rows[k][k])
        for row in rows[k + 1 :]:
            factor = row[k] / rows[k][k]
            row[k + 1 :] = [bounded(x - factor * y) for x, y in zip(row[k + 1 :], rows[k][k + 1 :], strict=True)]
    return result


def _exact_big(node: Node, point: Exact) -> Fraction:
    variable, low_node, high_node, body = node.args
    low, high = exact_value(low_node, point), exact_value(high_node, point)
    if low.denominator != 1 or high.denominator != 1:
        raise NotExact("limits")
    if has_kind(body, "big") or (high - low) * sum(1 for _ in walk_tree(body)) > _MAX_STEPS / 10:
        raise NotExact("many terms")
    values = [exact_value(body, {**point, variable.name: Fraction(n)}) for n in range(int(low), int(high) + 1)]
    if node.name == "sum":
        return sum(values, Fraction(0))
    return math.prod(values, start=Fraction(1))


@lru_cache(maxsize=8)
def own_context(digits: int = DIGITS) -> Any:
    """Return our own mpmath context: nobody else's precision matters here, nor ours to them."""
    from mpmath.ctx_mp import MPContext

    mp = MPContext()
    mp.dps = digits
    return mp


class Numeric:
    """Evaluates with 50 digits at one point.

    `natural_log`: what a bare `\\log` means. After use, `truncated` tells that an infinite sum without a known value
    was cut short, so that it may only be found equal to another one; `branched` that a root or logarithm of a
    negative number was taken; `widest` how many decimal digits the largest or smallest number on the way has before
    or behind the point (with more than the usual digits only).
    """

    def __init__(self, point: Mapping[str, Any], *, natural_log: bool = True, digits: int = DIGITS) -> None:
        self._mp = own_context(digits)
        self._point = dict(point)
        self._natural_log = natural_log
        self.truncated = False
        self.branched = False
        self.widest = 0
        self._measures = digits > DIGITS
        self._steps = 0

    def value(self, node: Node) -> Any:
        """Return the value of `node` as an mpf or mpc. Raises Undefined, TooBig, Unreadable (kinds without a value)."""
        self._steps += 1
        if self._steps > _MAX_STEPS:
            raise TooBig("steps")
        method = getattr(self, f"_{node.kind}", None)
        if method is None:
            raise Unreadable(f"no value: {node.kind}")
        try:
            result = method(node)
        except (ZeroDivisionError, ValueError, OverflowError, self._mp.NoConvergence) as error:
            raise Undefined(str(error)) from error
        if self._measures and result and self._is_wide(node) and self._mp.isfinite(result):
            self.widest = max(self.widest, abs(int(self._mp.mag(result))) * 3 // 10)
        return result

    @staticmethod
    def _is_wide(node: Node) -> bool:
        """Return whether it may be huge or tiny by itself. What is left of a difference is tiny only by rounding."""
        if node.kind == "pow":
            return any(n.value > _SMALL_POWER for n in walk_tree(node.args[1]))
        return node.kind in ("num", "big") or (node.kind == "fn" and node.name in ("factorial", "binom", "exp"))

    def _num(self, node: Node) -> Any:
        return self._mp.mpf(node.value.numerator) / node.value.denominator

    def _sym(self, node: Node) -> Any:
        if node.name not in self._point:
            self._point[node.name] = self._opaque(node.name, [])
        return self._point[node.name]

    def _const(self, node: Node) -> Any:
        mp = self._mp
        if node.name in ("pi", "e", "i"):
            return {"pi": +mp.pi, "e": +mp.e, "i": mp.mpc(0, 1)}[node.name]
        if node.name in ("inf", "ℝ", "ℤ", "ℚ", "ℕ", "ℂ", "empty"):
            raise Unreadable(node.name)
        return self._opaque(node.name, [])

    def _add(self, node: Node) -> Any:
        return self.value(node.args[0]) + self.value(node.args[1])

    def _mul(self, node: Node) -> Any:
        return self.value(node.args[0]) * self.value(node.args[1])

    def _div(self, node: Node) -> Any:
        return self.value(node.args[0]) / self.value(node.args[1])

    def _ratio(self, node: Node) -> Any:
        if len(node.args) != 2:
            raise Unreadable("ratio")
        return self._div(node)

    def _neg(self, node: Node) -> Any:
        return -self.value(node.args[0])

    def _percent(self, node: Node) -> Any:
        return self.value(node.args[0]) / 100

    def _deg(self, node: Node) -> Any:
        return self.value(node.args[0]) * self._mp.pi / 180

    def _unit(self, node: Node) -> Any:
        return self.value(node.args[0])

    def _based(self, node: Node) -> Any:
        return self._mp.mpf(int(node.name, node.places))

    def _app(self, node: Node) -> Any:
        """Evaluate a function by its name: Euler's and Riemann's functions have values, other names are nobody's."""
        if node.name in ("zeta", "Gamma") and len(node.args) == 1:
            argument = self.value(node.args[0])
            self._small(argument, 10)
            if self._mp.im(argument) == 0 and self._mp.re(argument) > 0 and argument != 1:
                if node.name == "zeta":
                    return self._mp.zeta(argument)
                return self._mp.gamma(argument)
        return self._opaque(node.name, [self.value(a) for a in node.args])

    def _opaque(self, name: str, args: list[Any]) -> Any:
        """Return a fixed, unremarkable value for an unknown name, the same for equal arguments."""
        seed = crc32("|".join([name, *(self._mp.nstr(a, 25) for a in args)]).encode())
        return self._mp.sqrt(seed + 2) % 1 + self._mp.mpf("0.37")

    def _pow(self, node: Node) -> Any:
        mp = self._mp
        base, exponent = self.value(node.args[0]), self.value(node.args[1])
        if base == 0:
            if mp.re(exponent) <= 0:
                raise Undefined("zero to a power that is not positive")
            return mp.zero
        if mp.im(base) == 0 and mp.re(base) < 0:
            odd = _odd_root(node.args[1])
            if odd is not None:
                size = (-mp.re(base)) ** (mp.mpf(odd.numerator) / odd.denominator)
                if odd.numerator % 2:
                    return -size
                return size
            self.branched = self.branched or not mp.isint(exponent)
        self._small(exponent, 160)
        if abs(mp.mag(base)) > 0 and mp.mag(exponent) + abs(mp.mag(mp.log(abs(base)) or 1)) > 160:
            raise TooBig("power")
        return mp.power(base, exponent)

    def _big(self, node: Node) -> Any:
        variable, low_node, high_node, body = node.args
        low = self._index(low_node)
        before = self._point.get(variable.name)

        def term(n: Any) -> Any:
            self._point[variable.name] = n
            return self.value(body)

        try:
            if not is_infinite(node):
                return self._added(node.name, term, low, self._index(high_node))
            summable = node.name == "sum" and is_smooth(body) and not self.truncated
            limit = self._limit(term, low) if summable else None
            if limit is not None:
                return limit
            self.truncated = True
            return self._added(node.name, term, low, low + _INFINITE_TERMS)
        finally:
            self._point.pop(variable.name, None)
            if before is not None:
                self._point[variable.name] = before

    def _added(self, name: str, term: Callable[[Any], Any], low: int, high: int) -> Any:
        if high - low > _MAX_TERMS:
            raise TooBig("terms")
        total = self._mp.mpf(0 if name == "sum" else 1)
        for n in range(low, high + 1):
            total = total + term(self._mp.mpf(n)) if name == "sum" else total * term(self._mp.mpf(n))
        return total

    def _limit(self, term: Callable[[Any], Any], low: int) -> Any:
        """Return what an infinite sum converges to; None where it is not known."""
        steps, branched = self._steps, self.branched
        try:
            return infinite_sum(self._mp, term, low)
        except (TooBig, Undefined, ValueError, OverflowError, ZeroDivisionError):
            self._steps, self.branched = steps, branched
            return None

    def _index(self, node: Node) -> int:
        value = self.value(node)
        self._small(value, 40)
        if not self._mp.isint(value):
            raise Unreadable("limits of a sum")
        return int(self._mp.re(value))

    def _small(self, value: Any, bits: int) -> None:
        if not self._mp.isfinite(value):
            raise Undefined("not finite")
        if value != 0 and self._mp.mag(value) > bits:
            raise TooBig("magnitude")

    def _fn(self, node: Node) -> Any:
        mp = self._mp
        name = node.name
        if name == "det":
            rows = [[self.value(cell) for cell in row] for row in square_rows(node)]
            return determinant(rows, mp.mpf(1), lambda x: x)
        args = [self.value(a) for a in node.args]
        if name in _PLAIN:
            self._small(args[0], 2000)
            return getattr(mp, _PLAIN[name])(args[0])
        if name in ("ln", "log", "lg", "logb"):
            if args[0] == 0:
                raise Undefined("log of zero")
            self.branched = self.branched or any(mp.im(a) != 0 or mp.re(a) < 0 for a in args)
            if name == "logb":
                return mp.log(args[0]) / mp.log(args[1])
            ten = name == "lg" or (name == "log" and not self._natural_log)
            if ten:
                return mp.log(args[0]) / mp.log(10)
            return mp.log(args[0])
        if name == "cis":
            self._small(args[0], 2000)
            return mp.expj(args[0])
        if name == "exp":
            self._small(args[0], 160)
            return mp.exp(args[0])
        if name == "root":
            return self._nth_root(args)
        if name == "abs":
            return abs(args[0])
        return self._discrete(name, args)

    def _nth_root(self, args: list[Any]) -> Any:
        mp = self._mp
        self.branched = self.branched or mp.im(args[0]) != 0 or mp.re(args[0]) < 0
        if len(args) == 1 or args[1] == 2:
            return mp.sqrt(args[0])
        self._small(args[1], 40)
        if mp.isint(args[1]) and int(mp.re(args[1])) % 2 and mp.im(args[0]) == 0 and mp.re(args[0]) < 0:
            return -((-mp.re(args[0])) ** (1 / args[1]))
        return args[0] ** (1 / args[1])

    def _discrete(self, name: str, args: list[Any]) -> Any:
        mp = self._mp
        for value in args:
            self._small(value, 200)
        if name == "factorial":
            return self._gamma_factorial(args)
        if name == "binom":
            self._small(args[0], 30)
            self._small(args[1], 30)
            return mp.binomial(args[0], args[1])
        if name in ("floor", "ceil", "max", "min", "sgn") and all(mp.im(a) == 0 for a in args):
            real = [mp.re(a) for a in args]
            if name in ("max", "min"):
                if name == "max":
                    return max(real)
                return min(real)
            return {"floor": mp.floor, "ceil": mp.ceil, "sgn": mp.sign}[name](real[0])
        if name in ("gcd", "lcm") and all(mp.isint(a) for a in args):
            whole = [int(mp.re(a)) for a in args]
            return mp.mpf(math.gcd(*whole) if name == "gcd" else math.lcm(*whole))
        raise Unreadable(name)

    def _gamma_factorial(self, args: list[Any]) -> Any:
        mp = self._mp
        self._small(args[0], 20)
        if len(args) == 1 or args[1] == 1:
            return mp.factorial(args[0])
        if not mp.isint(args[0]) or not 0 <= mp.re(args[0]) <= 3000:
            raise Unreadable("multifactorial")
        return mp.mpf(math.prod(range(int(mp.re(args[0])), 0, -int(args[1]))))


_PLAIN = {
    **{
        n: n
        for n in ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "coth", "sech", "csch", "arg")
    },
    **{f"a{n}": f"a{n}" for n in ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh")},
}


def _odd_root(exponent: Node) -> Fraction | None:
    """Return the exponent where it is a fraction with an odd denominator above one: real roots of negative numbers."""
    try:
        value = exact_value(exponent, {})
    except (NotExact, Undefined, TooBig):
        return None
    if value.denominator % 2 and value.denominator > 1:
        return value
    return None
