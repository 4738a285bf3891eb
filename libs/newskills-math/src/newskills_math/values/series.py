# SPDX-License-Identifier: Apache-2.0
"""Values of infinite sums: extrapolated from their first terms, where those tell that the sum converges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from newskills_math.syntax.nodes import Node, walk_tree

_NEAR, _FAR = 1_000, 100_000
_POWER = 1.02
"""Positive terms that fall like a power of n have a sum if the power is above one."""
_MOST_TERMS, _BITS = 120, 360
_CLOSE = -40
"""Power of ten within which an extrapolation has to settle."""
_APART, _SLACK = 7, 10_000
"""A sum is also extrapolated from a later term: some settle at a wrong value, but not twice at the same."""
_UNSMOOTH = frozenset({"floor", "ceil", "gcd", "lcm", "max", "min", "sgn", "abs"})


def is_infinite(node: Node) -> bool:
    """Return whether it is a sum or product up to infinity."""
    return node.kind == "big" and node.args[2].kind == "const" and node.args[2].name == "inf"


def has_infinite(node: Node) -> bool:
    return any(map(is_infinite, walk_tree(node)))


def is_smooth(term: Node) -> bool:
    """Return whether the first terms tell of the others: extrapolation misses steps, and sums within sums are too
    dear."""
    return not any(n.kind in ("big", "app") or (n.kind == "fn" and n.name in _UNSMOOTH) for n in walk_tree(term))


def infinite_sum(mp: Any, term: Callable[[Any], Any], low: int) -> Any:
    """Return the sum of `term(n)` for all n from `low`, or None where it diverges or is not found.

    The terms far out decide whether it converges: extrapolation also gives divergent sums a value.
    """
    first, near, far = (term(mp.mpf(low + n)) for n in (_NEAR - 1, _NEAR, _FAR))
    alternates = mp.re(first) * mp.re(near) < 0
    power = 0 if alternates else _POWER
    if far and not abs(far) * (mp.mpf(low + _FAR) / (low + _NEAR)) ** power < abs(near):
        return None
    close = mp.mpf(10) ** _CLOSE
    options = {"maxterms": _MOST_TERMS, "workprec": _BITS, "tol": close, "strict": True}
    try:
        whole = mp.nsum(term, [low, mp.inf], **options)
        rest = mp.nsum(term, [low + _APART, mp.inf], **options)
    except mp.NoConvergence:
        return None
    first_terms = mp.fsum(term(mp.mpf(n)) for n in range(low, low + _APART))
    if abs(first_terms + rest - whole) < close * _SLACK * (1 + abs(whole)):
        return whole
    return None
