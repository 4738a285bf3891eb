# SPDX-License-Identifier: Apache-2.0
"""Grading beside generation: records go to worker processes or to a sandbox, verdicts come back on the event loop."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Protocol

import msgspec

from newskills.base.aio import await_guarded, backoff_seconds
from newskills.base.errors import SandboxError, WorkerStartError, boundary
from newskills.base.pool.loop import WORKER_START
from newskills.base.protocols import ExecutingGrader, Kit
from newskills.base.records import CONTENT_FILTER, INSTRUMENT, Cause, Failure, Outcome, Row, Score
from newskills.graders.reading.record_faults import check_figures, fault_of, fault_score

BATCH_SAMPLES = 32
BATCH_EVERY = 0.01
MAX_WAITING_SAMPLES = 2048
AT_ONCE = 64
MAX_TRIES = 3

OnScore = Callable[[Score], None]


class Pool(Protocol):
    """What grading needs of a worker pool."""

    def submit_many(self, payloads: list[Row]) -> list[Future[Score | Failure]]: ...

    def close(self) -> None: ...


class Grading(ABC):
    """Feeds one grader. At most `MAX_WAITING_SAMPLES` records are with it; the caller keeps the others on disk."""

    def __init__(self) -> None:
        self._outstanding = 0
        self._closed = False
        self._change = asyncio.Event()

    @property
    def full(self) -> bool:
        return self._outstanding >= MAX_WAITING_SAMPLES

    @abstractmethod
    def submit(self, record: Row, on_score: OnScore) -> None:
        """Queue a record for grading; `on_score` is called on the loop with the verdict, `unscored` where grading
        failed."""

    @abstractmethod
    def close(self) -> None:
        """Stop delivering verdicts."""

    async def until(self, condition: Callable[[], bool]) -> None:
        """Return when `condition` holds; it is looked at whenever verdicts have come."""
        while not condition():
            self._change.clear()
            await self._change.wait()


class PoolGrading(Grading):
    """A grader that computes, in worker processes.

    `on_broken` is called where no worker can be started; the records then stay without a verdict, for another run.
    """

    def __init__(
        self, pool: Pool, grader: str, on_broken: Callable[[WorkerStartError], None] | None = None
    ) -> None:
        super().__init__()
        self._pool = pool
        self._grader = grader
        self._on_broken = on_broken
        self._batch: list[tuple[Row, OnScore]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._results: deque[tuple[OnScore, Future[Score | Failure]]] = deque()
        self._announced = False
        self._loop = asyncio.get_running_loop()

    def submit(self, record: Row, on_score: OnScore) -> None:
        self._outstanding += 1
        self._batch.append((record, on_score))
        if len(self._batch) >= BATCH_SAMPLES:
            self._send()
        elif self._timer is None:
            self._timer = self._loop.call_later(BATCH_EVERY, self._send)

    def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._pool.close()

    def _send(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        batch, self._batch = self._batch, []
        if not batch:
            return
        futures = self._pool.submit_many([record for record, _ in batch])
        for (_, on_score), future in zip(batch, futures, strict=True):
            future.add_done_callback(partial(self._receive, on_score))

    def _receive(self, on_score: OnScore, future: Future[Score | Failure]) -> None:
        """Take a result in a thread of the pool, and have it delivered on the loop."""
        self._results.append((on_score, future))
        if not self._announced:
            self._announced = True
            self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._announced = False
        while self._results:
            on_score, future = self._results.popleft()
            self._outstanding -= 1
            if future.cancelled() or self._closed:
                continue
            try:
                on_score(as_score(future.result(), self._grader))
            except WorkerStartError as error:
                if self._on_broken is None:
                    on_score(unscored_score(boundary(error), self._grader, {}))
                else:
                    self._on_broken(error)
        self._change.set()


class ExecutingGrading(Grading):
    """A grader that runs code, awaited on the loop, `at_once` records at a time; the sandbox may do fewer at once."""

    def __init__(self, grader: ExecutingGrader, kit: Kit, *, at_once: int = AT_ONCE) -> None:
        super().__init__()
        self._grader, self._kit = grader, kit
        self._gate = asyncio.Semaphore(at_once)
        self._tasks: set[asyncio.Task[None]] = set()

    def submit(self, record: Row, on_score: OnScore) -> None:
        self._outstanding += 1
        task = asyncio.create_task(self._grade(record, on_score))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        self._closed = True
        for task in self._tasks:
            task.cancel()

    async def _grade(self, record: Row, on_score: OnScore) -> None:
        async with self._gate:
            score = await execute_grader(self._grader, record, self._kit)
        self._outstanding -= 1
        if not self._closed:
            on_score(score)
        self._change.set()


async def execute_grader(grader: ExecutingGrader, record: Row, kit: Kit) -> Score:
    """Return the verdict of one record; where the sandbox fails and the failure may pass, the grader is asked again."""
    fault = fault_of(grader, record)
    if fault is not None:
        return fault_score(grader, fault)

    async def once() -> Score:
        score = await grader.grade(record, kit)
        check_figures(grader, score)
        return score

    async def patiently() -> Score:
        for attempt in range(1, MAX_TRIES):
            try:
                return await once()
            except SandboxError as error:
                if not error.retryable:
                    raise
                await asyncio.sleep(backoff_seconds(attempt))
        return await once()

    result = await await_guarded(patiently())
    if isinstance(result, Score):
        return result
    return unscored_score(result, f"{grader.name}@{grader.version}", {})


def as_score(result: Score | Failure, grader: str) -> Score:
    """Return the verdict; where the worker failed, that says nothing about the answer: unscored, with its cause.

    Raises WorkerStartError where no worker can be started, which no other record would change.
    """
    if isinstance(result, Score):
        return result
    if result.kind == WORKER_START:
        raise WorkerStartError(result.message)
    if result.cause == "timeout":
        blamed = result
    else:
        blamed = msgspec.structs.replace(result, cause="grader")
    return unscored_score(blamed, grader, {"predicted_answer": None, "symbolic_correct": None})


def unscored_score(failure: Failure, grader: str, fields: Row) -> Score:
    """Return the score of a sample without a verdict; a failure that is nobody's fault in particular is the
    grader's."""
    cause: Cause = failure.cause if failure.cause in INSTRUMENT - {"harness"} else "grader"
    return Score(outcome="unscored", fields=fields, grader=grader, why=failure.message, cause=cause)


def verdict_fields(record: Row, score: Score) -> Row:
    """Return the fields that a verdict adds to its record.

    What is no answer or wrong is blamed on truncation where the text was cut off (finish_reason `length`, thinking that
    never ended), else on the model. Where a content filter cut it off, it is no verdict.
    """
    if record.get("finish_reason") == CONTENT_FILTER and score.outcome in ("no_answer", "wrong"):
        why = "A content filter of the endpoint withheld the answer."
        score = msgspec.structs.replace(score, outcome="unscored", cause=CONTENT_FILTER, why=why)
    fields: Row = {**score.fields, "outcome": score.outcome}
    cause = _score_cause(record, score)
    if cause is not None:
        fields["outcome_cause"] = cause
    fields["grader"] = score.grader
    if score.why:
        fields["why"] = score.why
    return fields


def _score_cause(record: Row, score: Score) -> Cause | None:
    outcome: Outcome = score.outcome
    if outcome == "correct":
        return None
    cut = record.get("finish_reason") == "length" or record.get("_generation_finished_thinking") is False
    if outcome in ("no_answer", "wrong") and cut:
        return "truncation"
    return score.cause or ("grader" if outcome == "unscored" else "model")
