# SPDX-License-Identifier: Apache-2.0
"""A limit over threads and loops, and runs that are stopped from outside."""

from __future__ import annotations

import asyncio
import io
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from rich.console import Console
from tests.conftest import FakeServerFactory
from tests.run.support import make_unit, records, write_input
from tests.server import Latency, Script

from newskills.run.engine.execute import execute
from newskills.run.engine.supervision import SharedLimit, Supervision, run_supervision
from newskills.run.planning.spec import RunResult, RunSpec


class Meter:
    """Most holders at once, over all threads."""

    def __init__(self) -> None:
        self.inside = self.most = 0
        self._lock = threading.Lock()

    async def hold(self, limit: SharedLimit, seconds: float) -> None:
        await limit.acquire()
        with self._lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        try:
            await asyncio.sleep(seconds)
        finally:
            with self._lock:
                self.inside -= 1
            limit.release()


def test_a_limit_over_several_loops_with_cancellations() -> None:
    limit, meter = SharedLimit(3), Meter()

    async def play(seed: int) -> None:
        chance = random.Random(seed)
        tasks = [asyncio.create_task(meter.hold(limit, chance.uniform(0, 0.004))) for _ in range(60)]
        for task in tasks[::3]:
            await asyncio.sleep(chance.uniform(0, 0.003))
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda seed: asyncio.run(play(seed)), range(4)))
    assert meter.most == 3
    assert limit.active == 0


def test_a_loop_that_ended_while_it_waited_blocks_nobody() -> None:
    limit, meter = SharedLimit(1), Meter()

    async def leave() -> None:
        asyncio.create_task(meter.hold(limit, 60))  # noqa: RUF006 - the end of the loop ends it
        asyncio.create_task(meter.hold(limit, 60))  # noqa: RUF006
        await asyncio.sleep(0.01)

    asyncio.run(leave())
    assert limit.active == 0
    asyncio.run(asyncio.wait_for(meter.hold(limit, 0), 50))


def test_without_one_a_run_has_its_own() -> None:
    assert run_supervision() is not run_supervision()
    mine = Supervision()
    with mine.installed():
        assert run_supervision() is mine
    assert run_supervision() is not mine


def run(folder: Path, base_url: str, held: Supervision) -> RunResult:
    unit = make_unit(folder, base_url, max_concurrent_requests=2)
    spec = RunSpec(units=(unit,), output_dir=str(folder))
    with held.installed():
        return execute(spec, environ={})


@pytest.mark.parametrize("at_once", [False, True])
def test_a_run_is_stopped_from_another_thread_and_goes_on_later(
    tmp_path: Path, fake_server: FakeServerFactory, at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = fake_server(Script(latency=Latency(fixed=0.3)))
    write_input(tmp_path, 8)
    said = io.StringIO()
    held = Supervision(console=Console(file=said))
    monkeypatch.setattr("newskills.run.engine.progress.PLAIN_EVERY", 0.0)
    monkeypatch.setattr("newskills.run.engine.pace.MIN_DONE_ROWS", 1)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run, tmp_path, server.base_url, held)
        while len(server.records) < 4:
            time.sleep(0.01)
        held.stop(at_once=at_once)
        result = running.result(120)
    assert result.exit_code == 143
    assert result.units[0].status == "interrupted"
    assert held.snapshot is not None
    assert held.snapshot.rows == 8
    _, _, after = said.getvalue().partition("Stopping")
    assert "stopping" in after
    assert " left" not in after
    asked, done = len(server.records), result.units[0].generated
    assert done == (2 if at_once else asked)
    server.script = Script()
    again = run(tmp_path, server.base_url, Supervision(console=Console(file=said)))
    assert again.units[0].kept == done
    assert len(server.records) - asked == 8 - done
    assert len(records(again.units[0].output)) == 8


def test_a_stop_before_the_beginning(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server()
    write_input(tmp_path, 3)
    held = Supervision(console=Console(file=io.StringIO()))
    held.stop()
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(run, tmp_path, server.base_url, held).result(120)
    assert result.exit_code == 143
    assert server.records == []
