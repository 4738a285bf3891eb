# SPDX-License-Identifier: Apache-2.0
"""One container at work, by the command lines of its engine."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import IO, Any

from msgspec import structs

from newskills.base.environment import MIB, EnvironmentSpec, ExecutedCommand
from newskills.base.errors import EnvironmentFailedError
from newskills.environments.archives import pack_folder, unpack_folder
from newskills.environments.engines.engine import INSIDE, Argv, EngineProgram
from newskills.environments.kept import LARGEST_INPUT, KeptProcess
from newskills.environments.owners import new_name
from newskills.environments.programs import LONGEST_WORD, EndedProgram, last_line, run_program

HOUSEKEEPING = 120.0
"""Seconds for a call of the engine that does no work inside."""
COPYING = 1800.0
TRIES = 3
LOOK_EVERY = 0.5
STEP = 32 * MIB
"""Loss of free space on the disk after which a container's own files are counted."""
_ENGINE_SPEAKS = (b"Error", b"OCI runtime", b"FATAL", b"error", b"cannot ", b"can only ")
"""How an engine's own message begins, where it could not run a command."""


class Container:
    """Implements `AgentEnvironment`. `on_stop` is called once, when it is gone."""

    def __init__(
        self,
        engine: EngineProgram,
        spec: EnvironmentSpec,
        environ: Mapping[str, str],
        *,
        disk: int,
        bare: set[str],
        on_stop: Callable[[Container], None],
    ) -> None:
        """`disk`: bytes that may be written in it; 0 = any number. `bare`: images whose containers keep no process,
        which this one adds to."""
        self.name = new_name()
        self._engine, self._spec, self._environ = engine, spec, environ
        self._disk, self._bare, self._on_stop = disk, bare, on_stop
        self._kept: KeptProcess | None = None
        self._keeps = spec.image not in bare
        self._turn = asyncio.Lock()
        self._written: Path | None = None
        self._is_filled = False
        self._removal: asyncio.Future[None] | None = None

    async def start(self, timeout: float) -> None:
        """Raises ConfigError (image), EnvironmentFailedError."""
        for argv in self._engine.start(self.name, self._spec):
            made = await self._call(argv, timeout)
            if made.exit_code != 0:
                raise _cannot_start(self._engine, self._spec, made)
        if self._disk and (argv := self._engine.written_files(self.name)):
            shown = await self._call(argv, HOUSEKEEPING)
            folder = Path(shown.output.decode("utf-8", "replace").strip() or "/nonexistent")
            self._written = folder if folder.is_dir() else None
        for source, target in self._spec.trees.items():
            await self.copy_in(Path(source), target)

    async def execute(
        self, command: str, *, timeout: float, stdin: bytes = b"", max_output: int = MIB
    ) -> ExecutedCommand:
        """Raises EnvironmentFailedError."""
        words = command.encode("utf-8", "replace")
        if b"\0" in words or len(words) > LONGEST_WORD:
            why = f"a command has at most {LONGEST_WORD:,} bytes and no zero bytes; write long texts in parts"
            return ExecutedCommand(status="completed", output=why.encode(), exit_code=126)
        result = await self._by_kept(words, self._spec.workdir, timeout, stdin, max_output)
        if result is None:
            result = await self._by_engine(words, timeout, stdin, max_output)
        if result.status != "completed":
            await self._revive()
        return result

    async def copy_in(self, source: Path, target: str) -> None:
        """Raises EnvironmentFailedError, DataError where `source` cannot be read."""
        with tempfile.TemporaryFile() as archive:
            await asyncio.to_thread(pack_folder, source, archive)
            at_root = structs.replace(self._spec, workdir="/")  # its own may be what is made here
            done: ExecutedCommand | EndedProgram = await self._make_folder(at_root, target)
            for _ in range(TRIES if done.exit_code == 0 else 0):
                archive.seek(0)
                with tempfile.TemporaryDirectory() as scratch:  # podman 4 leaves a copy of each archive there
                    unpack = self._engine.unpack(self.name, at_root, target)
                    done = await self._call(unpack, COPYING, archive, TMPDIR=scratch)
                if done.exit_code == 0:
                    return
        raise EnvironmentFailedError(
            f"{source} cannot be copied to {target} of container {self.name}: {last_line(done.output)}"
        )

    async def copy_out(self, source: str, target: Path, *, max_bytes: int) -> None:
        """Raises EnvironmentFailedError, DataError."""
        with tempfile.TemporaryFile() as archive:
            argv = self._engine.pack(self.name, self._spec, source)
            done = await run_program(argv, timeout=COPYING, environ=self._environ, stdout=archive)
            if done.exit_code != 0:
                raise EnvironmentFailedError(
                    f"{source} of container {self.name} cannot be copied: {done.last_line}"
                )
            await asyncio.to_thread(unpack_folder, archive, target, source, max_bytes)

    async def stop(self) -> None:
        """Returns when it is gone, whoever asked first."""
        if self._removal is None:
            self._removal = asyncio.ensure_future(self._remove())
        await asyncio.shield(self._removal)

    async def _remove(self) -> None:
        try:
            self._let_go()
            for argv in self._engine.remove(self.name):
                await self._call(argv, HOUSEKEEPING)
        finally:
            self._on_stop(self)

    def _shell(self, spec: EnvironmentSpec, command: str) -> Argv:
        return [*self._engine.enter(self.name, spec), *INSIDE, command]

    async def _make_folder(self, spec: EnvironmentSpec, target: str) -> EndedProgram | ExecutedCommand:
        command = f"mkdir -p {shlex.quote(target)}"
        result = await self._by_kept(command.encode(), spec.workdir, HOUSEKEEPING, b"", MIB)
        return result or await self._call(self._shell(spec, command), HOUSEKEEPING)

    async def _by_kept(
        self, command: bytes, folder: str, timeout: float, stdin: bytes, max_output: int
    ) -> ExecutedCommand | None:
        """None where it has not begun, so that the engine has to start it."""
        if self._turn.locked() or len(stdin) > LARGEST_INPUT:
            return None
        async with self._turn:
            if (kept := await self._kept_process()) is None:
                return None
            work = kept.run(command, folder, timeout=timeout, stdin=stdin, max_output=max_output)
            return await self._watched(work)

    async def _kept_process(self) -> KeptProcess | None:
        """None where there can be none: the image, or what commands have left of it, has no Python that is fit."""
        if self._kept is not None and self._kept.is_open:
            return self._kept
        if not self._keeps:
            return None
        is_first = self._kept is None
        self._let_go()
        start = structs.replace(self._spec, workdir=self._spec.workdir and "/")  # its own may come and go
        try:
            kept = KeptProcess(self._engine.enter(self.name, start), self._environ)
        except OSError as error:
            raise EnvironmentFailedError(f"{self._engine.program} cannot be started: {error}.") from error
        try:
            self._keeps = await kept.is_ready()
        except asyncio.CancelledError:
            kept.close()
            raise
        if self._keeps:
            self._kept = kept
            return kept
        kept.close()
        if is_first:
            self._bare.add(self._spec.image)
        return None

    def _let_go(self) -> None:
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    async def _by_engine(self, command: bytes, timeout: float, stdin: bytes, max_output: int) -> ExecutedCommand:
        """Raises EnvironmentFailedError."""
        argv = self._shell(self._spec, command.decode())

        async def run() -> ExecutedCommand:
            work = run_program(argv, timeout=timeout, environ=self._environ, stdin=stdin, max_output=max_output)
            result = await self._watched(work)
            assert result is not None
            return result

        result = await run()
        for _ in range(TRIES):  # what podman does late for the end of a container may end it once more
            if result.exit_code in (None, 0) or not await self._was_down(result.output):
                return result
            result = await run()
        if result.exit_code not in (None, 0) and result.output.startswith(_ENGINE_SPEAKS):
            raise EnvironmentFailedError(
                f"Container {self.name} does not run any more: {last_line(result.output)}"
            )
        return result

    async def _watched(self, running: Coroutine[Any, Any, EndedProgram | None]) -> ExecutedCommand | None:
        """A command, ended where it fills the disk; None where it has not begun."""
        work = asyncio.ensure_future(running)
        full = asyncio.create_task(self._until_full())
        try:
            await asyncio.wait((work, full), return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                await self._revive()
            if (done := await work) is None:
                return None
        except OSError as error:
            raise EnvironmentFailedError(f"{self._engine.program} cannot be started: {error}.") from error
        except asyncio.CancelledError:
            work.cancel()
            raise
        finally:
            was_full = full.done() and not full.cancelled()
            full.cancel()
        return ExecutedCommand(
            status="disk_full" if was_full else "completed" if done.exit_code is not None else "timeout",
            output=done.output,
            omitted=done.omitted,
            exit_code=None if was_full else done.exit_code,
            seconds=done.seconds,
        )

    async def _until_full(self) -> None:
        """Returns when more was written in it than it may; its files are only counted while the disk fills up."""
        if self._written is None:
            await asyncio.Event().wait()
        assert self._written is not None
        limit = self._disk
        if self._is_filled:  # what an earlier command has left is no fault of this one
            limit = STEP + max(limit, await asyncio.to_thread(_size, self._written, sys.maxsize))
        free = shutil.disk_usage(self._written).free
        while True:
            await asyncio.sleep(LOOK_EVERY)
            now = shutil.disk_usage(self._written).free
            if now > free - min(STEP, self._disk // 4):
                continue
            free = now
            if await asyncio.to_thread(_size, self._written, limit) > limit:
                self._is_filled = True
                return

    async def _was_down(self, output: bytes) -> bool:
        """Whether the container itself had ended (a command killed its first process); it is started again."""
        if not output.startswith(_ENGINE_SPEAKS):
            return False
        probe = await self._call(self._shell(self._spec, ":"), HOUSEKEEPING)
        if probe.exit_code == 0 or b"not found" in probe.output:
            return False
        await self._revive()
        return True

    async def _revive(self) -> None:
        """Kills all that runs in it; its files stay."""
        self._let_go()
        for argv in self._engine.end_processes(self.name):
            done = await self._call(argv, HOUSEKEEPING)
            if done.exit_code is None:
                raise EnvironmentFailedError(f"Container {self.name} does not end its processes.")
        self._keeps = self._spec.image not in self._bare

    async def _call(
        self, argv: Argv, timeout: float, stdin: bytes | IO[bytes] = b"", **variables: str
    ) -> EndedProgram:
        environ = {**self._environ, **variables}
        try:
            return await run_program(argv, timeout=timeout, environ=environ, stdin=stdin)
        except OSError as error:
            raise EnvironmentFailedError(f"{argv[0]} cannot be started: {error}.") from error


def _cannot_start(engine: EngineProgram, spec: EnvironmentSpec, made: EndedProgram) -> EnvironmentFailedError:
    why = made.last_line if made.exit_code is not None else "it takes longer than ++environment.start_timeout"
    return EnvironmentFailedError(
        f"{engine.program} cannot start a container of image '{spec.image}': {why}",
        hint=f"Is the image there? `{engine.program} images` lists those of this machine; `{engine.program} pull` "
        f"downloads one, `{engine.program} build` makes one."
        if engine.program in ("podman", "docker")
        else "",
    )


def _size(folder: Path, enough: int) -> int:
    """Bytes on disk below `folder`; stops counting at `enough`."""
    total, places = 0, [str(folder)]
    while places and total <= enough:
        with contextlib.suppress(OSError), os.scandir(places.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        places.append(entry.path)
    return total
