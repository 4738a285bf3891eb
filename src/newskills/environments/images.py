# SPDX-License-Identifier: Apache-2.0
"""Images of tasks that come as a Dockerfile: built once on this machine, whichever sample asks first."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from newskills.base.environment import EnvironmentSpec
from newskills.base.errors import DataError, EnvironmentFailedError
from newskills.environments.engines.engine import EngineProgram
from newskills.environments.programs import run_program

INSPECTING = 120.0


class ImageBuilder:
    """Of one run. One image is built at a time: builds fill disk and cores."""

    def __init__(self, engine: EngineProgram, environ: Mapping[str, str]) -> None:
        self._engine, self._environ = engine, environ
        self._building = asyncio.Lock()
        self._there: set[str] = set()

    async def ensure(self, spec: EnvironmentSpec, timeout: float) -> None:
        """Build the image of `spec` where this machine does not have it. Raises ConfigError (an engine that builds
        nothing), DataError (a folder that is not there), EnvironmentFailedError with the last line of a build that
        failed."""
        async with self._building:
            if spec.image in self._there:
                return
            if not await self._is_there(spec.image):
                await self._build(spec, timeout)
            self._there.add(spec.image)

    async def _is_there(self, image: str) -> bool:
        shown = await run_program(self._engine.has_image(image), timeout=INSPECTING, environ=self._environ)
        return shown.exit_code == 0

    async def _build(self, spec: EnvironmentSpec, timeout: float) -> None:
        with tempfile.TemporaryDirectory() as place:
            context = Path(place, "context")
            await asyncio.to_thread(_staged, Path(spec.build), context)
            argv = self._engine.build(spec.image, str(context))
            done = await run_program(argv, timeout=timeout, environ=self._environ)
        if done.exit_code is None:
            raise EnvironmentFailedError(
                f"The image of {spec.build} is not built within {timeout:g} s.",
                hint="Allow more: ++environment.start_timeout=3600",
            )
        if done.exit_code != 0:
            raise EnvironmentFailedError(
                f"The image of {spec.build} cannot be built: {done.last_line}",
                hint=f"Try it: {self._engine.program} build {spec.build}",
            )


def _staged(source: Path, target: Path) -> None:
    """Copy `source` to `target`, where scripts may be executed: prepared data keeps the bytes of files, not their
    modes."""
    try:
        shutil.copytree(source, target)
        for file in target.rglob("*"):
            if file.is_file():
                with file.open("rb") as opened:
                    script = opened.read(2) == b"#!"
                file.chmod(0o755 if script else 0o644)
    except OSError as error:
        raise DataError(f"{source} cannot be read: {error.strerror or error}.") from error
