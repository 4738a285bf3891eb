# SPDX-License-Identifier: Apache-2.0
"""`newskills.evaluate_async`: an evaluation from within the event loop of a trainer."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from tests.commands.trainers import adding, prepare
from tests.conftest import FakeServerFactory
from tests.server import FakeServer, FakeServerProcess, Fault

import newskills
from newskills.base.errors import UnknownNameError


def call(folder: Path, model: FakeServer | FakeServerProcess, **more: Any) -> Coroutine[Any, Any, Any]:
    return newskills.evaluate_async(
        ctx=newskills.wrap_arguments("++server.api_key=EMPTY ++max_concurrent_requests=4"),
        benchmarks="aime25",
        model="policy",
        server_type="openai",
        server_address=model.url,
        output_dir=str(folder / "out"),
        data_dir=str(prepare(folder) / "data"),
        **more,
    )


async def beats(until: asyncio.Future[object]) -> int:
    """How often the loop came by."""
    count = 0
    while not until.done():
        await asyncio.sleep(0.01)
        count += 1
    return count


def test_the_loop_goes_on_while_it_is_evaluated(
    tmp_path: Path, fake_server: FakeServerFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    model = fake_server(adding(latency=0.1))

    async def train() -> Any:
        evaluation = asyncio.ensure_future(call(tmp_path, model))
        return await beats(evaluation), await evaluation

    count, evaluation = asyncio.run(train())
    assert count > 10
    assert evaluation.reports[0].numbers["pass@1"]["symbolic_correct"].value == 100.0
    assert capsys.readouterr().out == ""


def test_several_at_once(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    model = fake_server(adding())
    folders = [tmp_path / str(number) for number in range(3)]

    async def train() -> Any:
        return await asyncio.gather(*(call(folder, model) for folder in folders))

    for evaluation in asyncio.run(train()):
        assert evaluation.exit_code == 0
    assert len(model.records) == 30


def test_cancelled_it_keeps_what_is_done(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    model = fake_server(adding(Fault(kind="delay", seconds=0.5)))

    async def train() -> None:
        evaluation = asyncio.ensure_future(call(tmp_path, model))
        while len(model.records) < 4:
            await asyncio.sleep(0.01)
        evaluation.cancel()
        with pytest.raises(asyncio.CancelledError):
            await evaluation

    asyncio.run(train())
    assert len(model.records) == 4
    model.script = adding()
    evaluation = asyncio.run(call(tmp_path, model))
    assert evaluation.exit_code == 0
    assert len(model.records) == 10


def test_it_raises_as_the_other_does(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    model = fake_server(adding())
    server = {"model": "policy", "server_type": "openai", "server_address": model.url}
    with pytest.raises(UnknownNameError, match="aime26x"):
        asyncio.run(newskills.evaluate_async(benchmarks="aime26x", **server))
    with pytest.raises(TypeError, match="benchmark"):
        asyncio.run(newskills.evaluate_async(benchmark="aime25"))  # type: ignore[call-arg]
