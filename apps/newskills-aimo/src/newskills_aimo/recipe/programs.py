# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of solutions, so that no solution is learnt whose programs print something else than it shows."""

from __future__ import annotations

import asyncio
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from newskills.base import aio
from newskills.base.errors import DataError
from newskills.base.protocols import Execution, ExecutionResult, Kit, Sandbox
from newskills.base.records import Row
from newskills.base.store import AppendLog, read_rows, write_rows
from newskills.run.engine.sandboxes import SharedSandbox
from newskills.sandbox.config import SandboxConfig
from newskills.sandbox.make import make_sandbox
from newskills.solve.code.sessions import CodeSession

KEPT = "kept"
SAVED_AFTER = 64
"""Rows whose verdicts go to the disk together."""
TOLERANCE = 1e-6
"""Of numbers in outputs: other machines and versions differ in the last digits."""
_BLOCK = re.compile(r"```python[ \t]*\n(.*?)\n?```(?:\s*```output[ \t]*\n(.*?)\n?```)?", re.DOTALL)


class CodeBlock(NamedTuple):
    """A program and the output that the solution shows, None where it shows none."""

    code: str
    shown: str | None


class ProgramCheck(Struct, frozen=True, kw_only=True):
    """`limit` programs a row, `timeout` seconds each, so many rows at once (0 = two for each core)."""

    limit: int = 5
    timeout: float = 10.0
    at_once: int = 0
    sandbox: SandboxConfig = SandboxConfig()


def find_code_blocks(solution: str) -> list[CodeBlock]:
    """Return the programs between ```python and ```, in order.

    >>> blocks("So:\\n```python\\nprint(2)\\n```\\n```output\\n2\\n```\\n")
    [CodeBlock(code='print(2)', shown='2')]
    """
    return [CodeBlock(match[1], match[2]) for match in _BLOCK.finditer(solution)]


def same_output(shown: str, real: str) -> bool:
    """Return whether the outputs are equal but for blanks and for the last digits of numbers."""
    left, other = shown.split(), real.split()
    return len(left) == len(other) and all(map(_same_word, left, other))


def _same_word(left: str, other: str) -> bool:
    if left == other:
        return True
    try:
        a, b = float(left.strip("()[],")), float(other.strip("()[],"))
    except ValueError:
        return False
    return math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


def keep_true(
    rows: Sequence[Row], target: Path, check: ProgramCheck, *, say: Callable[[str], None]
) -> Counter[str]:
    """Write the rows whose programs print what they show to `target`, and return the number of rows for each verdict.

    `rows` are conversations (`messages`) that end with the solution. Verdicts so far are kept beside `target`, and a
    killed check goes on behind them. Raises DataError where no row is left, SandboxError where the sandbox failed:
    that says nothing about a row, and none is left out for it.
    """
    log = AppendLog(target.with_suffix(".verdicts.jsonl"))
    try:
        verdicts = [str(row["verdict"]) for row in read_rows(log.path)]
        if len(verdicts) < len(rows):
            aio.run(lambda: _judge_rows(rows, verdicts, log, check, say))
    finally:
        log.close()
    kept = [row for row, verdict in zip(rows, verdicts, strict=True) if verdict == KEPT]
    counts = Counter(verdicts)
    if not kept:
        raise DataError(
            f"None of {len(rows)} rows has code that prints what it shows: "
            f"{', '.join(f'{count} {name}' for name, count in counts.most_common())}.",
            hint="++tir.check_programs=false keeps all rows unchecked.",
        )
    write_rows(target, kept)
    return counts


async def _judge_rows(
    rows: Sequence[Row], verdicts: list[str], log: AppendLog, check: ProgramCheck, say: Callable[[str], None]
) -> None:
    """Append a verdict to `verdicts` and `log` for each row that has none yet."""
    sandbox = SharedSandbox(lambda: make_sandbox(check.sandbox, os.environ), lambda _: None)
    gate = asyncio.Semaphore(check.at_once or 2 * (os.cpu_count() or 1))

    async def judge_row(row: Row) -> str:
        async with gate:
            return await verdict_of(str(row["messages"][-1]["content"]), sandbox, check)

    try:
        await sandbox.start()
        while len(verdicts) < len(rows):
            part = rows[len(verdicts) : len(verdicts) + SAVED_AFTER]
            verdicts_of_part = await asyncio.gather(*map(judge_row, part))
            for verdict in verdicts_of_part:
                log.append({"verdict": verdict})
            log.sync()
            verdicts += verdicts_of_part
            say(f"the code of {len(verdicts)} of {len(rows)} rows was run")
    finally:
        await sandbox.close()


async def verdict_of(solution: str, sandbox: Sandbox, check: ProgramCheck) -> str:
    """Return `KEPT`, or why the solution is left out. Raises SandboxError."""
    programs = find_code_blocks(solution)
    if not programs:
        return "without code"
    if len(programs) > check.limit:
        return f"with more than {check.limit} code blocks"
    template = Execution(code="", timeout=check.timeout, max_output_characters=10_000)
    async with CodeSession(Kit(sandbox=sandbox), template) as session:
        for block in programs:
            if (why := _failure_reason(block, await session.run(block.code))) is not None:
                return why
    return KEPT


def _failure_reason(block: CodeBlock, result: ExecutionResult) -> str | None:
    if result.status == "timeout":
        return "too slow"
    if result.status != "completed":
        return "failing"
    if block.shown is not None and not same_output(block.shown, result.stdout):
        return "with another output"
    return None
