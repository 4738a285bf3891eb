# SPDX-License-Identifier: Apache-2.0
"""One attempt's use of the sandbox: a session of its own, and what is measured of it."""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from dataclasses import replace
from types import TracebackType
from typing import Self

from newskills.base.errors import NewskillsError, SandboxError
from newskills.base.protocols import Execution, ExecutionResult, Kit
from newskills.base.records import Row


class CodeSession:
    """Runs code as `template` says; the session ends with the `async with` block, whatever happens in it.

    `keeps_state` false: each piece of code runs in a fresh process that nothing is left of.
    """

    def __init__(self, kit: Kit, template: Execution, *, keeps_state: bool = True) -> None:
        """Prepare a session of the run's sandbox. Raises SandboxError where the run has no sandbox."""
        if kit.sandbox is None:
            raise SandboxError("This run has no sandbox to run code in.")
        self._sandbox, self._template = kit.sandbox, template
        self._id = uuid.uuid4().hex if keeps_state else None
        self._used = False
        self.executions = self.timeouts = 0
        self.seconds = 0.0

    async def run(self, code: str) -> ExecutionResult:
        """Run `code` in the session. Raises SandboxError where the sandbox failed; what the code does is in the
        result."""
        began = time.monotonic()
        self._used = True
        try:
            result = await self._sandbox.execute(replace(self._template, code=code, session_id=self._id))
        finally:
            self.seconds += time.monotonic() - began
        self.executions += 1
        self.timeouts += result.status == "timeout"
        return result

    def fields(self, rounds: int) -> Row:
        """Return the record fields; `rounds`: pieces of code whose output stands in the answer."""
        return {
            "code_rounds_executed": rounds,
            "num_code_executions": self.executions,
            "num_code_timeouts": self.timeouts,
            "code_execution_time": self.seconds,
        }

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._used and self._id is not None:
            with contextlib.suppress(NewskillsError):  # the answer is there; what is left over ends with the run
                await asyncio.shield(self._sandbox.delete_session(self._id))
