# SPDX-License-Identifier: Apache-2.0
"""A small sandbox for tests of what lies around one: its language has six words, and it does what they say.

`x = 3`     keeps a number in the session        `x`         prints it, or ends with an error
`x += 1`    adds to it                           `sleep 1`   for seconds
`die`       the session's process ends           `break`     the sandbox itself fails
"""

from __future__ import annotations

import asyncio
import time

from newskills.base.errors import ExecutionRefusedError, SandboxError
from newskills.base.protocols import Execution, ExecutionResult


class ToySandbox:
    """Counts what happened to it."""

    isolation_level = "none"
    queued = 0

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.cancelled: list[str] = []
        self.closed = False
        self._states: dict[str, dict[str, int]] = {}

    async def start(self) -> None: ...

    async def close(self) -> None:
        self.closed = True

    def sessions(self) -> dict[str, dict[str, object]]:
        return {name: {"backend": "toy", "alive": True} for name in self._states}

    async def delete_session(self, session_id: str) -> None:
        self._states.pop(session_id, None)

    async def execute(self, execution: Execution) -> ExecutionResult:
        if execution.timeout > 100:
            raise ExecutionRefusedError("That is too long.")
        self.begun.append(execution.code)
        name = execution.session_id
        new = name is None or name not in self._states
        state = {} if name is None else self._states.setdefault(name, {})
        begin = time.monotonic()
        try:
            async with asyncio.timeout(execution.timeout):
                status, text = await self._do(execution, state)
        except TimeoutError:
            status, text = "timeout", ""
        except asyncio.CancelledError:
            self.cancelled.append(execution.code)
            raise
        return ExecutionResult(
            status=status,
            stdout=text[: execution.max_output_characters],
            session_id=name,
            new_session_created=new,
            isolation_level=self.isolation_level,
            seconds=time.monotonic() - begin,
        )

    async def _do(self, execution: Execution, state: dict[str, int]) -> tuple[str, str]:
        output = ""
        for line in execution.code.split("\n"):
            match line.split(" "):
                case ["sleep", seconds]:
                    await asyncio.sleep(float(seconds))
                case ["die"]:
                    self._states.pop(execution.session_id or "", None)
                    return "crashed", output
                case ["break"]:
                    raise SandboxError("No room for a session.")
                case [name, "=", value]:
                    state[name] = int(value)
                case [name, "+=", value] if name in state:
                    state[name] += int(value)
                case [name] if name in state:
                    output += f"{state[name]}\n"
                case _:
                    return "error", f"{output}NameError: {line}\n"
        return "completed", output
