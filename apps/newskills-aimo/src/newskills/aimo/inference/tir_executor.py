# SPDX-License-Identifier: Apache-2.0
"""Solutions with code of a model in this process, under the names of the recipe that this one replaces.

Code runs in the sandbox, never in this process. `ns aimo generate --strategy tir` does the same with a served model.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import cache
from typing import Any

from msgspec import Struct

from newskills.aimo.local_model import LocalModel
from newskills.base.protocols import Execution
from newskills.run.engine.sandboxes import SharedSandbox
from newskills.run.grade import LoopThread
from newskills.run.rewarding.reward import has_box
from newskills.sandbox.config import SandboxConfig
from newskills.sandbox.make import make_sandbox
from newskills_aimo.recipe.evaluating import TIR

TIMEOUT, MAX_OUTPUT = 10.0, 2000
_BLOCK = re.compile(r"```python[ \t]*\n(.*?)```", re.DOTALL)


class CodeExecutionResult(Struct, kw_only=True):
    """What a program printed, or why it failed."""

    success: bool
    output: str
    error: str | None = None


def safe_execute_python(
    code: str, timeout: float = TIMEOUT, max_output_length: int = MAX_OUTPUT
) -> CodeExecutionResult:
    """Run a program in the sandbox, in a process that nothing is left of.

    Raises SandboxError, ConfigError where there can be no sandbox.
    """
    loop, sandbox = _shared_sandbox()
    result = loop.run(
        sandbox.execute(Execution(code=code, timeout=timeout, max_output_characters=max_output_length))
    )
    if result.status == "completed":
        return CodeExecutionResult(success=True, output=result.stdout)
    if result.status == "timeout":
        return CodeExecutionResult(
            success=False, output=result.stdout, error=f"Execution timed out after {timeout:g} seconds"
        )
    lines = result.stderr.strip().splitlines() or result.stdout.strip().splitlines() or [result.status]
    return CodeExecutionResult(success=False, output=result.stdout, error=lines[-1])


@cache
def _shared_sandbox() -> tuple[LoopThread, SharedSandbox]:
    """Return the sandbox of this process and the loop on which it lives; both end with the process."""
    loop = LoopThread()
    loop.__enter__()
    sandbox = SharedSandbox(lambda: make_sandbox(SandboxConfig(), os.environ), lambda _: None)
    return loop, sandbox


class TIRExecutor:
    """Goes on with an answer after each of its programs, with what that printed."""

    def __init__(
        self, model: Any, tokenizer: Any, max_code_executions: int = 5, max_tokens_per_step: int = 1024
    ) -> None:
        self._local = LocalModel(model, tokenizer)
        self.max_code_executions, self.max_tokens_per_step = max_code_executions, max_tokens_per_step
        self.execute: Callable[[str], CodeExecutionResult] = safe_execute_python

    def extract_code_blocks(self, text: str) -> list[tuple[int, int, str]]:
        """Return start, end and code of each program."""
        return [(match.start(), match.end(), match[1]) for match in _BLOCK.finditer(text)]

    def solve_with_tir(self, problem: str) -> str:
        """Return the whole answer, with its programs and their output; it goes on from the last of these once more."""
        answer = ""
        for executions in range(self.max_code_executions + 1):
            prompt = self._local.prompt(TIR, {"problem": problem}, answer)
            (reply,) = self._local.generate([prompt], max_new_tokens=self.max_tokens_per_step)
            programs = self.extract_code_blocks(reply.text)
            if not programs or executions == self.max_code_executions or has_box(reply.text[: programs[0][0]]):
                return answer + reply.text
            _, end, code = programs[0]  # what the model wrote behind a program is a guess at its output
            result = self.execute(code)
            output = result.output if result.success else f"Error: {result.error}\n"
            answer += f"{reply.text[:end]}\n```output\n{output}```\n"
        return answer
