# SPDX-License-Identifier: Apache-2.0
"""Sessions that survive the loss of their process: their finished cells are run again."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from newskills_sandbox.errors import ExecutionRefusedError
from newskills_sandbox.execution import CodeRunner, Execution, ExecutionResult
from newskills_sandbox.languages import LANGUAGES


class _History:
    """`cells`: what completed in the session, in order. One cell of a session at a time."""

    def __init__(self) -> None:
        self.cells: list[Execution] = []
        self.lock = asyncio.Lock()


class ReplayingSandbox:
    """A sandbox around another one.

    Where a session answers as a new one although cells were completed in it, it is begun afresh, these cells are run
    again in their order, then the one that was asked for. What they did at random or by the clock may differ. A cell
    that fails this time ends the replay; `stderr` then says what is missing, and `new_session_created` stays true.
    """

    def __init__(self, sandbox: CodeRunner) -> None:
        self._sandbox = sandbox
        self._histories: dict[str, _History] = {}

    async def start(self) -> None:
        """Start the inner sandbox, if it has a `start`. Raises what that raises."""
        if (start := getattr(self._sandbox, "start", None)) is not None:
            await start()

    async def execute(self, execution: Execution) -> ExecutionResult:
        """Execute code; where its session was lost, run the earlier cells again. Raises ExecutionRefusedError,
        SandboxError."""
        spoken = LANGUAGES.get(execution.language)
        if execution.session_id is None or spoken is None or not spoken.stateful:
            return await self._sandbox.execute(execution)
        history = self._histories.setdefault(execution.session_id, _History())
        async with history.lock:
            result = await self._sandbox.execute(execution)
            if result.new_session_created and history.cells:
                result = await self._restore_session(execution, history)
            if result.status == "completed":
                history.cells.append(execution)
            return result

    async def delete_session(self, session_id: str) -> None:
        self._histories.pop(session_id, None)
        await self._sandbox.delete_session(session_id)

    async def close(self) -> None:
        self._histories.clear()
        await self._sandbox.close()

    async def _restore_session(self, execution: Execution, history: _History) -> ExecutionResult:
        """Delete the session, in which the cell has just run without the earlier ones, and run all cells again in a new
        one."""
        assert execution.session_id is not None
        await self._sandbox.delete_session(execution.session_id)
        total = len(history.cells)
        for number, cell in enumerate(history.cells):
            status = await self._run_status(cell)
            if status != "completed":
                del history.cells[number:]
                note = (
                    f"The session was lost; of its {total} earlier cells, {number} could be run again, then one "
                )
                return await self._with_note(execution, f"{note}ended as: {status}.\n")
        result = await self._sandbox.execute(execution)
        return replace(result, new_session_created=False)

    async def _run_status(self, cell: Execution) -> str:
        try:
            return (await self._sandbox.execute(cell)).status
        except ExecutionRefusedError as error:
            return error.message

    async def _with_note(self, execution: Execution, note: str) -> ExecutionResult:
        result = await self._sandbox.execute(execution)
        return replace(result, new_session_created=True, stderr=result.stderr + note)
