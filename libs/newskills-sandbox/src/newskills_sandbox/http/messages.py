# SPDX-License-Identifier: Apache-2.0
"""Requests and replies as the application sees them, whatever carries them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

HeaderFields = Sequence[tuple[str, str]]


class ApiRequest(Protocol):
    """One whole request. `path` as sent, without its query; names of headers in lower case."""

    @property
    def method(self) -> str: ...

    @property
    def path(self) -> str: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def body(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """An `ApiRequest` that the server of this package has read."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class ApiReply:
    """One whole reply in JSON; what carries it adds the length."""

    status: int
    body: bytes
    headers: HeaderFields = ()
