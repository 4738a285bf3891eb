# SPDX-License-Identifier: Apache-2.0
"""One level of load at work: requests are sent, timed and recorded; none is sent twice."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Iterator

import msgspec

from newskills.base.errors import ConfigError, ConnectError, HttpError, NewskillsError, StorageError
from newskills.base.http.connection import EVENT_WATCH
from newskills.base.protocols import Model, Tokenizer
from newskills.base.records import Reply, Request, Row
from newskills.base.store import AppendLog
from newskills.models.decode import brings_tokens
from newskills.run.engine.progress import error_kind
from newskills.run.load_testing.figures import UNFINISHED
from newskills.run.load_testing.records import LevelEnd, LevelStart, LoadLevel, MeasuredLevel, MeasuredRequest
from newskills.run.load_testing.schedule import due_times

NO_TOKENS = "no tokens"
"""Kind of the failure of a stream that ends without any."""
SHORTEST_GRACE_SECONDS = 10.0
COUNTED_REPLIES = 32
"""Replies of a level whose tokens are counted again."""
GIVE_UP = 50
"""Connections in a row that fail, after which the server is taken for gone."""
DIGITS = 6
"""Of recorded seconds."""
LONGEST_MESSAGE = 300


class LoadGenerator:
    """Sends the requests of one level to `model`, and writes what came of each to `log` (None: nowhere).

    Requests that are in flight when the level's time is over have as long again, at least `SHORTEST_GRACE_SECONDS`;
    then they are cut. `tokenizer` counts the tokens of some replies, beside what the server says.

    `run` raises ConfigError for a setting that the backend cannot honour, ConnectError where the server is gone,
    StorageError.
    """

    def __init__(
        self, model: Model, log: AppendLog | None, load: LoadLevel, tokenizer: Tokenizer | None = None
    ) -> None:
        self._model, self._log, self._load, self._tokenizer = model, log, load, tokenizer
        self._replies: list[Reply] = []
        self._deadline: float | None = None
        self._requests: list[MeasuredRequest] = []
        self._begin = 0.0
        self._in_flight = self._max_in_flight = 0
        self._failed_connections = 0
        self._numbers = iter(range(1 << 62))
        self._broken: NewskillsError | None = None

    async def run(self, requests: Iterator[Request], workload: Row) -> MeasuredLevel:
        """Measure the level with the next of `requests`."""
        load = self._load
        if load.requests:
            requests = iter([next(requests) for _ in range(load.requests)])
        start = LevelStart(level=load.name, load=load, workload=workload, unix_time=time.time())
        self._write(start)
        gc.collect()
        gc.freeze()  # a pause of the collector would be measured
        self._begin, cpu = time.perf_counter(), time.process_time()
        if load.seconds:
            grace = max(load.seconds, SHORTEST_GRACE_SECONDS)
            self._deadline = asyncio.get_running_loop().time() + load.seconds + grace
        try:
            await (
                self._run_closed_loop(requests) if load.kind == "concurrency" else self._run_open_loop(requests)
            )
        finally:
            gc.unfreeze()
        if self._broken is not None:
            raise self._broken
        end = LevelEnd(
            level=load.name,
            seconds=round(time.perf_counter() - self._begin, DIGITS),
            cpu_seconds=round(time.process_time() - cpu, DIGITS),
            max_in_flight=self._max_in_flight,
        )
        end = await self._with_counts(end)
        self._write(end)
        if self._log is not None:
            self._log.fsync()
        return MeasuredLevel(start=start, requests=self._requests, end=end)

    async def _run_closed_loop(self, requests: Iterator[Request]) -> None:
        """Keep so many requests in flight."""

        async def worker() -> None:
            for request in requests:
                now = time.perf_counter() - self._begin
                if self._broken is not None or (self._load.seconds and now >= self._load.seconds):
                    return
                await self._ask(request, now)

        await asyncio.gather(*(worker() for _ in range(int(self._load.value))))

    async def _run_open_loop(self, requests: Iterator[Request]) -> None:
        """Send requests when they are due, whatever became of those before."""
        gate = asyncio.Semaphore(self._load.most or 1 << 30)
        tasks: list[asyncio.Task[None]] = []

        async def gated(request: Request, due: float) -> None:
            async with gate:
                if self._broken is None:
                    await self._ask(request, due)

        async for due in self._arrivals():
            tasks.append(asyncio.create_task(gated(next(requests), due)))
        await asyncio.gather(*tasks)

    async def _arrivals(self) -> AsyncIterator[float]:
        """Yield the due times, each when it has come."""
        for due in due_times(self._load):
            if self._load.seconds and due >= self._load.seconds:
                return
            while (wait := self._begin + due - time.perf_counter()) > 0:  # timers may be a millisecond early
                await asyncio.sleep(wait)
            if self._broken is not None:
                return
            yield due

    async def _ask(self, request: Request, due: float) -> None:
        tokens: list[float] = []
        events = 0

        def watch(arrived: float, event: bytes) -> None:
            nonlocal events
            events += 1
            if brings_tokens(event):
                tokens.append(round(arrived - sent, DIGITS))

        number = next(self._numbers)
        self._in_flight += 1
        self._max_in_flight = max(self._max_in_flight, self._in_flight)
        watching = EVENT_WATCH.set(watch)
        sent = time.perf_counter()
        try:
            async with asyncio.timeout_at(self._deadline):
                outcome: Reply | HttpError | None = await self._model.complete(request)
        except TimeoutError:
            outcome = None
        except HttpError as error:
            outcome = error
        except ConfigError as error:
            self._broken = error
            return
        finally:
            ended = time.perf_counter()
            EVENT_WATCH.reset(watching)
            self._in_flight -= 1
        self._note_connection(outcome)
        if self._tokenizer is not None and isinstance(outcome, Reply) and len(self._replies) < COUNTED_REPLIES:
            self._replies.append(outcome)
        record = MeasuredRequest(
            number=number,
            due=round(due, DIGITS),
            sent=round(sent - self._begin, DIGITS),
            ended=round(ended - sent, DIGITS),
            tokens=tokens,
            **_outcome_fields(outcome, empty=events > 0 and not tokens),
        )
        self._requests.append(record)
        try:
            self._write(record)
        except StorageError as error:
            self._broken = error

    def _write(self, record: LevelStart | MeasuredRequest | LevelEnd) -> None:
        if self._log is not None:
            self._log.append(record)
            self._log.write()

    async def _with_counts(self, end: LevelEnd) -> LevelEnd:
        """Return `end` with the tokens of some replies, as the server and as the tokenizer counts them."""
        if self._tokenizer is None:
            return end
        replies = [reply for reply in self._replies if reply.usage.output_tokens]
        texts = [f"{reply.reasoning or ''}{reply.text}" for reply in replies]
        return msgspec.structs.replace(
            end,
            recounted_replies=len(replies),
            recounted_usage=sum(reply.usage.output_tokens or 0 for reply in replies),
            recounted_tokens=sum([len(await asyncio.to_thread(self._tokenizer.encode, text)) for text in texts]),
        )

    def _note_connection(self, outcome: Reply | HttpError | None) -> None:
        if not isinstance(outcome, ConnectError):
            self._failed_connections = 0
            return
        self._failed_connections += 1
        if self._failed_connections >= GIVE_UP:
            self._broken = outcome


def _outcome_fields(outcome: Reply | HttpError | None, *, empty: bool) -> Row:
    """Return the fields of a record that tell of the reply, or of the failure (None: it was cut); `empty`: a stream
    without tokens."""
    if outcome is None:
        return {"error": UNFINISHED}
    if isinstance(outcome, HttpError):
        return {"error": error_kind(outcome), "status": outcome.status, "message": str(outcome)[:LONGEST_MESSAGE]}
    usage = outcome.usage
    fields: Row = {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "finish_reason": outcome.finish_reason,
    }
    if empty:
        return {**fields, "error": NO_TOKENS}
    return fields
