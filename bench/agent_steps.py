# SPDX-License-Identifier: Apache-2.0
"""CPU seconds of a step in one container, by a plain `podman exec` and ours: `python -m bench.agent_steps IMAGE STEPS`.

A process of its own, as it takes in what podman leaves to others (monitors, their clean-up), so that all of it counts,
and no other work on the machine does.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import subprocess
import sys
import time

from bench.measure import tree_cpu
from newskills.base.environment import EnvironmentSpec
from newskills.environments.config import EnvironmentConfig
from newskills.environments.containers import ContainerPool

_TAKE_ORPHANS = 36
SETTLING = 1.0
"""Seconds for what podman does after a command has ended."""


def used() -> float:
    """CPU seconds of this process and of all that it has started, those that run still among them."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    return tree_cpu(os.getpid())


async def costs(image: str, steps: int) -> dict[str, float]:
    """Seconds of CPU time of a step, without the start of the container and the first step."""
    pool = ContainerPool(EnvironmentConfig(engine="podman"), os.environ)
    try:
        container = await pool.start(EnvironmentSpec(image=image))
        name = str(getattr(container, "name", ""))
        plain = ["podman", "exec", "--interactive", "--workdir", "/", name, "bash", "-c", "echo step"]
        shown = {}
        for which in ("plain", "ours"):
            await container.execute("echo step", timeout=600)
            time.sleep(SETTLING)
            before = used()
            for _ in range(steps):
                if which == "ours":
                    await container.execute("echo step", timeout=600)
                else:
                    subprocess.run(plain, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            time.sleep(SETTLING)
            shown[which] = (used() - before) / steps
    finally:
        await pool.close()
    return shown


if __name__ == "__main__":
    ctypes.CDLL(None).prctl(_TAKE_ORPHANS, 1, 0, 0, 0)
    print(json.dumps(asyncio.run(costs(sys.argv[1], int(sys.argv[2])))))
