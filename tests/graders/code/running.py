# SPDX-License-Identifier: Apache-2.0
"""Many answers graded at once in one real sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from newskills.base import aio
from newskills.base.protocols import Kit
from newskills.base.records import Row, Score
from newskills.graders.code.evalplus import EvalPlusConfig, EvalPlusGrader
from newskills.sandbox.config import SandboxConfig
from newskills.sandbox.host import LocalSandbox


def fenced(code: str) -> str:
    return f"Here it is:\n```python\n{code}\n```\nDone."


def grade_all(rows: Sequence[Row], **config: Any) -> list[Score]:
    """The verdicts in the order of the rows."""

    async def main() -> list[Score]:
        sandbox = LocalSandbox(SandboxConfig(preload=()))  # what is loaded is paid by each start, and each fork
        await sandbox.start()
        assert sandbox.isolation_level in ("a", "b"), "hostile code is run in isolation only"
        grader = EvalPlusGrader(EvalPlusConfig(**config))
        try:
            return await asyncio.gather(*(grader.grade(row, Kit(sandbox=sandbox)) for row in rows))
        finally:
            await sandbox.close()

    return aio.run(main)
