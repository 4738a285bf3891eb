# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from newskills.base.errors import ConfigError
from newskills.base.pool.loop import PoolOptions
from newskills.base.pool.workers import WorkerPool
from newskills.base.records import Failure

HERE = Path(__file__).parent
FACTORY = "pool_factories:make"
Make = Callable[..., WorkerPool[dict[str, Any]]]


@pytest.fixture
def make_pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    monkeypatch.syspath_prepend(str(HERE))
    made: list[WorkerPool[dict[str, Any]]] = []

    def make(
        config: dict[str, Any] | None = None, factory: str = FACTORY, **options: Any
    ) -> WorkerPool[dict[str, Any]]:
        settings = PoolOptions(**{"processes": 2, "cpu_seconds": 0.4, **options})
        made.append(WorkerPool(factory, config or {}, result_type=dict, options=settings))
        return made[-1]

    yield make
    for pool in made:
        pool.close()


def echo(value: Any) -> dict[str, Any]:
    return {"do": "echo", "value": value}


def values(results: Any) -> list[Any]:
    return [r["value"] for r in results]


def test_many_records_come_back_in_order_from_all_workers(make_pool: Make) -> None:
    results = [f.result() for f in make_pool().submit_many([echo(i) for i in range(2000)])]
    assert values(results) == list(range(2000))
    assert len({r["pid"] for r in results}) == 2
    assert os.getpid() not in {r["pid"] for r in results}


def test_map_is_lazy_and_ordered(make_pool: Make) -> None:
    taken = 0

    def records() -> Iterator[dict[str, Any]]:
        nonlocal taken
        for i in range(1000):
            taken += 1
            yield echo(i)

    results = make_pool().map(records(), window=40)
    assert next(results)["value"] == 0
    assert taken <= 60
    assert values(results) == list(range(1, 1000))


def test_map_of_nothing(make_pool: Make) -> None:
    assert list(make_pool().map([])) == []


def test_an_endless_item_is_a_timeout_and_harms_no_other(make_pool: Make) -> None:
    pool = make_pool()
    futures = pool.submit_many([echo(0), {"do": "spin"}, *(echo(i) for i in range(1, 50))])
    results = [f.result(timeout=300) for f in futures]
    spun = results.pop(1)
    assert isinstance(spun, Failure)
    assert (spun.cause, spun.kind) == ("timeout", "WorkerTimeout")
    assert values(results) == list(range(50))


def test_waiting_without_cpu_ends_by_the_wall_clock(make_pool: Make) -> None:
    pool = make_pool(wall_seconds=0.5)
    result = pool.submit({"do": "sleep", "seconds": 60}).result(timeout=50)
    assert isinstance(result, Failure)
    assert result.cause == "timeout"
    assert "0.5 seconds" in result.message


def test_the_clock_starts_with_the_item_not_in_the_queue(make_pool: Make) -> None:
    pool = make_pool(processes=1, wall_seconds=1.0, max_batch=64)
    futures = pool.submit_many([{"do": "sleep", "seconds": 0.2, "value": i} for i in range(8)])
    assert values(f.result(timeout=50) for f in futures) == list(range(8))


def test_an_item_that_hangs_once_is_tried_again(make_pool: Make, tmp_path: Path) -> None:
    result = make_pool().submit({"do": "once", "flag": str(tmp_path / "flag"), "value": 7}).result(timeout=50)
    assert result == {"value": 7}


@pytest.mark.parametrize(("do", "what"), [("die", "SIGSEGV"), ("exit", "exited with 3")])
def test_a_crash_is_a_failure_of_the_grader(make_pool: Make, do: str, what: str) -> None:
    pool = make_pool()
    crashed, fine = pool.submit_many([{"do": do}, echo(1)])
    result = crashed.result(timeout=50)
    assert isinstance(result, Failure)
    assert (result.cause, result.kind) == ("grader", "WorkerDied")
    assert what in result.message
    assert fine.result(timeout=50)["value"] == 1


def test_what_the_function_raises_is_data(make_pool: Make) -> None:
    pool = make_pool()
    raised, refused = (f.result(timeout=50) for f in pool.submit_many([{"do": "raise"}, {"do": "refuse"}]))
    assert isinstance(raised, Failure)
    assert (raised.kind, raised.cause, raised.message) == ("RuntimeError", "grader", "RuntimeError: boom")
    assert isinstance(refused, Failure)
    assert refused.kind == "DataError"


