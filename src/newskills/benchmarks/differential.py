# SPDX-License-Identifier: Apache-2.0
"""Tests that compare an answer with what a reference solution returns (EvalPlus, arXiv:2305.01210)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

_ORACLE = """
import math
inf, nan = math.inf, math.nan

def _reference(*arguments):
    space = {{}}
    exec(compile({solution!r}, "reference", "exec"), space)
    return space[{entry!r}](*arguments)

def _floats(value):
    if isinstance(value, (list, tuple)) and value:
        return all(isinstance(each, float) for each in value)
    return isinstance(value, float)

def _close(one, two, off):
    if isinstance(two, (list, tuple)):
        return isinstance(one, (list, tuple)) and len(one) == len(two) and all(map(_close, one, two, [off] * len(two)))
    if not isinstance(one, (int, float, complex)) or not isinstance(two, (int, float, complex)):
        return one == two
    return one == two or abs(one - two) <= off + 1e-7 * abs(two)

def _check(*arguments):
    told = {entry}(*arguments)
    wanted = _reference(*arguments)
    off = {atol!r} or (1e-6 if _floats(wanted) else 0)
    assert {equal} or (off and type(told) == type(wanted) and _close(told, wanted, off))
"""


def oracle_code(solution: str, entry: str, atol: float, equal: str = "told == wanted") -> str:
    """Return code that defines `_check(*arguments)`. `equal`: an expression over `told`, `wanted` and `arguments`;
    where it does not hold, results of one type may be off by `atol`, and fractions by 1e-6."""
    return _ORACLE.format(solution=solution, entry=entry, atol=atol, equal=equal)


def check_statements(calls: Iterable[Sequence[Any]]) -> list[str]:
    """Return a test for each list of arguments."""
    return [f"_check(*{arguments!r})" for arguments in calls]
