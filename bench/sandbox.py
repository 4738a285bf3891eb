# SPDX-License-Identifier: Apache-2.0
"""Cells and scripts a second through `ns sandbox serve`, what idle sessions weigh, what a thousand leave behind, and
how long a new session waits beside cells that never end."""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from bench.measure import NS, BenchError, Line, Options, clean_env, run, scratch, tree
from bench.peers import IPYKERNEL, venv
from newskills.base import aio
from newskills.base.protocols import Execution
from newskills.sandbox.client import HttpSandbox

CELL_MS, CELLS, SCRIPTS, FRESH, SESSION_MIB = 1.0, 1500, 60, 10, 8.0
FRESH_SECONDS, OVERRUN_SECONDS = 2.0, 2.0
SPIN = "while True: pass"
LARGE = "import numpy\nwhile True: kept = [numpy.ones(1 << 20) for _ in range(64)]"
BOMB = "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass"
LOADED = "import numpy, sympy; print(numpy.pi > sympy.Integer(3))"
MIB = 1 << 20
CELL = Execution(code="x = 1 + 1")
SCRIPT = Execution(code=LOADED, language="python")


def bench(options: Options) -> Iterator[Line]:
    with scratch() as folder:
        environ = clean_env(folder)
        figures = aio.run(lambda: ours(options, environ))
    kernel = (
        float(run([venv(IPYKERNEL) / "python", Path(__file__).with_name("kernel.py")]).output.split()[-1])
        if options.peers
        else None
    )
    fresh = fresh_interpreters(options.rows(40))
    yield line("trivial cell, median", figures["cell_ms"], "ms", CELL_MS, IPYKERNEL.shown, kernel, better="less")
    yield line("trivial cells, 16 sessions", figures["cells"], "cells/s", CELLS)
    yield line("scripts with numpy and sympy", figures["scripts"], "scripts/s", SCRIPTS)
    beside = line("scripts with numpy and sympy", figures["scripts"], "scripts/s", None, "fresh python", fresh)
    beside.target, beside.met = f"≥ {FRESH} ×", figures["scripts"] >= FRESH * fresh
    yield beside
    yield line("an idle session of 200", figures["session_mib"], "MiB", SESSION_MIB, better="less")
    yield line("errors among 200 sessions alive", figures["errors"], "errors", 0, better="less")
    yield line("left by 1,000 sessions", figures["left"], "things", 0, better="less")
    for what in ("8 busy cells", "12 large cells", "4 fork bombs and 4 busy cells"):
        yield line(f"new session beside {what}", figures[what], "s", FRESH_SECONDS, better="less")
    yield line("4 fork bombs, past their deadline", figures["overrun"], "s", OVERRUN_SECONDS, better="less")


def line(
    what: str,
    ours: float,
    unit: str,
    target: float | None,
    beside: str = "",
    theirs: float | None = None,
    *,
    better: str = "more",
) -> Line:
    made = Line(bench="sandbox", what=what, ours=ours, unit=unit, better="more" if better == "more" else "less")
    made.beside, made.theirs = (beside, theirs) if theirs is not None else ("", None)
    if target is not None:
        made.target = f"{'≥' if better == 'more' else '≤'} {target:,g} {unit}"
        made.met = ours >= target if better == "more" else ours <= target
    return made


@asynccontextmanager
async def server(environ: dict[str, str]) -> AsyncIterator[tuple[HttpSandbox, int]]:
    """A client of a server process of its own, and its process id."""
    process = subprocess.Popen(
        [NS, "sandbox", "serve", "--port=0"], stdout=subprocess.PIPE, env=environ, text=True
    )
    try:
        assert process.stdout is not None
        words = (await asyncio.to_thread(process.stdout.readline)).split()
        if not words:
            raise BenchError("ns sandbox serve did not start")
        host, _, port = words[2].removeprefix("http://").rpartition(":")
        client = HttpSandbox(host, int(port), {})
        try:
            yield client, process.pid
        finally:
            await client.close()
    finally:
        process.terminate()
        process.wait()


