# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Literal

import pytest
from tests.conftest import FakeServerFactory
from tests.server import Answer, Fault, Latency, Script

from newskills.base.aio import run
from newskills.base.errors import HttpError, NewskillsError, ServerError, TransportError
from newskills.base.records import Message, Reply, Request
from newskills.models import make_model
from newskills.models.config import ServerConfig
from newskills.run.engine.asking.retries import RetryPolicy
from newskills.run.engine.endpoint import Endpoint

FAST = RetryPolicy(concurrency=16, max_retries=2, first_delay=0.02, longest_delay=0.2, patience=20)


def ask(text: str) -> Request:
    return Request(messages=[Message(role="user", content=text)])


class Session:
    """An Endpoint on a fake server, what it said, and the fatal error."""

    def __init__(self, base_url: str, policy: RetryPolicy = FAST) -> None:
        config = ServerConfig(server_type="vllm", model="fake", base_url=base_url)
        self.said: list[str] = []
        self.stopped = asyncio.Event()
        model = make_model(config, concurrency=policy.concurrency, environ={})
        self.endpoint = Endpoint(model, policy, say=self.said.append, on_fatal=lambda error: self.stopped.set())

    async def all(self, n: int) -> list[Reply | BaseException]:
        work = [self.endpoint.complete(ask(f"row {i}.")) for i in range(n)]
        return await asyncio.gather(*work, return_exceptions=True)


def session(base_url: str, work: Callable[[Session], Awaitable[None]], policy: RetryPolicy = FAST) -> Session:
    async def main() -> Session:
        found = Session(base_url, policy)
        try:
            await work(found)
        finally:
            await found.endpoint.close()
        return found

    return run(main)


@pytest.mark.parametrize(
    "fault",
    [
        Fault(kind="status", status=429, every=3),
        Fault(kind="status", status=503, every=3),
        Fault(kind="status", status=500, every=4),
        Fault(kind="status", status=408, every=4),
        Fault(kind="reset", every=4),
        Fault(kind="reset_mid_body", every=4),
        Fault(kind="truncate", every=4),
        Fault(kind="malformed", every=4),
    ],
    ids=lambda fault: f"{fault.kind}-{fault.status}",
)
def test_passing_trouble_is_retried(fake_server: FakeServerFactory, fault: Fault) -> None:
    server = fake_server(Script(answer=Answer(kind="echo"), faults=(fault,)))

    async def work(on: Session) -> None:
        replies = await on.all(60)
        assert [r.text for r in replies if isinstance(r, Reply)] == [f"row {i}." for i in range(60)]

    patient = RetryPolicy(concurrency=16, max_retries=10, first_delay=0.01, longest_delay=0.1)
    assert session(server.base_url, work, patient).endpoint.retries >= 5


def test_a_request_that_alone_keeps_failing_is_given_up(fake_server: FakeServerFactory) -> None:
    poison = Fault(kind="status", status=500, marker="row 7.")
    server = fake_server(Script(answer=Answer(kind="echo"), faults=(poison,)))

    async def work(on: Session) -> None:
        replies = await on.all(30)
        assert isinstance(replies[7], ServerError)
        assert sum(isinstance(reply, Reply) for reply in replies) == 29

    session(server.base_url, work)
    assert sum("row 7." in record.prompt for record in server.records) >= 3


def test_the_last_request_of_a_run_is_given_up_as_well(fake_server: FakeServerFactory) -> None:
    """Nobody else is asking: the probe with the last good request proves that the endpoint is alive."""
    server = fake_server(Script(answer=Answer(kind="echo"), faults=(Fault(kind="reset", marker="poison"),)))

    async def work(on: Session) -> None:
        await on.endpoint.complete(ask("good"))
        with pytest.raises(TransportError):
            await on.endpoint.complete(ask("poison"))

    on = session(server.base_url, work)
    assert on.endpoint.fatal is None


