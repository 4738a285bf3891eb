# SPDX-License-Identifier: Apache-2.0
"""What calls return that serve until they are stopped."""

from __future__ import annotations

from msgspec import Struct


class EndedService(Struct, frozen=True):
    """A service that was stopped: its `address`."""

    address: str
