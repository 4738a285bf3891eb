# SPDX-License-Identifier: Apache-2.0
"""The way of batches: gathered, written down, submitted, looked after, collected. One task does all of it.

A batch is written down before it is submitted, and its handle after. Where no handle came back (a kill, a connection
that broke), the provider is asked for a batch of that name before it is submitted once more.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from itertools import groupby
from typing import TypeVar

from msgspec import Struct

from newskills.base.aio import backoff_seconds
from newskills.base.errors import (
    BadRequestError,
    HttpError,
    LockedError,
    NewskillsError,
    RateLimitError,
)
from newskills.base.records import Request
from newskills.models.batch_apis.service import BatchLook, BatchService, RowResult, UnansweredError
from newskills.models.errors import ModelNotFoundError
from newskills.models.kinds import BatchProperties
from newskills.run.engine.asking.retries import RetryPolicy
from newskills.run.engine.batches.ledger import BatchLedger, BatchRecord
from newskills.run.engine.progress import error_kind, format_duration

T = TypeVar("T")
QUIET_SECONDS = 2.0
"""Seconds without a further request after which those that wait are submitted."""
FIRST_LOOK, LONGEST_LOOK = 5.0, 60.0
"""Seconds between two looks at a batch: when it is young, and at most."""
SHARE_OF_AGE = 0.05
UNKNOWN_BATCH_SECONDS = 60.0
"""Seconds within which a provider may not know yet of a batch that it has confirmed."""
UNCONFIRMED_SECONDS = 15.0
"""Seconds after a submission without an answer, before the provider is asked whether it has the batch."""
FULL_PAUSE = 60.0
"""Seconds until a batch is tried again, and half as many requests, where the provider has no room for it."""
ROOM_PAUSE = 3600.0
"""Seconds until it is tried again in any case, where other batches of this run take the room."""
OTHERS_TURN = 512
"""Results after which others may work."""


class WaitingRequest(Struct, eq=False):
    """A request whose result is waited for; `line` while it is not in a batch."""

    request: Request
    result: asyncio.Future[RowResult]
    endpoint: str = ""
    line: bytes = b""


class LiveBatch(Struct, eq=False):
    """A batch that has not ended, and when it is looked at next (monotonic)."""

    record: BatchRecord
    next_look: float


class BatchFlow:
    """Results of requests by key. `waiting`: how many are not here yet."""

    def __init__(
        self,
        service: BatchService,
        ledger: BatchLedger,
        properties: BatchProperties,
        policy: RetryPolicy,
        errors: Counter[str],
        *,
        say: Callable[[str], None],
        on_fatal: Callable[[NewskillsError], None],
    ) -> None:
        self._service, self._ledger, self._policy, self._errors = service, ledger, policy, errors
        self._say, self._on_fatal = say, on_fatal
        self._most_rows, self._most_bytes = properties.rows, properties.size
        self._waiting: dict[str, WaitingRequest] = {}
        self._queue: deque[str] = deque()
        self._queued_bytes = 0
        self._live: dict[str, LiveBatch] = {}
        self._last_arrival = self._hold_until = 0.0
        self._reached = False
        self._wake = asyncio.Event()
        self._loaded: asyncio.Task[None] | None = None
        self._driver: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def doing(self) -> str:
        """Return the batches that have not ended, in words; empty where there are none."""
        if not self._live:
            return ""
        records = [batch.record for batch in self._live.values()]
        states = ", ".join(sorted({record.state or "being submitted" for record in records}))
        done, rows = sum(record.done for record in records), sum(record.rows for record in records)
        count = "1 batch" if len(records) == 1 else f"{len(records)} batches"
        return f"{count} ({states}, {done:,}/{rows:,} done)"

    async def ask(self, key: str, request: Request, *, again: bool) -> RowResult:
        """Return what came of a request. `again`: not what came of it before. Raises ConfigError."""
        if self._loaded is None:
            self._loaded = asyncio.create_task(asyncio.to_thread(self._ledger.load, self._service.result))
        await asyncio.shield(self._loaded)
        if not again and (place := self._ledger.results.get(key)) is not None:
            result = self._ledger.result_at(place, self._service.result)
            if result.error is None or not result.error.retryable:
                return result
            again = True
        waiting = WaitingRequest(request, asyncio.get_running_loop().create_future())
        earlier = self._ledger.batch_of.get(key)
        if earlier is None or again or self._ledger.records[earlier].ended:
            waiting.endpoint, waiting.line = self._service.encoded(key, request)
            self._put(key, waiting)
        elif earlier not in self._live:
            record = self._ledger.records[earlier]
            self._live[earlier] = LiveBatch(record, time.monotonic())
            self._say(f"{record.name} was submitted before ({record.handle or 'not confirmed'}).")
        self._waiting[key] = waiting
        self._wake.set()
        if self._driver is None:
            self._driver = asyncio.create_task(self._drive())
            self._driver.add_done_callback(self._driven)
        try:
            return await waiting.result
        finally:
            del self._waiting[key]

    async def close(self) -> None:
        for task in (self._driver, self._loaded):
            if task is not None and not task.done():
                task.cancel()
                await asyncio.wait([task])

    def _put(self, key: str, waiting: WaitingRequest) -> None:
        self._queue.append(key)
        self._queued_bytes += len(waiting.line)
        self._last_arrival = time.monotonic()

    async def _drive(self) -> None:
        while True:
            self._wake.clear()
            now = time.monotonic()
            if self._queue and now >= self._submits_at():
                await self._submit()
            for batch in list(self._live.values()):
                if batch.next_look <= time.monotonic():
                    await self._check_status(batch)
            moments = [batch.next_look for batch in self._live.values()]
            if self._queue:
                moments.append(self._submits_at())
            pause = max(0.0, min(moments) - time.monotonic()) if moments else None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._wake.wait()

    def _driven(self, task: asyncio.Task[None]) -> None:
        """End the run with an error of ours; a defect goes to those who wait."""
        if task.cancelled() or (error := task.exception()) is None:
            return
        if isinstance(error, NewskillsError):
            self._on_fatal(error)
            return
        for waiting in self._waiting.values():
            if not waiting.result.done():
                waiting.result.set_exception(error)

    def _submits_at(self) -> float:
        whole = len(self._queue) >= self._most_rows or self._queued_bytes >= self._most_bytes
        quiet_until = 0.0 if whole else self._last_arrival + QUIET_SECONDS
        return max(self._hold_until, quiet_until)

    async def _submit(self) -> None:
        """Submit what waits, as one batch or several."""
        keys = [key for key in dict.fromkeys(self._queue) if key in self._waiting]
        self._queue.clear()
        self._queued_bytes = 0
        keys.sort(key=lambda key: self._waiting[key].endpoint)  # stable: the order of rows stays
        batches: list[tuple[str, list[str]]] = []
        for endpoint, same in groupby(keys, key=lambda key: self._waiting[key].endpoint):
            size, part = 0, list[str]()
            for key in same:
                length = len(self._waiting[key].line) + 1
                if part and (len(part) >= self._most_rows or size + length > self._most_bytes):
                    batches.append((endpoint, part))
                    size, part = 0, []
                part.append(key)
                size += length
            batches.append((endpoint, part))
        for number, (endpoint, part) in enumerate(batches):
            if self._hold_until > time.monotonic():
                for _, rest in batches[number:]:
                    self._requeue(rest)
                return
            lines = [(key, self._waiting[key].line) for key in part if key in self._waiting]
            if lines:
                record = await asyncio.to_thread(self._ledger.begin, endpoint, lines)
                for key, _ in lines:
                    if (waiting := self._waiting.get(key)) is not None:
                        waiting.line = b""
                del lines
                batch = self._live[record.name] = LiveBatch(record, 0.0)
                await self._confirm(batch, fresh=True)

    async def _confirm(self, batch: LiveBatch, *, fresh: bool) -> None:
        """Submit the batch unless the provider has it. `fresh`: it cannot have it yet."""
        record = batch.record
        try:
            with self._ledger.lock(record):
                record = batch.record = self._ledger.read_again(record)
                if not record.handle and not record.ended:
                    record.handle = await self._handle_of(record, fresh=fresh)
                    self._reached = True
                    record.submitted = record.looked = time.time()
                    record.state = "submitted"
                    self._ledger.save(record)
                    self._ledger.lock_file(record).unlink(missing_ok=True)
                    self._say(f"{record.name}: {record.rows:,} requests are submitted as {record.handle}.")
        except LockedError:  # another process is submitting it just now
            batch.next_look = time.monotonic() + FIRST_LOOK
            return
        except RateLimitError:
            self._wait_for_room(batch)
            return
        except BadRequestError as error:
            await self._end(batch, BatchLook(state="refused", ended=True, refusal=error.message))
            return
        batch.next_look = time.monotonic() + FIRST_LOOK

    async def _handle_of(self, record: BatchRecord, *, fresh: bool) -> str:
        """Return the provider's name of the batch, submitted unless it has it. Raises HttpError after patience, and
        RateLimitError where it has no room beside others of ours."""
        began, tries = time.monotonic(), 0
        while True:
            if not fresh and (handle := await self._find_again(record)):
                return handle
            fresh, record.guessed = False, False
            try:
                rows_file = self._ledger.rows_file(record)
                return await self._service.submit(record.name, record.endpoint, rows_file, record.rows)
            except HttpError as error:
                refused = isinstance(error, RateLimitError)
                if not error.retryable or (refused and len(self._live) > 1):
                    raise
                await self._wait_before_retry(error, began, tries)
                if not refused:
                    await asyncio.sleep(UNCONFIRMED_SECONDS)
            tries += 1

    async def _find_again(self, record: BatchRecord) -> str:
        """Return the provider's name of a batch that may have been submitted; empty where it has none."""
        taken = {other.handle for other in self._ledger.records.values()} | {*record.strangers}
        likely = await self._call_patiently(lambda: self._service.find(record.name, record.rows, record.written))
        record.guessed = True
        return next((handle for handle in likely if handle not in taken), "")

    async def _check_status(self, batch: LiveBatch) -> None:
        if not batch.record.handle:
            await self._confirm(batch, fresh=False)
            return
        record = batch.record
        try:
            look = await self._call_patiently(lambda: self._service.look(record.handle))
        except ModelNotFoundError:
            if time.time() - record.submitted < UNKNOWN_BATCH_SECONDS:
                batch.next_look = time.monotonic() + FIRST_LOOK
                return
            look = BatchLook(state="gone", ended=True)
        record.state, record.done, record.looked = look.state, look.done, time.time()
        if look.ended:
            await self._end(batch, look)
            return
        self._ledger.save(record)
        age = record.looked - (record.submitted or record.written)
        batch.next_look = time.monotonic() + min(LONGEST_LOOK, max(FIRST_LOOK, SHARE_OF_AGE * age))

    async def _end(self, batch: LiveBatch, look: BatchLook) -> None:
        """Take over what a batch has left, and tell those who wait."""
        record = batch.record
        if look.full and (record.rows > 1 or len(self._live) > 1):
            self._wait_for_room(batch)
            return
        if look.files:
            try:
                await self._call_patiently(
                    lambda: self._ledger.keep(
                        record, [self._service.download(record.handle, file) for file in look.files]
                    )
                )
            except ModelNotFoundError:
                look = BatchLook(state="gone", ended=True)
        record.state = look.state
        with_result = await self._give_results(record)
        if record.guessed and record.unknown and not with_result:
            self._take_back(batch)
            return
        for number, key in enumerate(self._ledger.keys(record)):
            if key in with_result:
                continue
            if why := look.bad_rows.get(number) or (not look.bad_rows and look.refusal):
                record.refused += 1
                self._settle(key, record, RowResult(key=key, error=BadRequestError(why, status=400)))
            else:
                record.unanswered += 1
                self._settle(key, record, RowResult(key=key, error=UnansweredError(look.state)))
        record.ended = time.time()
        self._ledger.save(record)
        del self._live[record.name]
        self._hold_until = 0.0
        self._say(batch_summary(record))

    def _take_back(self, batch: LiveBatch) -> None:
        """Prepare to find the batch anew: what was taken for it has results of other requests only."""
        record = batch.record
        self._say(f"{record.name}: {record.handle} is a batch of somebody else.")
        record.strangers.append(record.handle)
        record.handle, record.state, record.done, record.submitted = "", "", 0, 0.0
        self._ledger.results_file(record.name).unlink(missing_ok=True)
        self._ledger.save(record)
        batch.next_look = 0.0

    async def _give_results(self, record: BatchRecord) -> set[str]:
        """Count the results of a batch and give them to those who wait for them; return the keys that have one."""
        keys = set(self._ledger.keys(record))
        seen: set[str] = set()
        for at, (key, place, result) in enumerate(self._ledger.scan(record, self._service.result)):
            if at % OTHERS_TURN == 0:
                await asyncio.sleep(0)
            if result is None:
                record.damaged += 1
            elif key not in keys:
                record.unknown += 1
            elif key in seen:
                record.twice += 1
            else:
                seen.add(key)
                if result.error is None:
                    record.answered += 1
                elif result.error.retryable:
                    record.unanswered += 1
                else:
                    record.refused += 1
                if self._ledger.batch_of.get(key) == record.name:
                    self._ledger.results[key] = place
                self._settle(key, record, result)
        return seen

    def _settle(self, key: str, record: BatchRecord, result: RowResult) -> None:
        waiting = self._waiting.get(key)
        if waiting is not None and self._ledger.batch_of.get(key) == record.name and not waiting.result.done():
            waiting.result.set_result(result)

    def _wait_for_room(self, batch: LiveBatch) -> None:
        """Put the requests of a batch back that the provider has no room for: until another one ends, or half as many
        after a while."""
        keys = [key for key in self._ledger.keys(batch.record) if key in self._waiting]
        self._ledger.drop(batch.record)
        del self._live[batch.record.name]
        self._errors["no room"] += 1
        pause = ROOM_PAUSE
        if not self._live:
            pause = FULL_PAUSE
            self._most_rows = max(1, min(self._most_rows, (len(keys) + 1) // 2))
        when = "when another batch has ended."
        if not self._live:
            when = f"{self._most_rows:,} at a time."
        self._say(f"The provider has no room for {len(keys):,} more requests now; they are submitted " + when)
        self._requeue(keys)
        self._hold_until = time.monotonic() + pause

    def _requeue(self, keys: list[str]) -> None:
        for key in keys:
            if (waiting := self._waiting.get(key)) is not None:
                if not waiting.line:
                    waiting.endpoint, waiting.line = self._service.encoded(key, waiting.request)
                self._put(key, waiting)

    async def _call_patiently(self, call: Callable[[], Awaitable[T]]) -> T:
        """Return what a call returns, tried again after temporary failures. Raises HttpError after patience."""
        began, tries = time.monotonic(), 0
        while True:
            try:
                outcome = await call()
                self._reached = True
                return outcome
            except HttpError as error:
                if not error.retryable:
                    raise
                await self._wait_before_retry(error, began, tries)
            tries += 1

    async def _wait_before_retry(self, error: HttpError, began: float, tries: int) -> None:
        """Wait before another try. Raises `error` where patience has ended."""
        waited, patience = time.monotonic() - began, self._policy.patience
        if not self._reached and self._policy.first_patience is not None:
            patience = self._policy.first_patience
        if waited > patience:
            raise type(error)(f"The batch API has not answered for {format_duration(waited)} ({error})")
        self._errors[error_kind(error)] += 1
        if tries == 1:
            self._say(f"{error} It is tried again, for up to {format_duration(patience)}.")
        server_wait = getattr(error, "retry_after", None) or 0.0
        await asyncio.sleep(
            max(
                server_wait,
                backoff_seconds(tries + 1, base=self._policy.first_delay, cap=self._policy.longest_delay),
            )
        )


def batch_summary(record: BatchRecord) -> str:
    """Return a sentence about a batch that has ended."""
    parts = [f"{record.answered:,} of {record.rows:,} requests are answered"]
    for number, words in (
        (record.refused, "refused"),
        (record.unanswered, "left without an answer"),
        (record.unknown, "results of unknown requests"),
        (record.twice, "second results"),
        (record.damaged, "damaged lines"),
    ):
        if number:
            parts.append(f"{number:,} {words}")
    return f"{record.name} ({record.state}): {', '.join(parts)}."
