# SPDX-License-Identifier: Apache-2.0
"""The whole way: our client, a socket, our server, and code that really runs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar

import pytest

from newskills.base import aio
from newskills.base.protocols import Execution, ExecutionResult
from newskills.sandbox.client import HttpSandbox
from newskills.sandbox.config import Limits, SandboxConfig
from newskills.sandbox.host import LocalSandbox
from newskills.sandbox.server import SandboxServer
from newskills_sandbox.inside.wire import pack
from newskills_sandbox.probes import run_probes, strongest_level
from newskills_sandbox.replay import ReplayingSandbox
from newskills_sandbox.zygote import Channel

pytestmark = pytest.mark.skipif(
    strongest_level(run_probes()) == "none", reason="nothing isolates code on this machine; see ns sandbox doctor"
)

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    return aio.run(lambda: asyncio.wait_for(work, 120))


class Rig:
    """`sandbox` speaks to `local` over HTTP."""

    def __init__(self, local: LocalSandbox, sandbox: ReplayingSandbox, http: HttpSandbox) -> None:
        self.local, self.sandbox, self.http = local, sandbox, http

    async def execute(self, code: str, session: str | None = "s", **fields: Any) -> ExecutionResult:
        return await self.sandbox.execute(Execution(code=code, session_id=session, **fields))

    async def metrics(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((await self.http._http.get("/metrics", 5)).body)
        return found


@contextlib.asynccontextmanager
async def rig(**settings: Any) -> AsyncIterator[Rig]:
    config = SandboxConfig(preload=(), limits=Limits(memory_mb=256), **settings)
    local = LocalSandbox(config, {})
    app = SandboxServer(local)
    await local.start()
    server = await app.serve("127.0.0.1", 0)
    http = HttpSandbox("127.0.0.1", server.port, {})
    try:
        yield Rig(local, ReplayingSandbox(http), http)
    finally:
        await http.close()
        await server.close(1.0)
        await app.close()
        await local.close()


def test_state_output_and_errors() -> None:
    async def play() -> list[ExecutionResult]:
        async with rig() as found:
            return [
                await found.execute(code)
                for code in ("x = 6 * 7", "x", "print('ü 😀'); x / 0", "import sys; print('e', file=sys.stderr)")
            ]

    first, second, third, fourth = run(play())
    assert (first.status, first.new_session_created, first.isolation_level) == (
        "completed",
        True,
        second.isolation_level,
    )
    assert (second.stdout, second.new_session_created) == ("42\n", False)
    assert third.status == "error"
    assert third.stdout.startswith("ü 😀\n")
    assert "ZeroDivisionError" in third.stdout
    assert (fourth.stdout, fourth.stderr) == ("", "e\n")


def test_the_standard_event_loop_does_as_well() -> None:
    async def play() -> list[str]:
        async with rig() as found:
            codes = ("x = 6 * 7", "x", "import os; os._exit(1)", "x")
            return [(await found.execute(code)).stdout for code in codes]

    assert asyncio.run(asyncio.wait_for(play(), 120)) == ["", "42\n", "", "42\n"]


def test_a_session_whose_process_died_comes_back() -> None:
    async def play() -> list[ExecutionResult]:
        async with rig() as found:
            codes = ("x = [1]", "x.append(2)", "import os; os._exit(7)", "x.append(3); x", "x")
            return [await found.execute(code) for code in codes]

    *_, died, back, last = run(play())
    assert (died.status, died.exit_code) == ("crashed", 7)
    assert (back.stdout, back.new_session_created) == ("[1, 2, 3]\n", False)
    assert last.stdout == "[1, 2, 3]\n"


def test_a_deadline_is_told_by_the_server() -> None:
    async def play() -> ExecutionResult:
        async with rig() as found:
            return await found.execute("while True: pass", timeout=0.5)

    result = run(play())
    assert result.status == "timeout"
    assert "Execution timed out after 0.5 seconds\n" in result.stdout + result.stderr


def test_a_client_that_leaves_frees_the_session() -> None:
    async def play() -> tuple[ExecutionResult, int]:
        async with rig(concurrency=1) as found:
            body = b'{"generated_code": "while True: pass", "timeout": 60}'
            _, writer = await asyncio.open_connection("127.0.0.1", int(found.http.address.rsplit(":", 1)[1]))
            writer.write(
                b"POST /execute HTTP/1.1\r\nX-Session-ID: s\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
            )
            async with asyncio.timeout(60):
                while not found.local.sessions():
                    await asyncio.sleep(0.02)
            await asyncio.sleep(0.2)
            writer.close()
            begin = asyncio.get_running_loop().time()
            # There is one turn at a time: this one comes only when the other cell has ended.
            result = await found.execute("1 + 1", "other", timeout=5)
            return result, int(asyncio.get_running_loop().time() - begin)

    result, seconds = run(play())
    assert result.stdout == "2\n"
    assert seconds < 50


def test_a_cell_whose_client_left_before_its_turn_never_runs() -> None:
    async def play() -> tuple[str, str]:
        async with rig(concurrency=1) as found:
            await found.execute("ran = 'no'", "queued")
            code = "import time; time.sleep(1.5)"  # a program, which nobody stops
            busy = asyncio.create_task(found.execute(code, "busy", language="python"))
            await asyncio.sleep(0.3)
            local = Execution(code="ran = 'yes'", session_id="queued")
            queued = asyncio.create_task(found.local.execute(local))
            await asyncio.sleep(0.3)
            queued.cancel()
            result = await found.execute("ran", "queued")
            return (await busy).status, result.stdout

    assert run(play()) == ("completed", "'no'\n")


def test_a_hundred_sessions_count_to_ten() -> None:
    async def count(found: Rig, name: str) -> str:
        await found.execute("n = 0", name)
        for _ in range(10):
            last = await found.execute("n += 1; n", name)
        await found.sandbox.delete_session(name)
        return last.stdout

    async def play() -> tuple[list[str], dict[str, Any]]:
        async with rig() as found:
            outputs = await asyncio.gather(*(count(found, f"s{n}") for n in range(100)))
            return outputs, await found.metrics()

    outputs, metrics = run(play())
    assert outputs == ["10\n"] * 100
    assert (metrics["executions"], metrics["sessions"], metrics["queue_length"]) == (1100, {}, 0)


def test_cells_wait_for_their_turn() -> None:
    async def play() -> tuple[int, list[ExecutionResult]]:
        async with rig(concurrency=1) as found:
            cells = [asyncio.create_task(found.execute("import time; time.sleep(0.3)", f"s{n}")) for n in range(4)]
            longest = 0
            while not all(cell.done() for cell in cells):
                longest = max(longest, found.local.queued)
                await asyncio.sleep(0.02)
            return longest, [cell.result() for cell in cells]

    longest, results = run(play())
    assert longest == 3
    assert {result.status for result in results} == {"completed"}
    assert max(result.seconds for result in results) < 2


def test_too_many_sessions_are_a_sentence() -> None:
    async def play() -> str:
        async with rig(max_sessions=2) as found:
            await asyncio.gather(*(found.execute("1", f"s{n}") for n in range(2)))
            with pytest.raises(Exception, match="which is the limit") as caught:
                await found.execute("1", "third")
            return type(caught.value).__name__

    assert run(play()) == "SandboxError"


def test_the_first_word_of_a_session_may_come_before_anybody_listens() -> None:
    async def play() -> None:
        near, far = socket.socketpair()
        with far:
            far.sendall(pack({"ready": True}))
            near.setblocking(False)
            channel = Channel(1)
            await asyncio.get_running_loop().create_connection(lambda: channel, sock=near)
            await asyncio.sleep(0.05)
            await asyncio.wait_for(channel.ready(), 60)
            channel.close()
            await asyncio.sleep(0)

    run(play())
