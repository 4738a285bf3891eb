# SPDX-License-Identifier: Apache-2.0
"""How often and how long failures of requests are met with another try, and what a request remembers of its tries."""

from __future__ import annotations

import msgspec
from msgspec import Struct, field

from newskills.base.aio import backoff_seconds
from newskills.base.errors import HttpError, RateLimitError
from newskills.base.records import Message, Request
from newskills.run.engine.asking.pauses import RefusalHistory

FIRST_RETRY_SHARE = 0.2
"""The first retry comes after that share of `RetryPolicy.first_delay`: most failures are single."""


class RetryPolicy(Struct, frozen=True, kw_only=True):
    """How failures are met; times in seconds.

    most              requests in flight up to which more are tried while that makes it faster; 0: never more
    patience          the endpoint may be down that long
    first_patience    the same before its first answer ever (None: no other): an address that is wrong stays so
    soft_fail         single failures have been accepted
    shortest_timeout  what any request may take, however short the others are
    stops_if_refused  a run of one benchmark, of which the first requests are all refused, stops
    """

    concurrency: int = 512
    most: int = 0
    max_retries: int = 3
    patience: float = 1800.0
    first_patience: float | None = None
    soft_fail: bool = False
    first_delay: float = 0.5
    longest_delay: float = 60.0
    shortest_timeout: float = 300.0
    stops_if_refused: bool = True

    def delay(self, error: HttpError, tries: int) -> float:
        """Return the seconds until the next try beyond what the server says; at a limit the gate slows down."""
        quick, longest = FIRST_RETRY_SHARE * self.first_delay, self.longest_delay
        if isinstance(error, RateLimitError) or error.status == 503:
            return backoff_seconds(min(tries, 4), base=quick, cap=longest)
        return backoff_seconds(max(tries, 2 * tries - 3), base=quick, cap=longest)


class PendingRequest(Struct, eq=False):
    """A request on its way through its tries."""

    request: Request
    tries: int = 0
    blamed: int = 0
    timeouts: int = 0
    fitted: bool = False
    started: float = 0.0
    refusals: RefusalHistory = field(default_factory=RefusalHistory)


def probe_request(request: Request) -> Request:
    """Return `request` without any text of a row, to probe an endpoint."""
    text = request.prompt[:1] if isinstance(request.prompt, list) else "Hello"
    content = (
        {"prompt": text} if request.messages is None else {"messages": [Message(role="user", content="Hello")]}
    )
    return msgspec.structs.replace(request, tools=None, response_format=None, **content)
