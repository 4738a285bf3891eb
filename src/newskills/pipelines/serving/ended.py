# SPDX-License-Identifier: Apache-2.0
"""What calls return that serve: until they are stopped, or beside the program that called."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Self

from msgspec import Struct


class EndedService(Struct, frozen=True):
    """A service that was stopped: its `address`."""

    address: str


class RunningService:
    """A service that answers at `address` until `close()`; `with` closes it, too."""

    def __init__(self, address: str, stack: ExitStack | None = None) -> None:
        self.address, self._stack = address, stack or ExitStack()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {self.address or 'no address'}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the service, once; what it has begun is ended."""
        self._stack.close()
