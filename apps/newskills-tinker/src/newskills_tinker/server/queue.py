# SPDX-License-Identifier: Apache-2.0
"""Requests that are worked on later, one at a time, and the promises of their answers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from newskills.base.errors import DataError, NewskillsError, UserError, guard
from newskills.base.records import Failure, Row

Answer = Row | bytes
"""JSON, or a protocol buffer."""

EARLIER_REQUESTS_SECONDS = 30.0
"""Seconds for a request that comes after others to wait for them."""
MAX_FETCHED_ANSWERS = 512
"""Answers that were fetched are kept until so many later ones were: a client that lost one asks again."""


class RefusedRequest(NewskillsError):
    """An answer that is an error. `user`: whose doing it is."""

    def __init__(self, message: str, *, user: bool) -> None:
        super().__init__(message)
        self.user = user


class QueuedCall:
    """`run` does it, in the working thread. Jobs of one `group` that wait at the same time are done in one call:
    the first one's `together` gets the `item` of each.
    """

    def __init__(self, request_id: str, run: Callable[[], Answer]) -> None:
        self.request_id, self.run = request_id, run
        self.group: Hashable | None = None
        self.item: Any = None
        self.together: Callable[[Sequence[Any]], Sequence[Answer]] | None = None
        self.answer: asyncio.Future[Answer | RefusedRequest] = asyncio.get_running_loop().create_future()

    def settle(self, answer: Answer | RefusedRequest) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)


class Queue:
    """All jobs. One thread does them: they share the machine's cores, and torch's thread count is global."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "newskills-tinker")
        self._ready: deque[QueuedCall] = deque()
        self._more = asyncio.Event()
        self._jobs: dict[str, QueuedCall] = {}
        self._fetched: deque[str] = deque()
        self._task = asyncio.get_running_loop().create_task(self._work())

    def has_request(self, request_id: str) -> bool:
        return request_id in self._jobs

    def promise(self, job: QueuedCall) -> None:
        """Note a job, whose answer can be waited for from now on; it is done when `submit` has been called."""
        self._jobs[job.request_id] = job

    def submit(self, job: QueuedCall) -> None:
        self._jobs[job.request_id] = job
        self._ready.append(job)
        self._more.set()

    async def wait(self, request_id: str, seconds: float) -> Answer | RefusedRequest | None:
        """Wait for the answer; None where there is none after `seconds`. Raises DataError for a request that is not
        known."""
        job = self._jobs.get(request_id)
        if job is None:
            raise DataError(
                f"There is no request {request_id[:100]}.",
                hint="Its answer was fetched long ago, or the service was restarted.",
            )
        done, _ = await asyncio.wait([job.answer], timeout=seconds)
        if not done:
            return None
        self._fetched.append(request_id)
        while len(self._fetched) > MAX_FETCHED_ANSWERS:
            self._jobs.pop(self._fetched.popleft(), None)
        return job.answer.result()

    def cancel(self, request_id: str) -> None:
        """Cancel a job that has not begun, which is never done."""
        job = self._jobs.get(request_id)
        if job is not None and job in self._ready:
            self._ready.remove(job)
            job.settle(RefusedRequest("The request was cancelled.", user=True))

    async def call(self, work: Callable[[], Any]) -> Any:
        """Call `work` in the working thread, between two jobs."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def close(self) -> None:
        """End after the job that runs."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._thread.shutdown(wait=True, cancel_futures=True)

    async def _work(self) -> None:
        while True:
            while not self._ready:
                self._more.clear()
                await self._more.wait()
            jobs = self._next()
            for job, answer in zip(jobs, await self.call(partial(_run_calls, jobs)), strict=True):
                job.settle(answer)

    def _next(self) -> list[QueuedCall]:
        first = self._ready.popleft()
        if first.group is None:
            return [first]
        jobs = [first, *(job for job in self._ready if job.group == first.group)]
        self._ready = deque(job for job in self._ready if job.group != first.group)
        return jobs


class RequestQueue:
    """The requests of one model, done in the order of their numbers, each once. The first has the number 1."""

    def __init__(self, queue: Queue, name: str) -> None:
        self._queue, self._name = queue, name
        self._next = 1
        self._waiting: dict[int, QueuedCall] = {}

    def add(self, number: int | None, run: Callable[[], Answer]) -> str:
        """Add a request and return its id; a number that was there already is the same request. Raises DataError."""
        if number is None:
            number = self._next
        request_id = f"{self._name}/{number}"
        if number < 1 or (number < self._next and not self._queue.has_request(request_id)):
            raise DataError(f"{self._name} is at request {self._next}; there is no answer to request {number}.")
        if self._queue.has_request(request_id):
            return request_id
        job = QueuedCall(request_id, run)
        self._queue.promise(job)
        self._waiting[number] = job
        self._advance()
        if number in self._waiting:
            asyncio.get_running_loop().call_later(EARLIER_REQUESTS_SECONDS, self._give_up, number)
        return request_id

    def _advance(self) -> None:
        while self._next in self._waiting:
            self._queue.submit(self._waiting.pop(self._next))
            self._next += 1

    def _give_up(self, number: int) -> None:
        """Refuse a request if those before it never came, and go on with the next; their client may have gone on
        without them."""
        job = self._waiting.pop(number, None)
        if job is not None:
            job.settle(
                RefusedRequest(
                    f"Request {self._next} of {self._name} never arrived, so {number} cannot run.", user=True
                )
            )
            self._next = number + 1
            self._advance()


def _run_calls(jobs: Sequence[QueuedCall]) -> list[Answer | RefusedRequest]:
    """Do jobs, and never raise. Where several together fail, each is tried alone: one bad request takes no other with
    it.
    """
    first = jobs[0]
    if first.together is None or len(jobs) == 1:
        return [_run_call(job.run) for job in jobs]
    together = first.together
    outcomes = guard(lambda: together([job.item for job in jobs]))
    if isinstance(outcomes, Failure):
        return [_run_call(job.run) for job in jobs]
    return [*outcomes]


def _run_call(run: Callable[[], Answer]) -> Answer | RefusedRequest:
    def attempt() -> Answer | RefusedRequest:
        try:
            return run()
        except UserError as error:
            return RefusedRequest(str(error), user=True)

    result = guard(attempt)
    if isinstance(result, Failure):
        return RefusedRequest(result.message, user=False)
    return result
