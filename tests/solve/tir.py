# SPDX-License-Identifier: Apache-2.0
"""A real sandbox and a scripted model for solvers that run code."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from tests.server import FakeServer, Script

from newskills.base.aio import run
from newskills.base.errors import SandboxError
from newskills.base.protocols import Execution, ExecutionResult, Kit, Sandbox, Solver
from newskills.base.records import Inference, Row, Sample
from newskills.models import make_model
from newskills.models.config import ServerConfig
from newskills.sandbox.config import SandboxConfig
from newskills.sandbox.host import LocalSandbox

CHAT = Inference()
TEXT = Inference(endpoint_type="text", tokens_to_generate=1000)
SAMPLE = Sample(id="1", row={"q": "What is it?"})


class Turns:
    """Answers with the n-th text, the last one again and again."""

    def __init__(self, *texts: str) -> None:
        self.texts, self.asked = texts, 0

    def __call__(self, body: Row) -> str:
        self.asked += 1
        return self.texts[min(self.asked, len(self.texts)) - 1]


class Broken:
    """A sandbox that fails after `good` executions; it remembers which sessions were ended."""

    def __init__(self, good: int = 0) -> None:
        self.good = good
        self.used: set[str] = set()
        self.ended: set[str] = set()

    async def execute(self, execution: Execution) -> ExecutionResult:
        assert execution.session_id is not None
        self.used.add(execution.session_id)
        if self.good <= 0:
            raise SandboxError("The sandbox is gone.")
        self.good -= 1
        return ExecutionResult(status="completed", stdout="1\n")

    async def delete_session(self, session_id: str) -> None:
        self.ended.add(session_id)

    async def close(self) -> None:
        pass


class Waiting(Broken):
    """A sandbox whose cells never end."""

    def __init__(self) -> None:
        super().__init__()
        self.running = asyncio.Event()

    async def execute(self, execution: Execution) -> ExecutionResult:
        assert execution.session_id is not None
        self.used.add(execution.session_id)
        self.running.set()
        await asyncio.sleep(3600)
        raise AssertionError


def with_kit(server: FakeServer, work: Callable[[Kit], Any], sandbox: Sandbox | None = None) -> Any:
    """Awaits `work` with a model and a sandbox, a real one unless told; checks that no session is left over."""

    async def main() -> Any:
        config = ServerConfig(server_type="vllm", model="fake", base_url=server.base_url)
        model = make_model(config, concurrency=8, environ={})
        used = sandbox or LocalSandbox(SandboxConfig(preload=()))
        try:
            result = await work(Kit(models={"main": model}, sandbox=used))
            if isinstance(used, LocalSandbox):
                assert used.sessions() == {}
            return result
        finally:
            await used.close()
            await model.close()

    return run(main)


def solve(
    solver: Solver, answer: Callable[[Row], str], script: Script | None = None, *, sandbox: Sandbox | None = None
) -> tuple[Row, list[Row]]:
    """(fields of the attempt, bodies of the requests in order)."""
    with FakeServer(script, answer=answer) as server:
        attempt = with_kit(server, lambda kit: solver.solve(SAMPLE, solver.request(SAMPLE), kit), sandbox)
        return attempt.fields, [record.body for record in server.records]
