# SPDX-License-Identifier: Apache-2.0
"""Images of tasks that come as a Dockerfile: built once on this machine for all tasks and runs with the same files."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

from msgspec import structs

from newskills.base.environment import EnvironmentSpec, ImageBuild
from newskills.base.errors import DataError, EnvironmentFailedError, LockedError, StorageError
from newskills.base.store import hold_lock, private_folder
from newskills.environments.engines.engine import EngineProgram
from newskills.environments.owners import PREFIX, is_left_over, new_name
from newskills.environments.programs import run_program

INSPECTING = 120.0
LOOK_EVERY = 0.2


class ImageBuilder:
    """Of one run. One image is built at a time, by whichever run of this machine and user asks first: builds fill disk
    and cores."""

    def __init__(self, engine: EngineProgram, environ: Mapping[str, str]) -> None:
        self._engine, self._environ = engine, environ
        self._building = asyncio.Lock()
        self._there: set[str] = set()

    async def ensure(self, spec: EnvironmentSpec, timeout: float) -> None:
        """Build the images of `spec` that this machine does not have. Raises ConfigError (an engine that builds
        nothing), DataError (a folder that is not there), EnvironmentFailedError with the last line of a build that
        failed."""
        builds = {spec.image: ImageBuild(folder=spec.build)} if spec.build else {}
        if spec.group is not None:
            builds |= {
                service.image: service.build for service in spec.group.services if service.build is not None
            }
        for image, build in builds.items():
            async with self._building:
                if image not in self._there:
                    await self._ensure(image, build, timeout)
                    self._there.add(image)

    async def _ensure(self, image: str, build: ImageBuild, timeout: float) -> None:
        note_image(image)
        if await self._is_there(image):
            return
        async with hold_build_lock():
            if not await self._is_there(image):  # another run may have built it while this one waited
                await self._build(image, build, timeout)

    async def _is_there(self, image: str) -> bool:
        shown = await run_program(self._engine.has_image(image), timeout=INSPECTING, environ=self._environ)
        return shown.exit_code == 0

    async def _build(self, image: str, build: ImageBuild, timeout: float) -> None:
        with tempfile.TemporaryDirectory() as place:
            context = Path(place, "context")
            await asyncio.to_thread(_stage_context, Path(build.folder), context)
            argv = self._engine.build(image, structs.replace(build, folder=str(context)))
            done = await run_program(argv, timeout=timeout, environ=self._environ)
        if done.exit_code is None:
            raise EnvironmentFailedError(
                f"The image of {build.folder} is not built within {timeout:g} s.",
                hint="Allow more: ++environment.start_timeout=3600",
            )
        if done.exit_code != 0:
            raise EnvironmentFailedError(
                f"The image of {build.folder} cannot be built: {done.last_line}",
                hint=f"Try it: {self._engine.program} build {build.folder}",
            )


def note_image(image: str) -> None:
    """Note that this process works with an image, so that nobody removes it meanwhile. Raises StorageError."""
    file = _notes_folder() / new_name().rpartition(".")[0]
    with file.open("a") as notes:
        notes.write(f"{image}\n")


def images_in_use() -> set[str]:
    """Return the images that living processes have noted; the notes of dead ones are removed."""
    images: set[str] = set()
    for file in sorted(_notes_folder().glob(f"{PREFIX}.*")):
        if is_left_over(f"{file.name}.0"):
            file.unlink(missing_ok=True)
        else:
            images.update(file.read_text().splitlines())
    return images


def build_lock() -> Path:
    """Return the file that a run locks while it builds an image."""
    return _notes_folder() / "build.lock"


def _notes_folder() -> Path:
    """Return the folder of this machine and user in which runs note what they do, whatever caches they have. Raises
    StorageError where another user has made it."""
    folder = Path(tempfile.gettempdir(), f"newskills-environments-{os.getuid()}")
    return private_folder(folder, "notes of images", "Set TMPDIR to a folder that you own.")


@asynccontextmanager
async def hold_build_lock() -> AsyncIterator[None]:
    """Let no other run of this machine and user build an image meanwhile; wait until none does, in a way that a
    cancelled run can leave."""
    path = build_lock()
    with ExitStack() as stack:
        while True:
            try:
                stack.enter_context(hold_lock(path, "The lock of builds"))
                break
            except LockedError:
                await asyncio.sleep(LOOK_EVERY)
            except StorageError:  # no locks here: two runs may build the same, and the later one's name stands
                break
        yield


def _stage_context(source: Path, target: Path) -> None:
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
