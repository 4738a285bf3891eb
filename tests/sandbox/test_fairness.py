# SPDX-License-Identifier: Apache-2.0
"""A short cell beside long ones, and what being stopped for it costs them: nothing that they could tell."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.sandbox.test_sessions import processes_of, sandbox

from newskills.base.protocols import Execution, ExecutionResult
from newskills.sandbox.host import LocalSandbox
from newskills_sandbox.probes import run_probes, strongest_level

pytestmark = pytest.mark.skipif(
    strongest_level(run_probes()) == "none", reason="nothing isolates code on this machine; see ns sandbox doctor"
)

SPIN = "while True: pass"
LARGE = "while True:\n    kept = [bytes(1000) for _ in range(100_000)]"
BOMB = "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass"


class Play:
    """Cells of sessions of their own; `ended` holds their names in the order in which they end."""

    def __init__(self, made: LocalSandbox) -> None:
        self._made = made
        self.ended: list[str] = []

    def start(
        self, name: str, code: str, timeout: float, language: str = "ipython"
    ) -> asyncio.Task[ExecutionResult]:
        return asyncio.create_task(self.run(name, code, timeout, language))

    async def run(self, name: str, code: str, timeout: float, language: str = "ipython") -> ExecutionResult:
        execution = Execution(code=code, session_id=name, timeout=timeout, language=language)
        result = await self._made.execute(execution)
        self.ended.append(name)
        return result


async def beside(codes: Sequence[str], language: str = "ipython") -> tuple[list[str], list[ExecutionResult]]:
    """Who ended, in order, and the results of the long ones."""
    async with sandbox() as made:
        play = Play(made)
        long = [play.start(f"long {number}", code, 4, language) for number, code in enumerate(codes)]
        await asyncio.sleep(0.5)
        for number in range(3):
            await play.run(f"fresh {number}", "1 + 1", 5)
        return play.ended, await asyncio.gather(*long)


@pytest.mark.parametrize(
    ("codes", "language"),
    [
        pytest.param([SPIN] * 8, "ipython", marks=pytest.mark.nightly),
        pytest.param([LARGE] * 12, "ipython", marks=pytest.mark.nightly),
        ([SPIN] * 8, "python"),
    ],
    ids=["busy", "large", "programs"],
)
def test_fresh_sessions_answer_before_any_of_many_long_cells_ends(codes: list[str], language: str) -> None:
    ended, results = asyncio.run(beside(codes, language))
    assert ended[:3] == ["fresh 0", "fresh 1", "fresh 2"]
    assert {result.status for result in results} == {"timeout"}


def test_a_cell_that_is_stopped_for_others_loses_none_of_its_time() -> None:
    """It runs for a part of its time-out, and waits for its turns for longer than the whole.

    A turn of all others takes more than a second; what it counts as its own time does not depend on the machine's load.
    """
    code = (
        "import time\nown, last = 0.0, time.monotonic()\nwhile own < 1.5:\n    now = time.monotonic()\n"
        "    own, last = own + (now - last if now - last < 1 else 0), now\n'done'"
    )

    async def work() -> list[ExecutionResult]:
        async with sandbox(concurrency=1) as made:
            play = Play(made)
            return await asyncio.gather(*(play.run(f"cell {number}", code, 8) for number in range(6)))

    results = asyncio.run(work())
    assert {(result.status, result.stdout) for result in results} == {("completed", "'done'\n")}


def test_what_a_cell_has_started_stops_with_it_and_what_it_stopped_itself_stays_so() -> None:
    """Only the marks of a child that runs grow, and none while it is stopped."""
    code = (
        "import os, signal, subprocess, time\n"
        "still = subprocess.Popen(['sleep', '100'])\nstill.send_signal(signal.SIGSTOP)\n"
        "end = time.process_time() + 1\nwhile time.process_time() < end: pass\n"
        "open(f'/proc/{still.pid}/stat').read().rpartition(') ')[2][0]"
    )

    async def work() -> ExecutionResult:
        async with sandbox(concurrency=1) as made:
            play = Play(made)
            first = play.start("first", code, 20)
            await asyncio.sleep(0.5)
            for number in range(3):
                await play.run(f"fresh {number}", "1 + 1", 5)
            assert play.ended == ["fresh 0", "fresh 1", "fresh 2"]
            return await first

    result = asyncio.run(work())
    assert (result.status, result.stdout) == ("completed", "'T'\n")


def test_stopped_cells_can_be_given_up_and_leave_nothing(tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.symlink_to(Path(sys.executable).resolve())

    async def work() -> str:
        async with sandbox(concurrency=1, python=str(program)) as made:
            play = Play(made)
            await play.run("left", "x = 7", 5)
            left = play.start("left", SPIN, 60)
            others = [play.start(f"other {number}", SPIN, 60) for number in range(3)]
            await asyncio.sleep(1)
            left.cancel()
            async with asyncio.timeout(30):
                found = (await play.run("left", "x", 5)).stdout
            for task in others:
                task.cancel()
            return found

    assert asyncio.run(work()) == "7\n"
    assert processes_of(program) == set()


@pytest.mark.parametrize("language", ["ipython", pytest.param("python", marks=pytest.mark.nightly)])
def test_fork_bombs_end_soon_after_their_deadline_beside_busy_cells(language: str) -> None:
    async def work() -> tuple[list[ExecutionResult], ExecutionResult]:
        async with sandbox() as made:
            play = Play(made)
            bombs = [play.start(f"bomb {number}", BOMB, 2, language) for number in range(4)]
            busy = [play.start(f"busy {number}", SPIN, 2) for number in range(4)]
            results = await asyncio.gather(*bombs, *busy)
            return results, await play.run("after", "1 + 1", 5)

    results, after = asyncio.run(work())
    assert {result.status for result in results} <= {"timeout", "out_of_memory"}
    assert max(result.seconds for result in results) < 2 + 10  # far from the 30 s and more that it was
    assert after.stdout == "2\n"


def test_a_pool_of_many_processes_gets_all_its_work_done() -> None:
    """More of them want to run than may at a time."""
    code = (
        "import multiprocessing\n"
        "with multiprocessing.get_context('fork').Pool(12) as pool:\n"
        "    sums = pool.map(sum, [range(3_000_000)] * 24)\nlen(sums), set(sums)"
    )

    async def work() -> ExecutionResult:
        async with sandbox() as made:
            return await Play(made).run("pool", code, 60)

    result = asyncio.run(work())
    assert (result.status, result.stdout) == ("completed", "(24, {4499998500000})\n")


def test_a_server_that_is_killed_leaves_no_stopped_process(tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.symlink_to(Path(sys.executable).resolve())
    code = (
        "import asyncio\nfrom tests.sandbox.test_fairness import SPIN, Play\n"
        "from tests.sandbox.test_sessions import sandbox\n"
        "async def work():\n"
        f"    async with sandbox(concurrency=1, python={str(program)!r}) as made:\n"
        "        play = Play(made)\n"
        "        tasks = [play.start(str(number), SPIN, 60) for number in range(4)]\n"
        "        await asyncio.sleep(1.5)\n        print('running', flush=True)\n        await asyncio.gather(*tasks)\n"
        "asyncio.run(work())\n"
    )

    async def work() -> None:
        server = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[2]
        )
        assert server.stdout is not None
        assert await server.stdout.readline() == b"running\n"
        assert processes_of(program)
        os.kill(server.pid, signal.SIGKILL)
        await server.wait()
        async with asyncio.timeout(30):
            while processes_of(program):
                await asyncio.sleep(0.05)

    asyncio.run(work())
