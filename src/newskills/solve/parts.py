# SPDX-License-Identifier: Apache-2.0
"""What solvers are made of: `run` builds the parts from a config, a solver takes those it needs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from newskills.base.errors import ConfigError
from newskills.base.protocols import Solver, Tokenizer
from newskills.base.records import Row
from newskills.prompts.renderer import Prompt, load_prompt
from newskills.solve.agents.options import AgentOptions
from newskills.solve.calls.tool_loop import ToolOptions, ToolSolver
from newskills.solve.chat import ChatSolver
from newskills.solve.code.execution import CodeExecutionSolver, CodeOptions


class SolverParts(Struct, frozen=True, kw_only=True):
    """`chat` renders rows and records replies; `counter` counts tokens of texts that no server has counted.

    code   how code in the text is marked and run; None where no code tags are named
    tools  what the model may call; None where there is nothing
    stamp  which model answers, to what prompt and how, for solvers that leave this in their records
    base   what draws the answers of a solver that chooses among several; None: `chat`
    folder where files that belong to answers go: beside the output
    data_dir where the file of the rows is, and the files that they name
    load   a prompt by its name, as this model is shown it
    agent  which agent works, and where; None where none is named
    resumes whether what a killed run has asked is kept beside the output and used again
    """

    chat: ChatSolver
    code: CodeOptions | None = None
    tools: ToolOptions | None = None
    counter: Tokenizer | None = None
    stamp: Row = {}
    base: Solver | None = None
    folder: Path = Path()
    data_dir: Path = Path()
    load: Callable[[str], Prompt] = load_prompt
    agent: AgentOptions | None = None
    resumes: bool = True

    @property
    def drawn_by(self) -> Solver:
        """The solver of single answers, where several are drawn."""
        return self.base or self.chat


def chat(parts: SolverParts) -> ChatSolver:
    """Return the solver `chat`."""
    return parts.chat


def code_execution(parts: SolverParts) -> CodeExecutionSolver:
    """Return the solver `code_execution`. Raises ConfigError without code tags."""
    return CodeExecutionSolver(parts.chat, code_of(parts), counter=parts.counter)


def tools(parts: SolverParts) -> ToolSolver:
    """Return the solver `tools`. Raises ConfigError without tools."""
    if parts.tools is None:
        raise ConfigError("There are no tools to call.", hint="Give some: ++tool_modules=[python].")
    return ToolSolver(parts.chat, parts.tools, counter=parts.counter)


def code_of(parts: SolverParts) -> CodeOptions:
    """Return the options of code execution. Raises ConfigError without code tags."""
    if parts.code is None:
        raise ConfigError(
            "Running code needs code tags.",
            hint="Set ++code_tags=qwen, or the tags that the model was trained with.",
        )
    return parts.code
