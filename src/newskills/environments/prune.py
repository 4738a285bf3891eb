# SPDX-License-Identifier: Apache-2.0
"""What environments have left on this machine: of runs that were killed, and images that no run works with."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from newskills.base.environment import TASK_IMAGES
from newskills.environments.container import remove_container
from newskills.environments.engines.engine import EngineProgram
from newskills.environments.images import images_in_use
from newskills.environments.owners import is_left_over
from newskills.environments.programs import run_program
from newskills.environments.services import places_of

CALL = 120.0
REMOVING = 600.0
Kind = Literal["container", "network", "volume", "image"]


class Leftover(Struct, frozen=True, kw_only=True):
    """`in_use`: a run that goes on works with it; `size`: as the engine tells it, '' where it tells none."""

    kind: Kind
    name: str
    size: str = ""
    in_use: bool = False


async def list_leftovers(engine: EngineProgram, environ: Mapping[str, str]) -> list[Leftover]:
    """List the containers, networks, volumes and images that environments have made. Raises
    EnvironmentFailedError."""
    shown: list[Leftover] = []
    for line in await _output_lines([*engine.names()], environ):
        name = line.split()[0]
        shown.append(Leftover(kind="container", name=name, in_use=not is_left_over(name)))
    if engine.groups is not None:
        for name, argv in await places_of(engine.groups, environ):
            kind: Kind = "volume" if "volume" in argv else "network"
            shown.append(Leftover(kind=kind, name=name, in_use=not is_left_over(name)))
    if images := engine.list_images(f"{TASK_IMAGES}*"):
        used = images_in_use()
        for line in await _output_lines(images, environ):
            name, _, size = line.partition(" ")
            if name.startswith(TASK_IMAGES):  # podman names the image by all its tags
                shown.append(Leftover(kind="image", name=name, size=size, in_use=name in used))
    return shown


async def remove_leftover(engine: EngineProgram, leftover: Leftover, environ: Mapping[str, str]) -> str:
    """Remove what is left over; return why it could not be, '' where it is gone. Raises EnvironmentFailedError."""
    if leftover.kind == "container":
        await remove_container(engine, leftover.name, environ)
        return ""
    if leftover.kind == "image":
        argv = engine.remove_image(leftover.name)
    else:
        assert engine.groups is not None
        argv = next((argv for name, argv in await places_of(engine.groups, environ) if name == leftover.name), [])
    if not argv:
        return ""
    done = await run_program(argv, timeout=REMOVING, environ=environ)
    return "" if done.exit_code == 0 else done.last_line


async def _output_lines(argv: list[str], environ: Mapping[str, str]) -> list[str]:
    done = await run_program(argv, timeout=CALL, environ=environ)
    if done.exit_code != 0:
        return []
    return [line for line in done.output.decode("utf-8", "replace").splitlines() if line.strip()]


class Lifeline:
    """A process that removes what a run leaves where the run is killed: services of tasks are processes of the engine,
    which do not end with the run."""

    def __init__(self, engine: EngineProgram, environ: Mapping[str, str]) -> None:
        """Start it; it waits for the end of its input, which is that of this process."""
        prune = ("environments", "prune", "--left_over", "--yes", f"--engine={engine.program}")
        self._process = subprocess.Popen(
            ["sh", "-c", 'cat >/dev/null; exec "$@"', "sh", sys.executable, "-m", "newskills", *prune],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=dict(environ),
            cwd=tempfile.gettempdir(),
            start_new_session=True,
        )

    def close(self) -> None:
        """End it, where the run has removed everything itself."""
        assert self._process.stdin is not None
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()