@pytest.mark.parametrize("kind", ["status", "reset"])
def test_the_only_request_of_a_run_is_given_up(
    fake_server: FakeServerFactory, kind: Literal["status", "reset"]
) -> None:
    """No request is known to be good: a greeting proves that the endpoint is alive."""
    server = fake_server(Script(answer=Answer(kind="echo"), faults=(Fault(kind=kind, marker="poison"),)))

    async def work(on: Session) -> None:
        with pytest.raises(HttpError):
            await on.endpoint.complete(ask("poison"))

    on = session(server.base_url, work)
    assert on.endpoint.fatal is None
    assert "Hello" in {record.prompt for record in server.records}


@pytest.mark.slow
def test_an_endpoint_that_is_down_is_waited_for(fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=Answer(kind="echo"), latency=Latency(fixed=0.01)))

    async def work(on: Session) -> None:
        first = asyncio.create_task(on.all(200))
        await asyncio.sleep(0.05)
        server.down(1.0)
        replies = await first
        assert all(isinstance(reply, Reply) for reply in replies)

    on = session(server.base_url, work)
    assert len(on.said) == 2
    assert "does not answer" in on.said[0]
    assert "answers again" in on.said[1]


def test_an_endpoint_that_comes_up_late_is_waited_for(fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=Answer(kind="echo")))
    server.down(0.6)

    async def work(on: Session) -> None:
        replies = await on.all(20)
        assert all(isinstance(reply, Reply) for reply in replies)

    session(server.base_url, work)
    assert len(server.records) <= 60


def test_patience_ends(fake_server: FakeServerFactory) -> None:
    server = fake_server()
    server.stop()

    async def work(on: Session) -> None:
        asking = asyncio.create_task(on.all(5))
        await asyncio.wait_for(on.stopped.wait(), 120)
        asking.cancel()

    on = session(server.base_url, work, RetryPolicy(first_delay=0.02, longest_delay=0.1, patience=0.3))
    assert isinstance(on.endpoint.fatal, TransportError)
    assert "has not answered for" in str(on.endpoint.fatal)


def test_retry_after_stops_everybody(fake_server: FakeServerFactory) -> None:
    server = fake_server(
        Script(answer=Answer(kind="echo"), faults=(Fault(kind="status", status=429, first=1, retry_after=0.7),))
    )

    async def work(on: Session) -> None:
        await on.all(1)
        await on.all(10)

    session(server.base_url, work)
    times = [record.started for record in server.records]
    assert times[1] - times[0] >= 0.69


def test_rate_limits_alone_never_use_up_a_request(fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(faults=(Fault(kind="status", status=429, first_per_prompt=6),)))

    async def work(on: Session) -> None:
        assert all(isinstance(reply, Reply) for reply in await on.all(4))

    on = session(server.base_url, work)
    assert on.endpoint.retries == 24


@pytest.mark.parametrize("status", [401, 403, 404])
def test_set_up_errors_are_fatal_and_not_retried(fake_server: FakeServerFactory, status: int) -> None:
    """But for a greeting, which tells a refused key from a refused row."""
    server = fake_server(Script(faults=(Fault(kind="status", status=status),)))

    async def work(on: Session) -> None:
        with pytest.raises(HttpError):
            await on.endpoint.complete(ask("x"))
        assert isinstance(on.endpoint.fatal, NewskillsError)

    session(server.base_url, work)
    asked = [record.prompt for record in server.records if record.method == "POST"]
    assert asked == (["x"] if status == 401 else ["x", "Hello"])


def test_a_time_out_is_retried_and_then_blamed_on_the_request(fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=Answer(kind="echo"), faults=(Fault(kind="hang", marker="slow"),)))

    async def work(on: Session) -> None:
        slow = ask("slow")
        slow.inference = type(slow.inference)(timeout=0.2)
        await on.endpoint.complete(ask("good"))
        began = time.monotonic()
        with pytest.raises(HttpError) as caught:
            await on.endpoint.complete(slow)
        assert caught.value.cause == "timeout"
        assert time.monotonic() - began < 60

    session(server.base_url, work)
