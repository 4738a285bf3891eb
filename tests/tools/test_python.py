# SPDX-License-Identifier: Apache-2.0
"""The notebook over the real sandbox, and over one that fails."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from newskills.base import aio
from newskills.base.errors import ConfigError, SandboxError
from newskills.base.protocols import Execution, ExecutionResult
from newskills.base.records import Row
from newskills.sandbox.config import SandboxConfig
from newskills.sandbox.host import LocalSandbox
from newskills.tools.provider import ToolContext
from newskills.tools.toolbox import ProviderToolbox, ToolSettings, make_toolbox

TOOL = "stateful_python_code_exec"


class Lossy:
    """A sandbox of which each call is told what happens to it."""

    def __init__(self, *results: ExecutionResult | SandboxError) -> None:
        self.results = list(results)
        self.asked: list[Execution] = []
        self.deleted: list[str] = []

    async def execute(self, execution: Execution) -> ExecutionResult:
        self.asked.append(execution)
        result = self.results.pop(0)
        if isinstance(result, SandboxError):
            raise result
        return result

    async def delete_session(self, session_id: str) -> None:
        self.deleted.append(session_id)
        raise SandboxError("too late")

    async def close(self) -> None: ...


def notebook(sandbox: Any, **overrides: Any) -> ProviderToolbox:
    settings = ToolSettings(modules=("python",), overrides={"python": overrides})
    return make_toolbox(settings, ToolContext(sandbox=sandbox))


def test_variables_live_as_long_as_the_sample() -> None:
    async def main() -> None:
        sandbox = LocalSandbox(SandboxConfig(preload=()), environ={})
        box = notebook(sandbox, timeout=1, max_output_characters=300)

        async def run(code: str, request_id: str = "a") -> str:
            return await box.execute(TOOL, {"code": code}, request_id)

        try:
            assert await run("x = 20\nprint('hi')\nx + 1") == "hi\n21"
            assert await run("x * 2") == "40"
            assert "NameError" in await run("x", "b")
            assert "ZeroDivisionError" in await run("1/0")
            assert await run("x") == "20"
            assert len(await run("'y' * 5000")) < 400
            assert "timed out" in await run("while True: pass")
            assert "exited with code 3" in await run("import os; os._exit(3)")
            assert (await run("1 + 1")).startswith("The variables of earlier calls are gone.")
            assert len(sandbox.sessions()) == 2
            metrics = await box.release("a")
            assert metrics["PythonTool"].pop("code_execution_time") > 1
            assert metrics["PythonTool"] == {"num_code_executions": 8, "num_code_timeouts": 1}
            assert len(sandbox.sessions()) == 1
            await box.close()
            assert not sandbox.sessions()
        finally:
            await sandbox.close()

    aio.run(main)


def test_calls_of_one_message_take_turns_in_order() -> None:
    async def main() -> list[str]:
        sandbox = LocalSandbox(SandboxConfig(preload=()), environ={})
        box = notebook(sandbox)
        codes = ["import time; time.sleep(0.2); n = 1", *["n += 1; n"] * 5]
        try:
            return list(await asyncio.gather(*(box.execute(TOOL, {"code": code}, "a") for code in codes)))
        finally:
            await box.close()
            await sandbox.close()

    assert aio.run(main) == ["", "2", "3", "4", "5", "6"]


def play(*results: ExecutionResult | SandboxError, calls: int) -> tuple[list[str], Row, Lossy]:
    async def main() -> tuple[list[str], Row, Lossy]:
        sandbox = Lossy(*results)
        box = notebook(sandbox)
        texts = [await box.execute(TOOL, {"code": "x"}, "a") for _ in range(calls)]
        return texts, await box.release("a"), sandbox

    return aio.run(main)


NEW = ExecutionResult(status="completed", stdout="1\n", new_session_created=True)
GOOD = ExecutionResult(status="completed", stdout="2\n")


def test_a_failing_sandbox_ends_the_sample() -> None:
    with pytest.raises(SandboxError, match="no answer"):
        play(NEW, SandboxError("no answer"), calls=2)
    with pytest.raises(SandboxError, match="lost the variables"):
        play(NEW, GOOD, NEW, calls=3)


@pytest.mark.parametrize("status", ["timeout", "crashed", "out_of_memory"])
def test_state_lost_by_the_codes_own_fault_is_told(status: str) -> None:
    texts, metrics, sandbox = play(NEW, ExecutionResult(status=status, stdout="so far\n"), NEW, GOOD, calls=4)
    assert texts[0] == "1"
    assert texts[1].startswith("so far\nThe ")
    assert texts[2:] == ["The variables of earlier calls are gone.\n1", "2"]
    assert metrics["PythonTool"]["num_code_timeouts"] == (status == "timeout")
    assert sandbox.deleted == [sandbox.asked[0].session_id]
    assert len({execution.session_id for execution in sandbox.asked}) == 1


def test_without_a_sandbox() -> None:
    with pytest.raises(ConfigError, match="--with_sandbox"):
        aio.run(lambda: notebook(None).execute(TOOL, {"code": "1"}, "a"))
