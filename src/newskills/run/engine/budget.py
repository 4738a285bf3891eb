# SPDX-License-Identifier: Apache-2.0
"""A limit of tokens or money for a run, over all its processes: `++max_total_tokens`, `++max_cost`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from msgspec import Struct

from newskills.base.errors import BudgetError, ConfigError
from newskills.run.planning.config import GenerationConfig

MAX_UNKNOWN_ROWS = 16
"""Rows that may be under way before one has shown what a row takes."""


class Spending(Struct, kw_only=True):
    """By all processes so far; `rows` have an answer. `tokens` is 0 as long as the server has told of none."""

    rows: int = 0
    tokens: int = 0
    cost: float = 0.0


class RunBudget:
    """Lets rows begin as long as they fit, by what rows took on average. `used_up`: no further row may begin.

    Rows under way are finished, so that a budget is exceeded by no more than their replies are longer than usual.
    """

    def __init__(self, configs: Sequence[GenerationConfig], spent: Callable[[], Spending]) -> None:
        self.tokens = min((c.max_total_tokens for c in configs if c.max_total_tokens is not None), default=None)
        self.cost = min((c.max_cost for c in configs if c.max_cost is not None), default=None)
        self.used_up: BudgetError | None = None
        self._spent = spent
        self._under_way = 0
        self._change = asyncio.Event()

    @property
    def limited(self) -> bool:
        return self.tokens is not None or self.cost is not None

    async def admit(self) -> bool:
        """Return whether one more row may begin; wait while that depends on rows under way. Raises ConfigError
        where the server does not count tokens."""
        while self.used_up is None:
            spent = self._spent()
            if self._fits(spent):
                self._under_way += 1
                return True
            if not self._under_way:
                self.used_up = BudgetError(self._sentence(spent))
                break
            self._change.clear()
            await self._change.wait()
        return False

    def leave(self) -> None:
        """Count one row less under way: an admitted row has ended, or there was none."""
        self._under_way -= 1
        self._change.set()

    def _fits(self, spent: Spending) -> bool:
        if not spent.tokens and spent.rows >= MAX_UNKNOWN_ROWS:
            raise ConfigError(
                "The server does not say how many tokens a reply took, so ++max_total_tokens and ++max_cost cannot be "
                "kept.",
                hint="Leave them out, and limit the run with ++max_samples.",
            )
        if not spent.tokens:
            return self._under_way < MAX_UNKNOWN_ROWS
        grown = 1 + (self._under_way + 1) / spent.rows
        if self.tokens is not None and spent.tokens * grown > self.tokens:
            return False
        return self.cost is None or spent.cost * grown <= self.cost

    def _sentence(self, spent: Spending) -> str:
        limits = []
        if self.tokens is not None:
            limits.append(f"++max_total_tokens={self.tokens:,} (used: {spent.tokens:,})")
        if self.cost is not None:
            limits.append(f"++max_cost={self.cost:g} (used: {spent.cost:,.4g})")
        return f"Stopped before the budget is exceeded: {', '.join(limits)}. Finished rows are saved."
