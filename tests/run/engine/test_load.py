# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest
from msgspec import Struct
from tests.run.virtual import SimulatedModel, above, ask, at_random, simulated

from newskills.base.errors import HttpError, RateLimitError, ServerError, TransportError
from newskills.base.records import Request
from newskills.run.engine.asking.retries import RetryPolicy
from newskills.run.engine.endpoint import Endpoint

LATENCY, IN_FLIGHT, ROWS = 0.1, 256, 5000
Meet = Callable[[Request], Awaitable[HttpError | None]]


class Measured(Struct):
    """rows a second, requests a second after the first two seconds, rows given up, the smallest and last window."""

    rows: float
    asked: float
    lost: int
    narrowest: int
    last: int


def measured(
    monkeypatch: pytest.MonkeyPatch, meet: Callable[[], Meet], *, rows: int = ROWS, latency: float = LATENCY
) -> Measured:
    async def main() -> Measured:
        model = SimulatedModel(latency, meet())
        endpoint = Endpoint(model, RetryPolicy(concurrency=IN_FLIGHT), say=lambda _: None, on_fatal=lambda _: None)
        waiting, lost, narrowest = iter(range(rows)), 0, IN_FLIGHT
        began, early = time.monotonic(), 0

        async def worker() -> None:
            nonlocal lost, narrowest, early
            for row in waiting:
                try:
                    await endpoint.complete(ask(f"row {row}"))
                except HttpError:
                    lost += 1
                narrowest = min(narrowest, endpoint.concurrency)
                if time.monotonic() - began < 2:
                    early = model.asked

        await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))
        seconds = time.monotonic() - began
        await endpoint.close()
        later = (model.asked - early) / max(seconds - 2, 0.1)
        return Measured(rows / seconds, later, lost, narrowest, endpoint.concurrency)

    return simulated(monkeypatch, main)


async def _nothing(request: Request) -> None:
    return None


FAILURES: dict[str, Callable[[], HttpError]] = {
    "429": lambda: RateLimitError("scripted"),
    "503": lambda: ServerError("scripted", status=503),
    "500": lambda: ServerError("scripted", status=500),
    "reset": lambda: TransportError("scripted"),
}


@pytest.mark.parametrize("kind", FAILURES)
@pytest.mark.slow
def test_single_failures_cost_little(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    undisturbed = measured(monkeypatch, lambda: _nothing, rows=20000)
    found = measured(monkeypatch, lambda: at_random(0.05, FAILURES[kind]), rows=20000)
    assert found.rows >= 0.85 * undisturbed.rows
    assert found.lost <= 1  # one in 160,000 fails four times


@pytest.mark.parametrize("kind", ["429", "503"])
@pytest.mark.parametrize(("rate", "rows"), [(500, 5000), (50, 1000), (5, 200)])
def test_a_limit_of_requests_a_second_is_found_and_kept(
    monkeypatch: pytest.MonkeyPatch, kind: str, rate: int, rows: int
) -> None:
    found = measured(monkeypatch, lambda: above(rate, FAILURES[kind]), rows=rows)
    assert 0.9 * rate <= found.rows
    assert found.asked <= 1.15 * rate
    assert found.lost == 0


@pytest.mark.parametrize("places", [2, 20])
def test_a_limit_of_requests_at_once_is_found_and_kept(monkeypatch: pytest.MonkeyPatch, places: int) -> None:
    def full() -> Meet:
        async def meet(request: Request) -> HttpError | None:
            return RateLimitError("full") if model[0].at_work >= places else None

        return meet

    model: list[SimulatedModel] = []
    original = SimulatedModel.__init__

    def remembered(self: SimulatedModel, latency: float, meet: Meet) -> None:
        original(self, latency, meet)
        model.append(self)

    monkeypatch.setattr(SimulatedModel, "__init__", remembered)
    found = measured(monkeypatch, full, rows=100 * places)
    assert found.rows >= 0.8 * places / LATENCY
    assert found.narrowest < IN_FLIGHT
    assert found.asked <= 1.5 * places / LATENCY


@pytest.mark.parametrize("share", [0.25, pytest.param(0.4, marks=pytest.mark.nightly)])
def test_failures_that_the_load_does_not_cause_do_not_slow_down_for_good(
    monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    undisturbed = measured(monkeypatch, lambda: _nothing, rows=20000)
    found = measured(monkeypatch, lambda: at_random(share, FAILURES["429"]), rows=20000)
    assert found.rows >= 0.5 * (1 - share) * undisturbed.rows


def test_the_window_comes_back_when_the_overload_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    def for_a_while() -> Meet:
        limited, until = above(50, FAILURES["503"]), time.monotonic() + 5

        async def meet(request: Request) -> HttpError | None:
            return await limited(request) if time.monotonic() < until else None

        return meet

    found = measured(monkeypatch, for_a_while, rows=20000)
    assert found.narrowest < IN_FLIGHT / 4
    assert found.last == IN_FLIGHT
    assert found.rows >= 20000 / (5 + 5 + 20000 * LATENCY / IN_FLIGHT)
    assert found.lost == 0


def test_an_endpoint_that_refuses_all_for_a_minute_is_not_flooded(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed() -> Meet:
        until = time.monotonic() + 60

        async def meet(request: Request) -> HttpError | None:
            return RateLimitError("closed") if time.monotonic() < until else None

        return meet

    found = measured(monkeypatch, closed)
    assert found.asked * 60 < 3 * ROWS
    assert found.rows >= ROWS / 90
