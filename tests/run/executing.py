# SPDX-License-Identifier: Apache-2.0
"""A grader that lets a sandbox decide, and sandboxes over HTTP that fail when told to."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from newskills.base.errors import SandboxError
from newskills.base.protocols import Execution, ExecutionResult, Kit
from newskills.base.records import Row, Score
from newskills.sandbox.server import SandboxServer

NAME = "tests.run.executing::Executing"


class Executing:
    """Right where the sandbox prints the expected answer."""

    name, version = "executing", "1"

    async def grade(self, record: Row, kit: Kit) -> Score:
        assert kit.sandbox is not None
        result = await kit.sandbox.execute(Execution(code=record["generation"], language="python", timeout=5))
        right = result.stdout == record["expected_answer"]
        fields: Row = {"is_correct": right}
        return Score(outcome="correct" if right else "wrong", fields=fields, grader="executing@1")


class Mirror:
    """Prints the code it gets. `broken`: fails. `most`: how many executions were under way at once."""

    isolation_level = "none"
    queued = 0

    def __init__(self) -> None:
        self.broken = False
        self.flaky: set[str] = set()
        self.done = self.under_way = self.most = 0

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    def sessions(self) -> dict[str, dict[str, object]]:
        return {}

    async def delete_session(self, session_id: str) -> None: ...

    async def execute(self, execution: Execution) -> ExecutionResult:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(0.002)
        self.under_way -= 1
        if self.broken or execution.code in self.flaky:
            self.flaky.discard(execution.code)
            raise SandboxError("out of order")
        self.done += 1
        return ExecutionResult(status="completed", stdout=execution.code)


@contextmanager
def serving(sandbox: Mirror) -> Iterator[int]:
    """The port of a server in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    app = SandboxServer(sandbox)
    server = asyncio.run_coroutine_threadsafe(app.serve("127.0.0.1", 0), loop).result()
    try:
        yield server.port
    finally:
        asyncio.run_coroutine_threadsafe(server.close(0.5), loop).result()
        asyncio.run_coroutine_threadsafe(app.close(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
