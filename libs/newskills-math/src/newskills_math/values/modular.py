# SPDX-License-Identifier: Apache-2.0
"""Whole numbers and fractions too large to write out, compared by their remainders modulo 61-bit primes.

Two expressions with different remainders are different; the same remainders modulo three primes are taken as proof
of equality (Schwartz 1980; the chance of an error is below 2^-150). The exponent of an exponent is reduced by Euler's
theorem, so that a tower costs microseconds; there only a difference is proof. What cannot be computed at all, such as
`99999999999!`, counts as an unknown number: then equality needs equal remainders whatever that number is, and
difference a remainder that does not depend on it.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from zlib import crc32

from newskills_math.syntax.nodes import Node, TooBig, walk_tree
from newskills_math.values.evaluate import NotExact, Undefined, exact_value

# p - 1 is a product of primes below 5,000, and so is what Euler's theorem asks for next, all the way down
_PRIMES = (1496052676396951649, 1290723455946039623, 2167071655102650281)
_MAX_FACTORIAL = 200_000
_HARMLESS = frozenset({"num", "add", "mul", "pow", "fn"})


def same_number(gold: Node, pred: Node) -> bool | None:
    """Compare two whole numbers by their remainders; None where either is no expression of rational numbers by + - · /
    powers and factorials, or it stays open."""
    if not (is_rational(gold) and is_rational(pred)):
        return None
    try:
        verdict = _compare_remainders(gold, pred, reduce=True)
        if verdict is None:
            return _compare_remainders(gold, pred, reduce=False)
        return verdict
    except (ValueError, RecursionError):  # a denominator that the prime divides
        return None


def is_rational(node: Node) -> bool:
    if node.kind == "fn":
        return node.name in ("factorial", "binom") and all(is_rational(a) for a in node.args)
    if node.kind in ("add", "mul", "neg", "div", "pow"):
        return all(is_rational(a) for a in node.args)
    return node.kind == "num"


def is_beyond_computing(node: Node) -> bool:
    """Return whether some power, factorial or binomial in it is too large to hand to a program that would multiply it
    out."""
    for n in walk_tree(node):
        if n.kind == "pow" or (n.kind == "fn" and n.name in ("factorial", "binom")):
            size = n.args[1] if n.kind == "pow" else n.args[0]
            if (value := _exact_value(size)) is None:
                if is_rational(size):
                    return True
            elif abs(value) > 5_000:
                return True
    return False


def _compare_remainders(gold: Node, pred: Node, *, reduce: bool) -> bool | None:
    equal, reduced = True, False
    for prime in _PRIMES:
        first, second = (_Remainders(seed, reduce) for seed in (1, 2))
        a, b = ((r.of(gold, prime) - r.of(pred, prime)) % prime for r in (first, second))
        reduced = reduced or first.reduced
        if a == b != 0:
            return False
        equal = equal and a == b == 0
    if equal and not reduced:
        return True
    return None


class _Remainders:
    """`reduced` tells afterwards that Euler's theorem was used; without `reduce` such a power is an unknown number."""

    def __init__(self, seed: int, reduce: bool) -> None:
        self._seed = seed
        self._reduce = reduce
        self.reduced = False

    def of(self, node: Node, modulus: int) -> int:
        match node.kind:
            case "num":
                value = node.value
                inverse = pow(value.denominator, -1, modulus) if value.denominator > 1 else 1
                return value.numerator * inverse % modulus
            case "neg":
                return -self.of(node.args[0], modulus) % modulus
            case "fn":
                return self._function(node, modulus)
            case "pow":
                return self._power(node, modulus)
        a, b = (self.of(arg, modulus) for arg in node.args)
        if node.kind == "add":
            return (a + b) % modulus
        multiplier = b if node.kind == "mul" else pow(b, -1, modulus)
        return a * multiplier % modulus

    def _power(self, node: Node, modulus: int) -> int:
        base, exponent = node.args
        if (value := _exact_value(exponent)) is not None:
            if value.denominator != 1:
                raise ValueError("a root")
            return pow(self.of(base, modulus), value.numerator, modulus)
        if not self._reduce or not _grows_positive(exponent):
            return self._unknown(node, modulus)
        self.reduced = True
        period = _euler_totient(modulus)
        return pow(self.of(base, modulus), self.of(exponent, period) + period, modulus)

    def _function(self, node: Node, modulus: int) -> int:
        args = [_exact_value(a) for a in node.args]
        if any(a is not None and (a.denominator != 1 or a < 0) for a in args):
            raise ValueError("a factorial of no whole number")
        if any(a is None or a > _MAX_FACTORIAL for a in args):
            return self._unknown(node, modulus)
        n, k = (int(a) for a in args if a is not None)
        if node.name == "factorial":
            return _falling_product(n, 1, k, modulus)
        k = min(k, n - k)
        if k < 0:
            return 0
        return (
            _falling_product(n, n - k + 1, 1, modulus)
            * pow(_falling_product(k, 1, 1, modulus), -1, modulus)
            % modulus
        )

    def _unknown(self, node: Node, modulus: int) -> int:
        return crc32(f"{self._seed}{node}".encode()) * 1_000_003 % modulus


@lru_cache(maxsize=256)
def _falling_product(high: int, low: int, step: int, modulus: int) -> int:
    """Return the product high · (high - step) · … down to `low`, modulo `modulus`."""
    product = 1
    for factor in range(high, low - 1, -step):
        product = product * factor % modulus
    return product


@lru_cache(maxsize=256)
def _euler_totient(n: int) -> int:
    if n in _PRIMES:
        return n - 1
    result, factor = n, 2
    while n > 1:
        if n % factor == 0:
            result -= result // factor
            while n % factor == 0:
                n //= factor
        factor += 1
    return result


def _exact_value(node: Node) -> Fraction | None:
    try:
        return exact_value(node, {})
    except (NotExact, Undefined, TooBig):
        return None


def _grows_positive(exponent: Node) -> bool:
    """Return whether an exponent that was too large to compute is certainly a large positive whole number."""
    return all(
        n.kind in _HARMLESS
        and (n.kind != "fn" or n.name == "factorial")
        and (n.kind != "num" or (n.value.denominator == 1 and n.value >= 1))
        for n in walk_tree(exponent)
    )
