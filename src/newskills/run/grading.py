# SPDX-License-Identifier: Apache-2.0
"""Grading beside generation: records go to worker processes, verdicts come back on the event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Protocol

from newskills.base.records import Cause, Failure, Outcome, Row, Score

BATCH = 32
BATCH_EVERY = 0.01
WINDOW = 2048

OnScore = Callable[[Score], None]


class Pool(Protocol):
    """What grading needs of a worker pool."""

    def submit_many(self, payloads: list[Row]) -> list[Future[Score | Failure]]: ...

    def close(self) -> None: ...


class Grading:
    """Feeds one grader's pool. At most `WINDOW` records are with the pool; the caller keeps the others on disk."""

    def __init__(self, pool: Pool, grader: str) -> None:
        self._pool = pool
        self._grader = grader
        self._batch: list[tuple[Row, OnScore]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._results: deque[tuple[OnScore, Future[Score | Failure]]] = deque()
        self._announced = self._closed = False
        self._outstanding = 0
        self._change = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    @property
    def full(self) -> bool:
        return self._outstanding >= WINDOW

    def submit(self, record: Row, on_score: OnScore) -> None:
        """`on_score` is called on the loop with the verdict; a failed grading is an `unscored` verdict."""
        self._outstanding += 1
        self._batch.append((record, on_score))
        if len(self._batch) >= BATCH:
            self._send()
        elif self._timer is None:
            self._timer = self._loop.call_later(BATCH_EVERY, self._send)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Returns when `condition` holds; it is looked at whenever verdicts have come."""
        while not condition():
            self._change.clear()
            await self._change.wait()

    def close(self) -> None:
        """No verdict is delivered any more."""
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
            future.add_done_callback(partial(self._arrived, on_score))

    def _arrived(self, on_score: OnScore, future: Future[Score | Failure]) -> None:
        """Called in a thread of the pool."""
        self._results.append((on_score, future))
        if not self._announced:
            self._announced = True
            self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._announced = False
        while self._results:
            on_score, future = self._results.popleft()
            self._outstanding -= 1
            if not future.cancelled() and not self._closed:
                on_score(as_score(future.result(), self._grader))
        self._change.set()


def as_score(result: Score | Failure, grader: str) -> Score:
    """A grading that failed says nothing about the answer: unscored, with its cause."""
    if isinstance(result, Score):
        return result
    cause: Cause = "timeout" if result.cause == "timeout" else "grader"
    fields: Row = {"predicted_answer": None, "symbolic_correct": None}
    return Score(outcome="unscored", fields=fields, grader=grader, why=result.message, cause=cause)


def verdict_fields(record: Row, score: Score) -> Row:
    """The fields that a verdict adds to its record.

    Without an answer, a text that was cut off (finish_reason `length`, thinking that never ended) is blamed on
    truncation, else on the model.
    """
    fields: Row = {**score.fields, "outcome": score.outcome}
    cause = _cause(record, score)
    if cause is not None:
        fields["outcome_cause"] = cause
    fields["grader"] = score.grader
    if score.why:
        fields["why"] = score.why
    return fields


def _cause(record: Row, score: Score) -> Cause | None:
    outcome: Outcome = score.outcome
    if outcome == "correct":
        return None
    cut = record.get("finish_reason") == "length" or record.get("_generation_finished_thinking") is False
    if outcome == "no_answer" and cut:
        return "truncation"
    return score.cause or ("grader" if outcome == "unscored" else "model")
