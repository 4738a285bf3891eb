# SPDX-License-Identifier: Apache-2.0
"""Rows graded by any grader of code in one real sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from newskills.base import aio
from newskills.base.protocols import Kit
from newskills.base.records import Row, Score
from newskills.graders import is_executing, make_grader
from newskills.sandbox.config import SandboxConfig
from newskills.sandbox.host import LocalSandbox


def graded(
    grader: str, rows: Sequence[Row], data_dir: Path | None = None, preload: tuple[str, ...] = (), **config: Any
) -> list[Score]:
    """The verdicts in the order of the rows; three at once. `preload`: modules that most of the answers import."""

    async def main() -> list[Score]:
        sandbox = LocalSandbox(SandboxConfig(data_dir=str(data_dir or ""), preload=preload))
        await sandbox.start()
        assert sandbox.isolation_level in ("a", "b"), "hostile code is run in isolation only"
        made = make_grader(grader, config)
        assert is_executing(made)
        room = asyncio.Semaphore(3)

        async def one(row: Row) -> Score:
            async with room:
                return await made.grade(row, Kit(sandbox=sandbox))

        try:
            return await asyncio.gather(*map(one, rows))
        finally:
            await sandbox.close()

    return aio.run(main)


def fenced(code: str, language: str = "python") -> str:
    return f"Here it is:\n```{language}\n{code}\n```\n"
