# SPDX-License-Identifier: Apache-2.0
"""The highest load under limits, by doubling and halving."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

PRECISION = 1.05
"""The search ends where the lowest load that fails is at most that much above the highest that passes."""
MAX_LEVELS = 24


async def highest_load(
    passes: Callable[[float], Awaitable[bool]], first: float, *, whole: bool, precision: float = PRECISION
) -> float | None:
    """Return the highest load for which `passes` is true, to `precision`; None where not even a hundredth of `first`
    passes. `whole`: loads are whole numbers."""
    good: float | None = None
    bad: float | None = None
    load = first
    for _ in range(MAX_LEVELS):
        if await passes(load):
            good = load
        else:
            bad = load
        if bad is None:
            load = 2 * load
        elif good is None:
            load = bad / 2
            if load < max(first / 100, 1.0 if whole else 0.0):
                return None
        else:
            load = (good + bad) / 2
            if bad / good <= precision or (whole and bad - good <= 1):
                return good
        load = float(int(load)) if whole else float(f"{load:.4g}")
    return good
