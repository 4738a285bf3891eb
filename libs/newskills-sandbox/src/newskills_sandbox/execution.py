# SPDX-License-Identifier: Apache-2.0
"""A piece of code to run, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, kw_only=True, slots=True)
class Execution:
    """One piece of code to run. `timeout` in seconds of wall time; both outputs are cut at the character limit.

    session_id  keeps the state of a stateful language from call to call; None = run once, leave nothing
    database    for SQL: path of the SQLite file below the sandbox's data folder
    """

    code: str
    language: str = "ipython"
    timeout: float = 10.0
    session_id: str | None = None
    std_input: str = ""
    max_output_characters: int = 1000
    traceback_verbosity: str = "Plain"
    database: str = ""


@dataclass(kw_only=True, slots=True)
class ExecutionResult:
    """What a piece of code did.

    status               completed, error, failed (Lean), timeout, crashed, out_of_memory
    new_session_created  the state of earlier calls is not there (first call, or its process died)
    exit_code            of a program; None where none ended by itself
    isolation_level      what isolated it: a, b or none
    """

    status: str
    stdout: str = ""
    stderr: str = ""
    session_id: str | None = None
    new_session_created: bool = False
    exit_code: int | None = None
    isolation_level: str = ""
    seconds: float = 0.0


class CodeRunner(Protocol):
    """What runs code: a sandbox of this process, a client of a server, or either with something around it.

    Whatever the code does is an `ExecutionResult`. Raises ExecutionRefusedError for a request that makes no sense
    and SandboxError when the sandbox itself failed, which says nothing about the code.
    """

    async def execute(self, execution: Execution) -> ExecutionResult: ...

    async def delete_session(self, session_id: str) -> None:
        """End the session and everything it started; an unknown id is no error."""
        ...

    async def close(self) -> None: ...
