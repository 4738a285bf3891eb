# SPDX-License-Identifier: Apache-2.0
"""One model endpoint, with the patience that a long run needs. Solvers see it as an ordinary Model.

Who is to blame for a failed request?
- The endpoint, while nobody's request succeeds: the breaker opens, all wait, one probe at a time goes out; no
  tries are used up. The probe is the last request that is known to be good (a greeting before there is one), cut
  to one token, so that a poisonous request can not keep the breaker open.
- The load, where many are refused: `Load` finds what the endpoint takes. Retry-After stops all until it has passed,
  or a probe is answered before (`ServerPause`).
- The request, if it meets rate limits again and again while others hardly do (`RefusalCounts`).
- The request, if others succeeded after it had failed: after `max_retries` such retries it is given up. A request
  whose key, account or model is refused is retried never, and given up alone if a good one is answered.
- The set-up, if a good request meets the same refusal, or nothing was ever answered: then the run stops.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Coroutine

import msgspec

from newskills.base.aio import Gate, backoff_seconds
from newskills.base.callbacks import REPLY_LISTENER, reply_has_begun
from newskills.base.errors import (
    AuthError,
    BadRequestError,
    ConfigError,
    ConnectError,
    ContentFilterError,
    ContextLimitError,
    HttpError,
    NewskillsError,
    RateLimitError,
    RequestTimeoutError,
    ServerError,
    TransportError,
)
from newskills.base.protocols import Model
from newskills.base.records import CONTENT_FILTER, Reply, Request
from newskills.models.errors import ModelNotFoundError
from newskills.run.engine.asking.pauses import MAX_COINCIDENCE, RefusalCounts, ServerPause
from newskills.run.engine.asking.reply_watch import ReplyWatch
from newskills.run.engine.asking.retries import FIRST_RETRY_SHARE, PendingRequest, RetryPolicy, probe_request
from newskills.run.engine.load import Load
from newskills.run.engine.progress import SlowRequests, error_kind, format_duration
from newskills.run.engine.supervision import SharedLimit
from newskills.run.engine.trace import Trace
from newskills.run.engine.waits import Waits

MAX_ALIKE_FAILURES = 8
STREAK = 16
LAST_PROBE = 10.0
ContextStrategy = Callable[[Request, ContextLimitError], Request | None]


class Endpoint:
    """A Model that retries. After a fatal error `fatal` is set and `on_fatal` was called. `errors`: retries by kind.

    `proven`: the endpoint has answered before (an earlier process), so refusals are not the set-up's fault.
    `shared`: a limit of requests that other endpoints have part in; waiting for it is in no timeout.
    """

    def __init__(
        self,
        model: Model,
        policy: RetryPolicy,
        *,
        say: Callable[[str], None],
        on_fatal: Callable[[NewskillsError], None],
        context: ContextStrategy | None = None,
        proven: bool = False,
        shared: SharedLimit | None = None,
        trace: Trace | None = None,
    ) -> None:
        self.model = model
        self.name = model.name
        self.policy = policy
        self.errors: Counter[str] = Counter()
        self.fatal: NewskillsError | None = None
        self._say, self._on_fatal, self._context = say, on_fatal, context
        self._shared, self._trace = shared, trace
        self._gate = Gate(policy.concurrency)
        self._load = Load(self._gate, epoch=policy.first_delay, most=policy.most)
        self._waits = Waits(shortest=policy.shortest_timeout, tries=policy.max_retries + 1)
        self._proven = proven
        self._good: Request | None = None
        self._asked = Request()
        self._last_success = self._last_reply = self._newest_answered = 0.0
        self._streak = 0
        self._refused = 0
        self._trouble: HttpError | None = None
        self._trouble_since = 0.0
        self._patience: asyncio.TimerHandle | None = None
        self._outage: asyncio.Task[None] | None = None
        self._recovered = 0.0
        self._check: asyncio.Task[HttpError | None] | None = None
        self._check_began = 0.0
        self._tasks: set[asyncio.Task[None]] = set()
        self._refusals, self._watch = RefusalCounts(), ReplyWatch(self.name, say)
        self._pause = ServerPause(
            self._gate,
            policy.patience,
            self._probe_within_limit,
            self._reopen,
            self._give_up_pause,
            say,
            self.name,
        )
        self._draining = self._told_of_timeouts = False

    @property
    def concurrency(self) -> int:
        """Requests that may be in flight just now."""
        return int(self._gate.limit)

    @property
    def in_flight(self) -> int:
        return self._gate.active

    @property
    def answered(self) -> bool:
        """Whether a reply has ever come."""
        return self._last_reply > 0

    @property
    def retries(self) -> int:
        return self.errors.total()

    @property
    def paused_for(self) -> float:
        """Seconds for which the server has asked to be left alone; 0 where it has not."""
        return self._pause.seconds_left

    @property
    def slow(self) -> SlowRequests | None:
        """What is in flight for much longer than others were."""
        return self._waits.slow()

    async def complete(self, request: Request) -> Reply:
        """Return the reply, after retries. Raises the HttpError family once given up; cancelled when the run stops."""
        pending = PendingRequest(request, refusals=self._refusals.begin())
        while True:
            outcome = await self._try(pending)
            if isinstance(outcome, Reply):
                return outcome
            failed_at = time.monotonic()
            if isinstance(outcome, AuthError | ModelNotFoundError):
                await self._weigh(outcome, failed_at)
            pending.tries += 1
            pending.timeouts += isinstance(outcome, RequestTimeoutError)
            self.errors[error_kind(outcome)] += 1
            if isinstance(outcome, RateLimitError):
                await self._weigh_rate_limit(outcome, pending, failed_at)
            await self._wait_before_retry(outcome, pending)
            if self._outage is not None:
                await asyncio.wait([self._outage])
            if self._last_success > failed_at >= self._recovered and not self._is_excused(outcome):
                pending.blamed += 1
                if pending.blamed > self.policy.max_retries:
                    raise outcome

    async def _wait_before_retry(self, error: HttpError, pending: PendingRequest) -> None:
        """Wait until the next try."""
        wait = self.policy.delay(error, pending.tries)
        server_wait = error.retry_after if isinstance(error, RateLimitError | ServerError) else None
        if self._trace is not None:
            self._trace.log_retry(pending.request, error, (server_wait or 0.0) + wait)
        if server_wait is not None:
            await self._pause.rest(server_wait, self.policy.longest_delay / 4)
        await asyncio.sleep(wait)

    async def _weigh_rate_limit(self, error: RateLimitError, pending: PendingRequest, failed_at: float) -> None:
        """Raise `error` for a request that is refused for ever while others are answered."""
        lone = pending.tries > 2 and not self._refusals.others_answered(pending.refusals)
        if lone and self._proven and not self._pause.seconds_left:
            await self._check_endpoint(failed_at)
        self._refusals.update_history(pending.refusals)
        if pending.tries > self.policy.max_retries and pending.refusals.coincidence < MAX_COINCIDENCE:
            raise RateLimitError(
                f"{error} It was refused {pending.tries} times, while other requests got answers.",
                status=error.status,
            )

    def drain(self) -> None:
        """Let requests in flight finish, and send no further one."""
        self._draining = True
        self._gate.shut()

    async def close(self) -> None:
        self._gate.shut()
        self._waits.close()
        self._alive()
        tasks = [task for task in (self._outage, self._check, *self._tasks) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self._watch.close()
        await self._pause.close()
        await self.model.close()

    async def _try(self, pending: PendingRequest) -> Reply | HttpError:
        """Return the reply, or the error that may be retried. Raises an error that may not."""
        if not self._gate.try_enter():
            await self._gate.acquire()
        try:
            if self._shared is not None:
                await self._shared.acquire()
            try:
                return await self._send(pending)
            finally:
                if self._shared is not None:
                    self._shared.release()
        except ContextLimitError as error:
            self._alive()
            smaller = None
            if not pending.fitted and self._context is not None and not reply_has_begun():
                smaller = self._context(pending.request, error)
            if smaller is None:
                self._count_refusal(error)
                raise
            pending.request, pending.fitted = smaller, True
        except ConfigError as error:
            self._stop(error)
            raise
        except HttpError as error:
            self._book_failure(error, pending)
            if reply_has_begun():  # what a program has got cannot be taken back
                raise
            return error
        finally:
            self._gate.release()
        return await self._try(pending)

    async def _send(self, pending: PendingRequest) -> Reply:
        request = self._asked = pending.request
        pending.started = started = time.monotonic()
        self._load.note_start()
        if self._trace is not None:
            self._trace.log_request(request, pending.tries)
        reply = await self._waits.within(request, pending.timeouts, self.model.complete(request))
        if self._trace is not None:
            self._trace.log_reply(request, reply, time.monotonic() - started)
        self._book_success(request, started)
        self._watch.note(request, reply)
        if reply.finish_reason == CONTENT_FILTER:
            raise ContentFilterError(
                f"{self.name}: a content filter of the endpoint withheld the answer.", status=200
            )
        return reply

    def _book_success(self, request: Request, started: float) -> None:
        self._good = request
        self._proven = True
        self._last_success = self._last_reply = time.monotonic()
        self._newest_answered = max(self._newest_answered, started)
        self._refusals.note_answer()
        self._alive()
        self._load.note_answer(started)

    def _alive(self) -> None:
        self._streak = 0
        self._trouble = None
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _book_failure(self, error: HttpError, pending: PendingRequest) -> None:
        """Adapt the pace to a failure. Raises `error` if retrying is pointless."""
        started = pending.started
        if isinstance(error, AuthError | ModelNotFoundError):
            return
        if not error.retryable:
            self._alive()
            if isinstance(error, ContentFilterError):
                self._proven = True
            if self._trace is not None:
                self._trace.log_refusal(pending.request, error)
            self._count_refusal(error)
            raise error
        if isinstance(error, RequestTimeoutError) and not self._told_of_timeouts:
            self._told_of_timeouts = True
            self._say(f"{self.name}: {error} The request is sent again; later timeouts are only counted.")
        if isinstance(error, RateLimitError):
            self._refusals.note_refusal(pending.refusals)
            if pending.refusals.suspicious:
                return
        self._load.note_refusal(started)
        self._in_trouble(error, started)
        if isinstance(error, RateLimitError | ServerError) and error.retry_after is not None:
            self._load.note_wait(started)
            self._pause.begin(error.retry_after, error)
        if isinstance(error, RateLimitError):
            return
        self._streak += 1
        busy = error.status == 503 and time.monotonic() - self._last_reply < 2 * self.policy.first_delay
        if self._streak >= min(STREAK, max(1, self._gate.active)) and not busy:
            self._open_breaker()

    async def _weigh(self, error: HttpError, failed_at: float) -> None:
        """Raise the refusal of a key, account or model as the request's own fault, or end the run with it.

        Returns where the endpoint as a whole is in trouble: a router that is being set up anew knows no model.
        """
        if error.status is None or (error.status == 401 and not self._proven):
            self._stop(error)
            raise error
        proven = self._proven
        if proven:
            await asyncio.sleep(backoff_seconds(1, base=self.policy.first_delay))
        if self._newest_answered <= failed_at:
            meant = await self._check_endpoint(failed_at)
            if isinstance(meant, AuthError) or (isinstance(meant, ModelNotFoundError) and not proven):
                self._stop(meant)
                raise meant
            if meant is not None and meant.status is None and not meant.retryable:
                self._stop(error)
                raise error
            if meant is not None and (meant.retryable or isinstance(meant, ModelNotFoundError)):
                self._in_trouble(meant, time.monotonic())
                self._open_breaker()
                return
        self._proven = True
        raise BadRequestError(f"{error.server_text} Other requests get answers.", status=error.status)

    async def _check_endpoint(self, since: float) -> HttpError | None:
        """Return the error, if any, that a good request sent after `since` met: one request for all that ask."""
        while (check := self._check) is None or self._check_began < since:
            if check is not None and not check.done():
                await asyncio.wait([check])
                continue
            self._check_began = time.monotonic()
            self._check = asyncio.create_task(self._probe())
        await asyncio.wait([check])
        return check.result()

    def _count_refusal(self, error: HttpError) -> None:
        """Count a refusal, and end the run where the first requests are all refused: it is the set-up, not the rows."""
        if self._proven or (self.policy.soft_fail and isinstance(error, ContextLimitError)):
            return
        if not self.policy.stops_if_refused:
            return
        self._refused += 1
        if self._refused >= MAX_ALIKE_FAILURES:
            sentence = f"The endpoint refused each of the first {MAX_ALIKE_FAILURES} requests: {error}"
            self._stop(BadRequestError(sentence, status=error.status))

    def _stop(self, error: NewskillsError) -> None:
        if self.fatal is None:
            self.fatal = error
            self._on_fatal(error)

    def _is_excused(self, error: HttpError) -> bool:
        """Return whether a failed try says nothing about its request, since it met a limit of the endpoint."""
        if isinstance(error, RateLimitError):
            return True
        lately = time.monotonic() - self._last_reply < 10 * self.policy.first_delay
        return error.status == 503 and self._load.limited and lately

    def _reopen(self) -> None:
        stopped = self._draining or self.fatal is not None
        if not stopped and self._outage is None and not self._pause.seconds_left:
            self._gate.open()

    def _give_up_pause(self, error: HttpError) -> None:
        if self.fatal is None:
            self._trouble_since = time.monotonic() - self.policy.patience
            self._give_up(error)

    def _in_trouble(self, error: HttpError, started: float) -> None:
        """Start the clock of patience; a connection that never stood has failed since it was asked for."""
        now = time.monotonic()
        if self._trouble is None:
            self._trouble_since = started if isinstance(error, ConnectError) else now
        self._trouble = error
        if self._patience_left(now) <= 0 and isinstance(error, ConnectError):
            self._give_up(error)
        elif self._patience is None and self.fatal is None:
            loop = asyncio.get_running_loop()
            self._patience = loop.call_later(max(0.0, self._patience_left(now)), self._out_of_patience)

    def _patience_left(self, now: float) -> float:
        """Return the seconds of patience left for the present trouble."""
        error, patience = self._trouble, self.policy.patience
        if isinstance(error, ConnectError) and error.certificate:
            patience = min(patience, 60.0) if self._proven else 0.0
        elif not self._proven and (isinstance(error, TransportError) or (error and error.status == 200)):
            patience = patience if self.policy.first_patience is None else self.policy.first_patience
        return self._trouble_since + patience - now

    def _out_of_patience(self) -> None:
        self._patience = None
        if self._trouble is None or self.fatal is not None:
            return
        if (left := self._patience_left(time.monotonic())) > 0:
            self._patience = asyncio.get_running_loop().call_later(left, self._out_of_patience)
        elif self._outage is not None:
            self._give_up(self._trouble)
            self._outage.cancel()
        else:
            self._spawn(self._last_chance(self._trouble))

    async def _probe_within_limit(self) -> HttpError | None:
        """Return what a probe meets within LAST_PROBE seconds."""
        try:
            async with asyncio.timeout(LAST_PROBE):
                return await self._probe()
        except TimeoutError:
            return self._trouble or RequestTimeoutError(f"No reply came within {LAST_PROBE:g} s.")

    async def _last_chance(self, error: HttpError) -> None:
        """Probe before the run ends: long requests may be under way while others are refused; only silence ends it."""
        met = await self._probe_within_limit()
        if isinstance(met, RequestTimeoutError):
            met = error
        if met is None:
            self._alive()
        elif self._trouble is not None:
            self._give_up(met)

    def _give_up(self, error: HttpError) -> None:
        waited = time.monotonic() - self._trouble_since
        if isinstance(error, ConnectError) and error.certificate:
            self._stop(error)
            return
        shown = f"{waited:.1f} s" if waited < 10 else format_duration(waited)
        reason = f"{self.name} has not answered for {shown} ({error})"
        where = "" if self._proven else " Nothing ever answered there: is the address correct?"
        more = "" if self._proven else " ++endpoint_patience=1800 waits longer."
        self._stop(type(error)(f"{reason}{where} The run stops; finished work is saved.{more}"))

    def _open_breaker(self) -> None:
        if self._outage is None and self.fatal is None:
            self._outage = asyncio.create_task(self._wait_for_recovery())

    async def _wait_for_recovery(self) -> None:
        """Keep the breaker open: probe until the endpoint answers, or patience ends."""
        self._gate.shut()
        since = time.monotonic()
        tries, announced = 0, False
        try:
            while self.fatal is None:
                tries += 1
                quick, longest = FIRST_RETRY_SHARE * self.policy.first_delay, self.policy.longest_delay / 2
                await asyncio.sleep(backoff_seconds(2 * tries - 1, base=quick, cap=longest))
                if self._last_success > since:
                    break
                met = await self._probe()
                if isinstance(met, AuthError):
                    self._stop(met)
                if met is None or not (met.retryable or isinstance(met, ModelNotFoundError)):
                    break
                self._in_trouble(met, time.monotonic())
                if tries == 2:
                    announced = True
                    left = format_duration(max(0.0, self._patience_left(time.monotonic())))
                    self._say(
                        f"{self.name} does not answer ({met}) The run waits for it, up to {left} more, and then "
                        "continues by itself."
                    )
            self._alive()
            self._recovered = time.monotonic() if tries > 1 else self._recovered
            if announced and self.fatal is None:
                self._say(f"{self.name} answers again after {time.monotonic() - since:.0f} s; the run continues.")
        finally:
            self._outage = None
            self._reopen()

    async def _probe(self) -> HttpError | None:
        """Return None if the endpoint is alive: it answers a request above suspicion, or refuses it as it is."""
        REPLY_LISTENER.set(None)  # a probe's reply is for nobody; this is a task of its own
        request = self._good or probe_request(self._asked)
        inference = msgspec.structs.replace(request.inference, tokens_to_generate=1, timeout=60.0)
        probe = msgspec.structs.replace(request, inference=inference)
        try:
            await self.model.complete(probe)
        except HttpError as error:
            if error.retryable or error.status is None or isinstance(error, AuthError | ModelNotFoundError):
                return error
        else:
            self._proven = True
            self._good = self._good or probe
            self._refusals.note_answer()
        self._last_success = time.monotonic()
        return None

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
