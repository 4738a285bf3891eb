# SPDX-License-Identifier: Apache-2.0
"""Rate limits of one request, and pauses that a server asks for, in virtual time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest
from msgspec import Struct
from tests.run.virtual import SimulatedModel, above, ask, simulated

from newskills.base.errors import HttpError, NewskillsError, RateLimitError
from newskills.base.records import Reply, Request
from newskills.run.engine.asking.retries import RetryPolicy
from newskills.run.engine.endpoint import Endpoint

Meet = Callable[[Request], Awaitable[HttpError | None]]
DAY = 86400.0


class Run(Struct):
    """How the rows of a run ended. `seconds`: until the last one; `narrowest`: the smallest window."""

    replies: list[Reply | BaseException]
    seconds: float
    narrowest: int
    said: list[str]
    fatal: NewskillsError | None
    asked: int

    @property
    def answered(self) -> int:
        return sum(isinstance(reply, Reply) for reply in self.replies)


def asked(monkeypatch: pytest.MonkeyPatch, rows: int, meet: Meet, *, patience: float = 1800.0) -> Run:
    async def main() -> Run:
        model = SimulatedModel(0.5, meet)
        said: list[str] = []
        stopped = asyncio.Event()
        policy = RetryPolicy(concurrency=64, patience=patience)
        endpoint = Endpoint(model, policy, say=said.append, on_fatal=lambda _: stopped.set())
        began, narrowest = time.monotonic(), 64

        async def complete(row: int) -> Reply:
            nonlocal narrowest
            try:
                return await endpoint.complete(ask(f"row {row}."))
            finally:
                narrowest = min(narrowest, endpoint.concurrency)

        work = [asyncio.create_task(complete(row)) for row in range(rows)]
        ended = asyncio.gather(*work, return_exceptions=True)
        stop = asyncio.ensure_future(stopped.wait())
        stop.add_done_callback(lambda _: [task.cancel() for task in work])
        replies = await ended
        stop.cancel()
        seconds = time.monotonic() - began
        await endpoint.close()
        return Run(list(replies), seconds, narrowest, said, endpoint.fatal, model.asked)

    return simulated(monkeypatch, main)


def text_of(request: Request) -> str:
    assert request.messages is not None
    return str(request.messages[0].content)


def refusing(*rows: int, wait: float | None = None) -> Meet:
    """These rows are refused for ever."""
    refused = {f"row {row}." for row in rows}

    async def meet(request: Request) -> HttpError | None:
        return RateLimitError("Request too much", retry_after=wait) if text_of(request) in refused else None

    return meet


@pytest.mark.parametrize("rows", [32, 4000])
@pytest.mark.parametrize("wait", [None, 2.0, 120.0, DAY])
def test_rows_that_always_meet_a_rate_limit_end_unscored_and_hold_up_nobody(
    monkeypatch: pytest.MonkeyPatch, rows: int, wait: float | None
) -> None:
    run = asked(monkeypatch, rows, refusing(3, 17, wait=wait))
    assert run.fatal is None
    assert run.answered == rows - 2
    for row in (3, 17):
        error = run.replies[row]
        assert isinstance(error, RateLimitError)
        assert "while other requests got answers" in str(error)
    assert run.seconds < (120 if wait is None or wait < 60 else 600)
    if rows > 1000:  # at the end of a short run, the window only holds the two
        assert run.narrowest >= 40
    assert run.asked < rows + 80


def test_rows_under_a_real_rate_limit_are_never_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten requests a second for 3,000 rows: most tries are refused at first, and many later."""
    buckets: list[Meet] = []

    async def meet(request: Request) -> HttpError | None:
        if not buckets:  # in virtual time, as all that it measures
            buckets.append(above(10, lambda: RateLimitError("slow down")))
        return await buckets[0](request)

    run = asked(monkeypatch, 3000, meet)
    assert (run.answered, run.fatal) == (3000, None)


def test_a_pause_that_only_one_row_was_told_ends_with_the_first_check(monkeypatch: pytest.MonkeyPatch) -> None:
    told = False

    async def meet(request: Request) -> HttpError | None:
        nonlocal told
        if told or text_of(request) != "row 5.":
            return None
        told = True
        return RateLimitError("wait", retry_after=DAY)

    run = asked(monkeypatch, 500, meet)
    assert (run.answered, run.fatal) == (500, None)
    assert run.seconds < 60
    assert "asks for a pause of 60 min, until " in run.said[0]
    assert "answers other requests" in run.said[1]


@pytest.mark.parametrize("patience", [20.0, 100.0])
def test_patience_ends_a_pause_that_all_are_told(monkeypatch: pytest.MonkeyPatch, patience: float) -> None:
    async def meet(request: Request) -> HttpError | None:
        return RateLimitError("come back tomorrow", retry_after=DAY)

    run = asked(monkeypatch, 100, meet, patience=patience)
    assert isinstance(run.fatal, RateLimitError)
    assert "come back tomorrow" in str(run.fatal)
    assert run.seconds == pytest.approx(patience, abs=15)
    assert run.asked < 100


def test_a_pause_that_the_server_keeps_to_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    until = 0.0

    async def meet(request: Request) -> HttpError | None:
        nonlocal until
        until = until or time.monotonic() + 100
        left = until - time.monotonic()
        return RateLimitError("later", retry_after=left) if left > 0 else None

    run = asked(monkeypatch, 300, meet)
    assert (run.answered, run.fatal) == (300, None)
    assert 100 < run.seconds < 130
    assert run.asked < 300 + 64 + 5
