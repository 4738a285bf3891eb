# SPDX-License-Identifier: Apache-2.0
"""`++server.code_execution.*`. Apart from the solver, so that a help page loads no engine."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct


class CodeExecution(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the model's code is run and what it sees of it (`++server.code_execution.*`)."""

    max_code_output_characters: Annotated[
        int, Meta(ge=0, description="longest code output shown to the model, in characters")
    ] = 1000
    code_execution_timeout: Annotated[float, Meta(gt=0, description="time limit of a code block in seconds")] = (
        10.0
    )
    code_execution_language: Annotated[str, Meta(min_length=1, description="language of the code blocks")] = (
        "ipython"
    )
    code_execution_headers: Annotated[
        tuple[str, ...], Meta(description="lines to put before each code block")
    ] = ()
    max_code_executions: Annotated[int, Meta(ge=0, description="largest number of code blocks per sample")] = 8
    sandbox_traceback_verbosity: Annotated[
        Literal["plain", "context", "verbose", "minimal"], Meta(description="style of tracebacks")
    ] = "plain"
    add_remaining_code_executions: Annotated[
        bool, Meta(description="tell the model after each output how many code executions are left")
    ] = False