async def ours(options: Options, environ: dict[str, str]) -> dict[str, float]:
    figures: dict[str, float] = {}
    async with server(environ) as (client, pid):
        await repeat(client, CELL, "one", 1)
        taken = []
        for _ in range(options.rows(2000)):
            began = time.perf_counter()
            await repeat(client, CELL, "one", 1)
            taken.append(1000 * (time.perf_counter() - began))
        figures["cell_ms"] = statistics.median(taken)
        names, each = [f"s{number}" for number in range(16)], options.rows(500)
        await asyncio.gather(*(repeat(client, CELL, name, 1) for name in names))
        figures["cells"] = await rate([repeat(client, CELL, name, each) for name in names], 16 * each)
        each = options.rows(50)
        await asyncio.gather(*(repeat(client, SCRIPT, None, 2) for _ in range(4)))
        figures["scripts"] = await rate([repeat(client, SCRIPT, None, each) for _ in range(4)], 4 * each)
        figures |= await many(client, pid)
        figures["8 busy cells"], _ = await beside(client, [SPIN] * 8)
        figures["12 large cells"], _ = await beside(client, [LARGE] * 12)
        figures["4 fork bombs and 4 busy cells"], figures["overrun"] = await beside(client, [BOMB, SPIN] * 4)
    return figures


async def beside(client: HttpSandbox, codes: Sequence[str], timeout: float = 5.0) -> tuple[float, float]:
    """Seconds that the slowest of five new sessions takes for `1 + 1`, and those that a cell ran past its deadline."""
    cells = [
        Execution(code=code, session_id=f"beside-{number}", timeout=timeout) for number, code in enumerate(codes)
    ]
    running = [asyncio.create_task(client.execute(cell)) for cell in cells]
    waited = []
    for _ in range(5):
        await asyncio.sleep(0.5)
        began = time.perf_counter()
        await repeat(client, CELL, None, 1)
        waited.append(time.perf_counter() - began)
    results = await asyncio.gather(*running)
    await asyncio.gather(*(client.delete_session(cell.session_id or "") for cell in cells))
    return max(waited), max(result.seconds for result in results) - timeout


async def repeat(client: HttpSandbox, execution: Execution, session: str | None, times: int) -> None:
    for _ in range(times):
        result = await client.execute(replace(execution, session_id=session))
        if result.status != "completed" or result.exit_code:
            raise BenchError(f"a cell ended as {result.status}: {result.stderr}")


async def rate(works: Sequence[Awaitable[None]], count: int) -> float:
    began = time.perf_counter()
    await asyncio.gather(*works)
    return count / (time.perf_counter() - began)


async def many(client: HttpSandbox, pid: int) -> dict[str, float]:
    """200 sessions at once, then a thousand after one another, 16 at a time."""
    names = [f"m{number}" for number in range(200)]
    before = memory(pid)
    lives = await asyncio.gather(*(repeat(client, CELL, name, 1) for name in names), return_exceptions=True)
    weight = (memory(pid) - before) / len(names) / MIB
    await asyncio.gather(*map(client.delete_session, names))
    ready = things(pid)
    gate = asyncio.Semaphore(16)

    async def life(name: str) -> None:
        async with gate:
            await repeat(client, CELL, name, 1)
            await client.delete_session(name)

    await asyncio.gather(*(life(f"l{number}") for number in range(1000)))
    await asyncio.sleep(1)
    errors = sum(outcome is not None for outcome in lives)
    return {"session_mib": weight, "errors": errors, "left": max(0, things(pid) - ready)}


def memory(pid: int) -> int:
    """Bytes of the server's processes; a page shared by n of them counts a n-th in each."""
    total = 0
    for member in tree(pid):
        try:
            rollup = Path(f"/proc/{member}/smaps_rollup").read_text()
        except OSError:
            continue
        total += next(int(row.split()[1]) * 1024 for row in rollup.splitlines() if row.startswith("Pss:"))
    return total


def things(pid: int) -> int:
    """Processes and descriptors of the server, mounts of this machine, control groups and folders of sandboxes."""
    groups = sum(len(list(Path("/sys/fs/cgroup").glob(f"{place}newskills-*"))) for place in ("", "*/"))
    folders = len(list(Path("/tmp").glob("newskills-sandbox-*")))
    mounts = len(Path("/proc/self/mounts").read_text().splitlines())
    return len(tree(pid)) + len(os.listdir(f"/proc/{pid}/fd")) + mounts + groups + folders


def fresh_interpreters(count: int) -> float:
    """The same script by new interpreters, two at a time, per second."""
    began = time.perf_counter()
    for _ in range(0, count, 2):
        pair = [
            subprocess.Popen([sys.executable, "-I", "-c", LOADED], stdout=subprocess.DEVNULL) for _ in range(2)
        ]
        if any(process.wait() for process in pair):
            raise BenchError("numpy and sympy are not installed here: pip install 'newskills[sandbox]'")
    return count / (time.perf_counter() - began)
