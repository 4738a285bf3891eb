# SPDX-License-Identifier: Apache-2.0
"""`stateful_python_code_exec`: a notebook that lives as long as the sample, in the run's sandbox."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Sequence
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta, Struct

from newskills.base.errors import ConfigError, SandboxError
from newskills.base.protocols import Execution, ExecutionResult, ToolSpec
from newskills.base.records import Row
from newskills.tools.provider import ToolContext, ToolProvider

NAME = "stateful_python_code_exec"
ENDS_STATE = {
    "timeout": "The code was stopped after {timeout:g} seconds.",
    "crashed": "The interpreter died while it ran the code.",
    "out_of_memory": "The code needed more memory than there is.",
}
"""Statuses after which the variables may be gone → what the model is told where the sandbox says nothing."""


class PythonConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of `++tool_overrides.PythonTool.*`."""

    timeout: Annotated[float, Meta(gt=0, description="time limit of a call in seconds")] = 10.0
    max_output_characters: Annotated[
        int, Meta(ge=1, description="longest output of each stream in characters")
    ] = 1000
    language: Annotated[str, Meta(description="a stateful language of the sandbox")] = "ipython"


class Metrics(Struct):
    """Of one sample. `code_execution_time` in seconds, as the sandbox measures it."""

    num_code_executions: int = 0
    num_code_timeouts: int = 0
    code_execution_time: float = 0.0


class Notebook(Struct):
    """The session of one sample. Calls take turns, in the order in which the model made them."""

    session_id: str
    turn: asyncio.Lock
    metrics: Metrics
    last_status: str = ""


class PythonTool(ToolProvider):
    """One sandbox session per sample, deleted with it.

    What the code does is told to the model: output, traceback, timeout. A failure of the sandbox, the loss of a
    session's variables without any fault of its code included, passes as SandboxError: the sample ends unscored.
    """

    Config = PythonConfig
    older_settings: ClassVar = {"exec_timeout_s": "timeout"}

    def __init__(self, config: PythonConfig, context: ToolContext) -> None:
        self._config, self._sandbox = config, context.sandbox
        self._notebooks: dict[str, Notebook] = {}

    async def specs(self) -> Sequence[ToolSpec]:
        description = (
            "Runs Python code in a notebook that remembers variables, imports and functions from call to call. "
            "Returns what the code prints and the value of its last expression, or the traceback. "
            f"Code that runs longer than {self._config.timeout:g} seconds is stopped."
        )
        schema: Row = {
            "type": "object",
            "properties": {"code": {"type": "string", "description": "Python code to run"}},
            "required": ["code"],
        }
        return [ToolSpec(name=NAME, description=description, input_schema=schema)]

    async def execute(self, name: str, arguments: Row, request_id: str) -> str:
        """Run the cell and return what it shows. Raises ConfigError where there is no sandbox, SandboxError where it
        fails."""
        if self._sandbox is None:
            raise ConfigError("The python tool needs a sandbox.", hint="Add --with_sandbox.")
        if request_id not in self._notebooks:
            self._notebooks[request_id] = Notebook(uuid.uuid4().hex, asyncio.Lock(), Metrics())
        notebook = self._notebooks[request_id]
        config = self._config
        async with notebook.turn:
            result = await self._sandbox.execute(
                Execution(
                    code=arguments["code"],
                    language=config.language,
                    timeout=config.timeout,
                    session_id=notebook.session_id,
                    max_output_characters=config.max_output_characters,
                )
            )
            return self._format_result(result, notebook)

    async def release(self, request_id: str) -> Row:
        notebook = self._notebooks.pop(request_id, None)
        if notebook is None:
            return {}
        if self._sandbox is not None:
            with contextlib.suppress(SandboxError):  # it ends with the sandbox at the latest; the sample is done
                await self._sandbox.delete_session(notebook.session_id)
        metrics: Row = msgspec.to_builtins(notebook.metrics)
        return metrics

    async def close(self) -> None:
        """End the sessions of this tool; the sandbox itself belongs to the run."""
        await asyncio.gather(*(self.release(request_id) for request_id in tuple(self._notebooks)))

    def _format_result(self, result: ExecutionResult, notebook: Notebook) -> str:
        metrics, before = notebook.metrics, notebook.last_status
        ended = result.status in ENDS_STATE
        if before and before not in ENDS_STATE and result.new_session_created and not ended:
            raise SandboxError("The sandbox lost the variables of a session between two calls.")
        notebook.last_status = result.status
        metrics.num_code_executions += 1
        metrics.num_code_timeouts += result.status == "timeout"
        metrics.code_execution_time += result.seconds
        text = (result.stdout + result.stderr).removesuffix("\n")
        if ended and not result.stderr:
            why = ENDS_STATE[result.status].format(timeout=self._config.timeout)
            text = f"{text}\n{why}".lstrip("\n")
        if before in ENDS_STATE and result.new_session_created:
            text = f"The variables of earlier calls are gone.\n{text}"
        return text
