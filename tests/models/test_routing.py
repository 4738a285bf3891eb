# SPDX-License-Identifier: Apache-2.0
"""Several servers of one model: who is asked, who is left out, and who comes back."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest
from tests.conftest import FakeServerFactory
from tests.run.support import make_unit, records, run, write_input
from tests.server import Answer, Fault, Latency, Script

from newskills.base.errors import ConfigError, ConnectError, ServerError
from newskills.base.records import Message, Reply, Request
from newskills.models import make_model
from newskills.models.config import ServerConfig
from newskills.models.routing import FEW, RoutedModel

ECHO = Script(answer=Answer(kind="echo"))


class Desk:
    """A model that notes who asked; `trouble` is what it raises."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.name = "m"
        self.seconds = seconds
        self.asked: list[str] = []
        self.active = self.most = 0
        self.trouble: Exception | None = None

    async def complete(self, request: Request) -> Reply:
        assert request.messages is not None
        self.asked.append(str(request.messages[-1].content))
        self.active += 1
        self.most = max(self.most, self.active)
        await asyncio.sleep(self.seconds)
        self.active -= 1
        if self.trouble is not None:
            raise self.trouble
        return Reply(text="")

    async def close(self) -> None:
        self.asked.clear()


def question(*turns: str) -> Request:
    roles = ("user", "assistant")
    return Request(messages=[Message(role=roles[at % 2], content=text) for at, text in enumerate(turns)])


def desks(count: int, seconds: float = 0.0) -> tuple[list[Desk], RoutedModel]:
    made = [Desk(seconds) for _ in range(count)]
    return made, RoutedModel({f"http://s{at}": desk for at, desk in enumerate(made)})


def test_what_begins_alike_goes_to_one_server() -> None:
    servers, model = desks(4)

    async def main() -> None:
        for row in range(40):
            for turns in (["", ""], ["", "a", "b"], ["", "a", "b", "c", "d"]):
                await model.complete(question(f"row {row}", *turns[1:]))

    asyncio.run(main())
    seen = Counter(number for number, desk in enumerate(servers) for _ in desk.asked)
    assert sum(seen.values()) == 120
    assert all(count % 3 == 0 and count for count in seen.values())


def test_a_beginning_that_all_share_decides_nothing() -> None:
    servers, model = desks(4)

    async def main() -> None:
        for row in range(200):
            for turn in ("", "again"):
                await model.complete(
                    question("few-shot examples " * 100 + f"row {row}", *([turn] if turn else []))
                )

    asyncio.run(main())
    assert min(len(desk.asked) for desk in servers) > 40


def test_no_server_has_many_more_than_the_others() -> None:
    servers, model = desks(4, 0.01)

    async def main() -> None:
        await asyncio.gather(*(model.complete(question("the same")) for _ in range(100)))

    asyncio.run(main())
    assert sum(len(desk.asked) for desk in servers) == 100
    assert max(desk.most for desk in servers) <= 32


def test_other_servers_keep_their_prompts_when_one_is_added() -> None:
    def owners(count: int) -> dict[str, int]:
        servers, model = desks(count)

        async def main() -> None:
            for row in range(100):
                await model.complete(question(f"row {row}"))

        asyncio.run(main())
        return {text: number for number, desk in enumerate(servers) for text in desk.asked}

    before, after = owners(4), owners(5)
    moved = [text for text in before if before[text] != after[text]]
    assert 0 < len(moved) < 40
    assert {after[text] for text in moved} == {4}


def test_a_server_that_is_gone_is_left_out_and_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("newskills.models.routing.time.monotonic", lambda: now[0])
    servers, model = desks(2)
    lost = servers[0]
    lost.trouble = ConnectError("refused")

    async def ask(count: int) -> None:
        for row in range(count):
            await model.complete(question(f"row {row}"))

    asyncio.run(ask(40))
    assert len(lost.asked) == 1
    assert len(servers[1].asked) == 40
    now[0] += 1.1
    asyncio.run(ask(40))
    now[0] += 1.1
    asyncio.run(ask(40))
    assert len(lost.asked) == 2
    lost.trouble = None
    now[0] += 2.0
    asyncio.run(ask(40))
    assert len(lost.asked) > 10


def test_a_server_that_has_not_answered_gets_few_requests() -> None:
    """It still warms up: the others get what would be its share."""
    servers, model = desks(2)
    warm, cold = servers
    cold.seconds = 1e6

    async def main() -> None:
        rows = iter(range(200))

        async def ask() -> None:
            for row in rows:
                await model.complete(question(f"row {row}"))

        asking = [asyncio.create_task(ask()) for _ in range(8)]
        while len(warm.asked) + len(cold.asked) < 200 and cold.active < len(asking):
            await asyncio.sleep(0)
        for task in asking:
            task.cancel()

    asyncio.run(main())
    assert 0 < len(cold.asked) <= FEW
    assert len(warm.asked) >= 200 - FEW


def test_a_server_without_luck_is_left_out_and_its_errors_are_told() -> None:
    servers, model = desks(2)
    servers[0].trouble = ServerError("engine is dead", status=500)
    told = 0

    async def main() -> None:
        nonlocal told
        for row in range(40):
            try:
                await model.complete(question(f"row {row}"))
            except ServerError:
                told += 1

    asyncio.run(main())
    assert told == len(servers[0].asked) == 3


def test_a_request_that_ends_servers_does_not_meet_all_of_them() -> None:
    servers, model = desks(5)
    for desk in servers:
        desk.trouble = ConnectError("refused")
    with pytest.raises(ConnectError):
        asyncio.run(model.complete(question("poison")))
    assert sum(len(desk.asked) for desk in servers) == 2


def test_the_first_address_is_needed() -> None:
    with pytest.raises(ConfigError, match="base_url"):
        make_model(
            ServerConfig(server_type="vllm", model="m", more_base_urls=("http://b",)), concurrency=1, environ={}
        )


def test_a_run_over_three_servers_of_which_one_is_down_and_one_breaks(
    tmp_path: Path, fake_server: FakeServerFactory
) -> None:
    """One process that no address answers in the beginning, and one that drops connections after a while."""
    slow = Script(answer=ECHO.answer, latency=Latency(fixed=0.002))
    whole = fake_server(slow)
    breaks = fake_server(Script(answer=ECHO.answer, faults=(Fault(kind="reset", after=30),)))
    write_input(tmp_path, 200)
    urls = ("http://127.0.0.1:9/v1", breaks.base_url)
    unit = make_unit(tmp_path, whole.base_url, server={"more_base_urls": urls}, max_concurrent_requests=16)
    assert run(unit).exit_code == 0
    assert [row["generation"] for row in records(unit.merged)] == [f"What is {i} + 1?" for i in range(200)]
    assert len(breaks.records) >= 30
    assert len(whole.records) >= 100
