# SPDX-License-Identifier: Apache-2.0
"""One model that is asked in batches. Solvers see it as an ordinary Model whose replies take hours.

What is asked waits until nothing more comes for a moment, and is then submitted together (`flow`). A request that its
batch leaves without an answer (expired, cancelled, missing) is asked again in another one, as often as `max_retries`
says; one that is refused is not. What was submitted by an earlier process is not submitted again: its answer is waited
for, or is here already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from newskills.base.errors import (
    BadRequestError,
    ContentFilterError,
    ContextLimitError,
    HttpError,
    NewskillsError,
)
from newskills.base.records import CONTENT_FILTER, Reply, Request
from newskills.models.batch_apis.service import BatchService, UnansweredError
from newskills.models.kinds import BatchProperties
from newskills.run.engine.asking.reply_watch import ReplyWatch
from newskills.run.engine.asking.retries import RetryPolicy
from newskills.run.engine.batches.flow import BatchFlow
from newskills.run.engine.batches.keys import ROW_REQUESTS, RowRequests
from newskills.run.engine.batches.ledger import BatchLedger
from newskills.run.engine.endpoint import MAX_ALIKE_FAILURES, ContextStrategy
from newskills.run.engine.progress import SlowRequests, error_kind


class BatchEndpoint:
    """A Model that asks in batches. After a fatal error `fatal` is set and `on_fatal` was called. `errors`: requests
    that are asked again, by kind."""

    paused_for = 0.0
    slow: SlowRequests | None = None

    def __init__(
        self,
        service: BatchService,
        ledger: BatchLedger,
        properties: BatchProperties,
        policy: RetryPolicy,
        *,
        say: Callable[[str], None],
        on_fatal: Callable[[NewskillsError], None],
        context: ContextStrategy | None = None,
    ) -> None:
        self.name, self.policy = service.name, policy
        self.errors: Counter[str] = Counter()
        self.fatal: NewskillsError | None = None
        self.answered = False
        self._service, self._on_fatal, self._context, self._say = service, on_fatal, context, say
        self._flow = BatchFlow(service, ledger, properties, policy, self.errors, say=say, on_fatal=self._stop)
        self._watch = ReplyWatch(service.name, say)
        self._refused = 0
        self._draining = False
        self._unnamed = RowRequests()

    @property
    def in_flight(self) -> int:
        """Requests that wait for an answer; none once the run is stopped, since nothing is lost then."""
        if self._draining:
            return 0
        return self._flow.waiting

    @property
    def concurrency(self) -> int:
        """As many as there are: any number may wait."""
        return self.in_flight

    @property
    def retries(self) -> int:
        return self.errors.total()

    @property
    def doing(self) -> str:
        """What batches do, in words; empty where there are none."""
        return self._flow.doing()

    async def complete(self, request: Request) -> Reply:
        """Return the reply, after tries in several batches. Raises the HttpError family; cancelled when the run
        stops."""
        names = ROW_REQUESTS.get() or self._unnamed
        key, tries, fitted = names.name(request, self.name), 0, False
        while True:
            outcome = await self._ask(key, request, again=tries > 0)
            if isinstance(outcome, Reply):
                return outcome
            smaller = None
            if isinstance(outcome, ContextLimitError) and self._context is not None and not fitted:
                smaller = self._context(request, outcome)
            if smaller is not None:
                request, tries, fitted = smaller, 0, True
                key = names.name(request, self.name)
                continue
            if not outcome.retryable:
                self._count_refusal(outcome)
                raise outcome
            tries += 1
            if tries > self.policy.max_retries:
                outcome.message = f"{outcome.message} It was asked in {tries} batches."
                raise outcome
            if isinstance(outcome, UnansweredError):
                self.errors[outcome.state] += 1
            else:
                self.errors[error_kind(outcome)] += 1

    def drain(self) -> None:
        """Wait for no batch any more: the next process collects them."""
        self._draining = True
        if words := self._flow.doing():
            self._say(f"{self.name}: left with the provider: {words}. The same command collects what comes of it.")

    async def close(self) -> None:
        await self._flow.close()
        self._watch.close()
        await self._service.close()

    async def _ask(self, key: str, request: Request, *, again: bool) -> Reply | HttpError:
        """Return the reply of the request's batch, or the error that it has instead."""
        result = await self._flow.ask(key, request, again=again)
        if result.error is not None:
            return result.error
        try:
            reply = self._service.decoded(request, result.body)
        except HttpError as error:
            return error
        self.answered = True
        self._watch.note(request, reply)
        if reply.finish_reason == CONTENT_FILTER:
            return ContentFilterError(f"{self.name}: a content filter withheld the answer.", status=200)
        return reply

    def _count_refusal(self, error: HttpError) -> None:
        """End the run where all of the first requests are refused, as `Endpoint` does: it is the set-up."""
        accepted = self.policy.soft_fail and isinstance(error, ContextLimitError)
        if self.answered or accepted or not self.policy.stops_if_refused or isinstance(error, ContentFilterError):
            return
        self._refused += 1
        if self._refused >= MAX_ALIKE_FAILURES:
            self._stop(
                BadRequestError(
                    f"The endpoint refused each of the first {MAX_ALIKE_FAILURES} requests: {error}",
                    status=error.status,
                )
            )

    def _stop(self, error: NewskillsError) -> None:
        if self.fatal is None:
            self.fatal = error
            self._on_fatal(error)
