# SPDX-License-Identifier: Apache-2.0
"""One model endpoint, with the patience that a long run needs. Solvers see it as an ordinary Model.

Who is to blame for a failed request?
- The endpoint, while nobody's request succeeds: the breaker opens, all wait, one probe at a time goes out; no
  tries are used up. The probe is the last request that is known to be good (a greeting before there is one), cut
  to one token, so that a poisonous request can not keep the breaker open.
- The load, for 429, 503 and time-outs: the limit of requests in flight shrinks (at once by a third; it
  grows again by a twentieth with each windowful of replies), and Retry-After stops all until it has passed.
- The request, if others succeeded after it had failed: after `max_retries` such retries it is given up.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import msgspec
from msgspec import Struct

from newskills.base.aio import Gate, backoff
from newskills.base.errors import (
    AuthError,
    BadRequestError,
    ConfigError,
    ContextLimitError,
    ModelError,
    ModelNotFoundError,
    NewskillsError,
    RateLimitError,
    RequestTimeoutError,
    ServerError,
)
from newskills.base.protocols import Model
from newskills.base.records import Message, Reply, Request

ALIKE = 8
STREAK = 16
GROWTH = 0.05
SHRINK = 0.7
BUDGET = 100.0
BUDGET_PER_REPLY = 0.2

ContextStrategy = Callable[[Request, ContextLimitError], Request | None]


class Policy(Struct, frozen=True, kw_only=True):
    """patience: seconds that the endpoint may be down; soft_fail: single failures have been accepted."""

    concurrency: int = 512
    max_retries: int = 3
    patience: float = 1800.0
    soft_fail: bool = False
    first_delay: float = 0.5
    longest_delay: float = 60.0


class Endpoint:
    """A Model that retries. After a fatal error `fatal` is set and `on_fatal` was called.

    `proven`: the endpoint has answered before (an earlier process), so refusals are not the set-up's fault.
    """

    def __init__(
        self,
        model: Model,
        policy: Policy,
        *,
        say: Callable[[str], None],
        on_fatal: Callable[[NewskillsError], None],
        context: ContextStrategy | None = None,
        proven: bool = False,
    ) -> None:
        self.model = model
        self.name = model.name
        self.policy = policy
        self.retries = 0
        self.fatal: NewskillsError | None = None
        self._say, self._on_fatal, self._context = say, on_fatal, context
        self._gate = Gate(policy.concurrency)
        self._proven = proven
        self._good: Request | None = None
        self._asked = Request()
        self._last_success = 0.0
        self._streak = 0
        self._refused = 0
        self._shrunk = 0.0
        self._budget = BUDGET
        self._trouble_since: float | None = None
        self._outage: asyncio.Task[None] | None = None
        self._pause_until = 0.0
        self._draining = False

    @property
    def concurrency(self) -> int:
        """Requests that may be in flight just now."""
        return int(self._gate.limit)

    @property
    def in_flight(self) -> int:
        return self._gate.active

    async def complete(self, request: Request) -> Reply:
        """Raises the ModelError family once the request is given up; cancelled when the run stops."""
        blamed = tries = 0
        fitted = False
        while True:
            await self._gate.acquire()
            started = time.monotonic()
            self._asked = request
            try:
                reply = await self.model.complete(request)
            except ContextLimitError as error:
                self._alive()
                smaller = None if fitted or self._context is None else self._context(request, error)
                if smaller is None:
                    self._count_refusal(error)
                    raise
                request, fitted = smaller, True
                continue
            except ConfigError as error:
                self._stop(error)
                raise
            except ModelError as error:
                failed_at = time.monotonic()
                self._judge(error, started)
                failure = error
            else:
                self._succeeded(request)
                return reply
            finally:
                self._gate.release()
            tries += 1
            self.retries += 1
            await asyncio.sleep(self._delay(failure, tries))
            if self._last_success > failed_at and not isinstance(failure, RateLimitError):
                blamed += 1
                if blamed > self.policy.max_retries:
                    raise failure

    def drain(self) -> None:
        """Requests in flight may finish; no further one is sent."""
        self._draining = True
        self._gate.shut()

    async def close(self) -> None:
        if self._outage is not None:
            self._outage.cancel()
            await asyncio.wait([self._outage])
        await self.model.close()

    def _succeeded(self, request: Request) -> None:
        self._good = request
        self._proven = True
        self._last_success = time.monotonic()
        self._alive()
        self._budget = min(BUDGET, self._budget + BUDGET_PER_REPLY)
        if self._gate.limit < self.policy.concurrency:
            step = max(GROWTH, 1 / self._gate.limit)
            self._gate.limit = min(self.policy.concurrency, self._gate.limit + step)

    def _alive(self) -> None:
        self._streak = 0
        self._trouble_since = None

    def _judge(self, error: ModelError, started: float) -> None:
        """Raises `error` if retrying is pointless; else adapts to it."""
        if isinstance(error, AuthError | ModelNotFoundError):
            self._stop(error)
            raise error
        if not error.retryable:
            self._alive()
            self._count_refusal(error)
            raise error
        now = time.monotonic()
        self._trouble_since = self._trouble_since or now
        overloaded = isinstance(error, RateLimitError | RequestTimeoutError) or error.status == 503
        if overloaded and started >= self._shrunk:
            self._shrunk = now
            self._gate.limit = max(1.0, self._gate.limit * SHRINK)
        if isinstance(error, RateLimitError | ServerError) and error.retry_after is not None:
            self._pause(now + error.retry_after)
        if isinstance(error, RateLimitError):
            self._check_patience(error)
            return
        self._streak += 1
        if self._streak >= min(STREAK, max(1, self._gate.active)) and self._outage is None:
            self._outage = asyncio.create_task(self._wait_for_recovery(error))

    def _count_refusal(self, error: ModelError) -> None:
        """The first requests are all refused: it is the set-up, not the rows."""
        if self._proven or (self.policy.soft_fail and isinstance(error, ContextLimitError)):
            return
        self._refused += 1
        if self._refused >= ALIKE:
            self._stop(
                BadRequestError(
                    f"The endpoint refused each of the first {ALIKE} requests: {error}", status=error.status
                )
            )

    def _stop(self, error: NewskillsError) -> None:
        if self.fatal is None:
            self.fatal = error
            self._on_fatal(error)

    def _delay(self, error: ModelError, tries: int) -> float:
        """Seconds until the next try. With the budget used up (more than a fifth of all replies are retries) the
        longest."""
        if self._budget < 1:
            return backoff(32, cap=self.policy.longest_delay)
        self._budget -= 1
        wait = backoff(tries, base=self.policy.first_delay, cap=self.policy.longest_delay)
        told = error.retry_after if isinstance(error, RateLimitError | ServerError) else None
        return wait if told is None else told + wait / 4

    def _pause(self, until: float) -> None:
        """Retry-After: nobody asks again before `until` (a server's word is taken for an hour at most)."""
        now = time.monotonic()
        until = min(until, now + 3600)
        if until > self._pause_until:
            self._pause_until = until
            self._gate.shut()
            asyncio.get_running_loop().call_later(until - now + 0.001, self._reopen)

    def _reopen(self) -> None:
        if not self._draining and self._outage is None and time.monotonic() >= self._pause_until:
            self._gate.open()

    def _check_patience(self, error: ModelError) -> bool:
        """Whether there is patience left."""
        waited = time.monotonic() - (self._trouble_since or time.monotonic())
        if waited > self.policy.patience:
            self._stop(_gave_up(self.name, error, waited))
        return self.fatal is None

    async def _wait_for_recovery(self, error: ModelError) -> None:
        """The open breaker: probes until the endpoint answers, or patience ends."""
        self._gate.shut()
        since = time.monotonic()
        tries = 0
        try:
            while True:
                tries += 1
                await asyncio.sleep(
                    backoff(tries, base=self.policy.first_delay, cap=self.policy.longest_delay / 2)
                )
                if self._last_success > since or await self._probe():
                    break
                if not self._check_patience(error):
                    return
                if tries == 1:
                    waited = time.monotonic() - (self._trouble_since or since)
                    self._say(
                        f"{self.name} does not answer ({error}) The run waits for it, up to"
                        f" {max(0.0, self.policy.patience - waited):.1f} s more, and goes on by itself."
                    )
            self._alive()
            if tries > 1:
                self._say(f"{self.name} answers again after {time.monotonic() - since:.0f} s; going on.")
        finally:
            self._outage = None
            self._reopen()

    async def _probe(self) -> bool:
        """Whether the endpoint is alive: it is if it answers a request above suspicion, with a refusal even."""
        request = self._good or _greeting(self._asked)
        inference = msgspec.structs.replace(request.inference, tokens_to_generate=1, timeout=60.0)
        try:
            await self.model.complete(msgspec.structs.replace(request, inference=inference))
        except ModelError as error:
            if error.retryable:
                return False
        self._last_success = time.monotonic()
        return True


def _greeting(request: Request) -> Request:
    """`request` with nothing of a row in it."""
    text = request.prompt[:1] if isinstance(request.prompt, list) else "Hello"
    said = {"prompt": text} if request.messages is None else {"messages": [Message(role="user", content="Hello")]}
    return msgspec.structs.replace(request, tools=None, response_format=None, **said)


def _gave_up(name: str, error: ModelError, waited: float) -> ModelError:
    return type(error)(
        f"{name} has not answered for {waited:.1f} s ({error}) The run stops; finished work is saved."
    )
