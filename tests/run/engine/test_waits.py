# SPDX-License-Identifier: Apache-2.0
"""Patience and time-outs, in virtual time."""

from __future__ import annotations

import asyncio
import time

import pytest
from tests.run.virtual import SimulatedModel, ask, simulated

from newskills.base.errors import ConnectError, HttpError, RateLimitError, RequestTimeoutError, ServerError
from newskills.base.records import Reply, Request
from newskills.run.engine.asking.retries import RetryPolicy
from newskills.run.engine.endpoint import Endpoint
from newskills.run.engine.progress import SlowRequests, Snapshot, describe_progress
from newskills.run.engine.waits import RequestInFlight


class Watched:
    """An endpoint on a simulated model, what it said, and when it gave up."""

    def __init__(self, model: SimulatedModel, policy: RetryPolicy) -> None:
        self.began = time.monotonic()
        self.said: list[str] = []
        self.stopped: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self.endpoint = Endpoint(model, policy, say=self.said.append, on_fatal=self._stop)

    def _stop(self, error: Exception) -> None:
        self.stopped.set_result(time.monotonic() - self.began)


def seconds_until_it_stops(
    monkeypatch: pytest.MonkeyPatch, error: HttpError, policy: RetryPolicy, rows: int = 20
) -> float:
    async def main() -> float:
        async def meet(request: Request) -> HttpError:
            return error

        on = Watched(SimulatedModel(1.0, meet), policy)
        asking = [asyncio.create_task(on.endpoint.complete(ask(f"row {i}"))) for i in range(rows)]
        waited = await on.stopped
        for task in asking:
            task.cancel()
        await on.endpoint.close()
        return waited

    return simulated(monkeypatch, main)


@pytest.mark.parametrize(
    "error",
    [
        ConnectError("refused"),
        ServerError("down", status=500),
        ServerError("busy", status=503),
        RateLimitError("no"),
    ],
)
@pytest.mark.parametrize("rows", [1, 20])
def test_patience_of_30_seconds_is_30_seconds(
    monkeypatch: pytest.MonkeyPatch, error: HttpError, rows: int
) -> None:
    waited = seconds_until_it_stops(monkeypatch, error, RetryPolicy(patience=30.0), rows)
    assert 29.9 <= waited <= 31


def test_an_address_that_never_answered_is_given_up_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = RetryPolicy(patience=1800.0, first_patience=60.0)
    assert 59.9 <= seconds_until_it_stops(monkeypatch, ConnectError("refused"), policy) <= 61
    assert 59.9 <= seconds_until_it_stops(monkeypatch, ServerError("a page", status=200), policy) <= 61
    loading = ServerError("loading", status=503)
    assert seconds_until_it_stops(monkeypatch, loading, policy) >= 1799


def test_a_certificate_that_is_not_trusted_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    error = ConnectError("The certificate is not trusted.", certificate=True)
    assert seconds_until_it_stops(monkeypatch, error, RetryPolicy()) < 1


def test_long_requests_under_way_are_no_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others are refused for longer than patience lasts, and a probe is answered: nothing is given up."""

    async def main() -> list[Reply | BaseException]:
        async def meet(request: Request) -> HttpError | None:
            refused = time.monotonic() < on.began + 100 and request.inference.tokens_to_generate != 1
            return RateLimitError("full") if refused and model.at_work else None

        model = SimulatedModel(90.0, meet)
        on = Watched(model, RetryPolicy(patience=30.0, concurrency=2))
        found = await asyncio.gather(
            *(on.endpoint.complete(ask(f"{i}")) for i in range(2)), return_exceptions=True
        )
        await on.endpoint.close()
        return found

    assert all(isinstance(reply, Reply) for reply in simulated(monkeypatch, main))


@pytest.mark.parametrize(("tokens", "most"), [(None, 5000), (200, 5000)])
def test_a_row_that_hangs_is_given_up_by_the_length_of_the_others(
    monkeypatch: pytest.MonkeyPatch, tokens: int | None, most: float
) -> None:
    async def main() -> tuple[float, BaseException | None, SlowRequests | None, list[str]]:
        async def meet(request: Request) -> HttpError | None:
            if request.messages is not None and request.messages[0].content == "row 7":
                await asyncio.sleep(1e6)
            return None

        on = Watched(SimulatedModel(5.0, meet), RetryPolicy())
        rows = [
            asyncio.create_task(on.endpoint.complete(ask(f"row {i}", tokens_to_generate=tokens)))
            for i in range(100)
        ]
        await asyncio.sleep(200)
        slow = on.endpoint.slow
        await asyncio.wait(rows)
        waited = time.monotonic() - on.began
        await on.endpoint.close()
        return waited, rows[7].exception(), slow, on.said

    waited, error, slow, said = simulated(monkeypatch, main)
    assert isinstance(error, RequestTimeoutError)
    assert waited < most
    assert slow is not None
    assert (slow.count, round(slow.waited)) == (1, 200)
    assert abs(200 + slow.left - waited) < 60
    assert "No reply came within 5 min, while the longest of 99 others took 5 s." in said[0]


def test_few_rows_tell_less_but_they_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> tuple[float, float]:
        async def meet(request: Request) -> HttpError | None:
            return None

        on = Watched(SimulatedModel(5.0, meet), RetryPolicy())
        waits, request = on.endpoint._waits, ask("any")
        before = waits.timeout(request, 0)
        await asyncio.gather(*(on.endpoint.complete(ask(f"row {i}")) for i in range(4)))
        after = waits.timeout(request, 0)
        await on.endpoint.close()
        return before, after

    assert simulated(monkeypatch, main) == (14400.0, 1500.0)


def test_a_long_answer_among_short_ones_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> object:
        async def meet(request: Request) -> HttpError | None:
            if request.messages is not None and request.messages[0].content == "row 7":
                await asyncio.sleep(900)
            return None

        on = Watched(SimulatedModel(5.0, meet), RetryPolicy())
        rows = [on.endpoint.complete(ask(f"row {i}")) for i in range(100)]
        found = await asyncio.gather(*rows, return_exceptions=True)
        await on.endpoint.close()
        return found[7]

    assert isinstance(simulated(monkeypatch, main), Reply)


def test_the_line_tells_of_the_slowest() -> None:
    last = Snapshot(rows=100, done=99, fresh=99, slow=SlowRequests(1, 720.0, 1980.0))
    assert describe_progress(last, 720.0) == "99/100 rows · 0.1 rows/s · 1 row waits 12 min; gives up in 33 min"
    some = Snapshot(rows=100, done=50, fresh=50, left=100.0, slow=SlowRequests(2, 720.0, 1980.0))
    assert describe_progress(some, 100.0) == (
        "50/100 rows · 0.5 rows/s · 2 min left · 2 rows wait, the oldest 12 min; gives up in 33 min"
    )


@pytest.mark.parametrize("stopped", [False, True])
def test_a_timeout_is_told_from_the_end_of_the_run(stopped: bool) -> None:
    async def wait() -> tuple[bool, int]:
        task = asyncio.current_task()
        assert task is not None
        flight = RequestInFlight(Request(), 0.0, 0, task, task.cancelling())
        flight.expire()
        flight.expire()
        if stopped:
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.get_running_loop().create_future()
        return flight.take_back(), task.cancelling()

    assert asyncio.run(wait()) == (not stopped, int(stopped))
