# SPDX-License-Identifier: Apache-2.0
"""A sandbox in a process of its own, as root or as an ordinary user: executions in, results out.

Run as a program it reads one JSON object from its standard input and prints one JSON line per execution, in order.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

NOBODY = 65534
PATIENCE = 120.0


def drive(
    python: str,
    settings: dict[str, Any],
    executions: Sequence[dict[str, Any]],
    *,
    ordinary: bool = False,
    patience: float = PATIENCE,
) -> list[dict[str, Any]]:
    """Results (or {"raised", "text"}) of `executions`, whose fields are those of `Execution`."""
    with open(__file__, encoding="utf-8") as file:
        program = file.read()
    done = subprocess.run(
        [python, "-I", "-c", program],
        input=json.dumps({"settings": settings, "executions": list(executions)}),
        capture_output=True,
        text=True,
        timeout=patience,
        check=False,
        cwd="/",
        **as_ordinary(ordinary),
    )
    assert done.returncode == 0, f"the driver ended with {done.returncode}\n{done.stdout}\n{done.stderr[-4000:]}"
    return [json.loads(line) for line in done.stdout.splitlines()]


def as_ordinary(ordinary: bool) -> dict[str, Any]:
    """Arguments of Popen that make the child an ordinary user; who is one stays who it is."""
    if not ordinary or os.geteuid() != 0:
        return {}
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []}


async def _serve(job: dict[str, Any]) -> None:
    import msgspec

    from newskills.base.errors import NewskillsError
    from newskills.base.protocols import Execution
    from newskills.sandbox.config import SandboxConfig
    from newskills.sandbox.host import LocalSandbox

    sandbox = LocalSandbox(msgspec.convert(job["settings"], SandboxConfig), environ={})
    try:
        for each in job["executions"]:
            try:
                result = msgspec.to_builtins(await sandbox.execute(msgspec.convert(each, Execution)))
            except NewskillsError as error:
                result = {"raised": type(error).__name__, "text": str(error)}
            print(json.dumps(result), flush=True)
    finally:
        await sandbox.close()


if __name__ == "__main__":
    asyncio.run(_serve(json.load(sys.stdin)))
