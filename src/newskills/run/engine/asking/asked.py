# SPDX-License-Identifier: Apache-2.0
"""What the engine needs to know of an endpoint that it asks, one by one or in batches."""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from newskills.base.protocols import Model
from newskills.run.engine.asking.retries import RetryPolicy
from newskills.run.engine.progress import SlowRequests


class AskedEndpoint(Model, Protocol):
    """A Model that retries."""

    policy: RetryPolicy
    errors: Counter[str]

    @property
    def concurrency(self) -> int: ...

    @property
    def in_flight(self) -> int: ...

    @property
    def answered(self) -> bool: ...

    @property
    def retries(self) -> int: ...

    @property
    def paused_for(self) -> float: ...

    @property
    def slow(self) -> SlowRequests | None: ...

    def drain(self) -> None: ...