def test_memory_is_limited_and_the_worker_renewed(make_pool: Make) -> None:
    pool = make_pool(processes=1, memory=1 << 30)
    before = pool.submit(echo(0)).result(timeout=50)["pid"]
    result = pool.submit({"do": "hoard", "bytes": 2 << 30}).result(timeout=50)
    assert isinstance(result, Failure)
    assert (result.kind, result.cause) == ("MemoryError", "grader")
    assert pool.submit(echo(1)).result(timeout=50)["pid"] != before


def test_a_worker_is_renewed_after_its_share(make_pool: Make) -> None:
    pool = make_pool(processes=1, max_tasks=10, max_batch=5)
    results = [f.result(timeout=50) for f in pool.submit_many([echo(i) for i in range(40)])]
    assert values(results) == list(range(40))
    assert len({r["pid"] for r in results}) == 4


def test_large_records_and_answers(make_pool: Make) -> None:
    pool = make_pool(cpu_seconds=10.0)
    futures = pool.submit_many([{"do": "echo", "value": "y" * 3_000_000}, *[{"do": "big", "size": 2_000_000}] * 6])
    assert [len(f.result(timeout=300)["value"]) for f in futures] == [3_000_000, *[2_000_000] * 6]


def test_text_that_is_no_unicode_passes(make_pool: Make) -> None:
    pool = make_pool()
    assert pool.submit(echo("\ud800")).result(timeout=50)["value"] == "?"
    assert pool.submit({"do": "strange"}).result(timeout=50)["value"] == "?"


def test_a_factory_that_fails_fails_every_item(make_pool: Make) -> None:
    result = make_pool({"broken": True}).submit(echo(1)).result(timeout=50)
    assert isinstance(result, Failure)
    assert "no such setting" in result.message


def test_a_factory_that_is_not_there_fails_every_item(make_pool: Make) -> None:
    pool = make_pool(factory="no_such_module:make")
    results = [f.result(timeout=50) for f in pool.submit_many([echo(1), echo(2)])]
    assert all(isinstance(r, Failure) and "no_such_module" in r.message for r in results)


def test_ctrl_c_does_not_end_a_worker(make_pool: Make) -> None:
    assert make_pool().submit({"do": "interrupt", "value": 5}).result(timeout=50) == {"value": 5}


def test_close_cancels_what_is_not_done_and_ends_the_workers(make_pool: Make) -> None:
    pool = make_pool(processes=1, cpu_seconds=60.0)
    pid = pool.submit(echo(0)).result(timeout=50)["pid"]
    stuck = pool.submit({"do": "spin"})
    pool.close()
    pool.close()
    assert stuck.cancelled()
    assert gone(pid)
    with pytest.raises(ConfigError, match="closed"):
        pool.submit(echo(1))


@pytest.mark.parametrize("pause", [0.0, 0.005, 0.02, 0.05])
def test_a_pool_just_opened_can_be_closed(make_pool: Make, pause: float) -> None:
    pool = make_pool()
    time.sleep(pause)
    pool.close()


def test_a_killed_template_is_started_again(make_pool: Make) -> None:
    pool = make_pool(processes=1)
    pid = pool.submit(echo(0)).result(timeout=50)["pid"]
    os.kill(parent_of(pid), signal.SIGKILL)
    assert pool.submit(echo(1)).result(timeout=50)["value"] == 1
    assert gone(pid)


def test_futures_can_be_awaited(make_pool: Make) -> None:
    pool = make_pool()

    async def main() -> list[Any]:
        return await asyncio.gather(
            *(asyncio.wrap_future(f) for f in pool.submit_many([echo(i) for i in range(20)]))
        )

    assert values(asyncio.run(main())) == list(range(20))


def test_workers_die_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(
        textwrap.dedent(f"""
        import sys, time
        sys.path.insert(0, {str(HERE)!r})
        from newskills.base.pool.loop import PoolOptions
        from newskills.base.pool.workers import WorkerPool
        pool = WorkerPool({FACTORY!r}, {{}}, result_type=dict, options=PoolOptions(processes=1))
        print(pool.submit({{"do": "echo", "value": 1}}).result()["pid"], flush=True)
        pool.submit({{"do": "spin"}})
        time.sleep(60)
        """)
    )
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        template = parent_of(worker)
        parent.kill()
    assert gone(worker)
    assert gone(template)


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def gone(pid: int, seconds: float = 20.0) -> bool:
    """Whether the process has ended (a zombie that nobody reaps yet has)."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.02)
    return False
