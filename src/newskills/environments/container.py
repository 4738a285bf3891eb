# SPDX-License-Identifier: Apache-2.0
"""One container at work, by the command lines of its engine."""

from __future__ import annotations

import asyncio
import re
import shlex
import tempfile
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from msgspec import structs

from newskills.base.environment import MIB, EnvironmentSpec, ExecutedCommand
from newskills.base.errors import EnvironmentFailedError
from newskills.environments.archives import pack_folder, unpack_folder
from newskills.environments.disk import DiskWatch, Storage
from newskills.environments.engines.engine import INSIDE, WITH_INPUT, Argv, EngineProgram
from newskills.environments.kept import LARGEST_INPUT, STARTING, Beginning, KeptProcess, words_of_kept
from newskills.environments.owners import new_name
from newskills.environments.programs import LONGEST_WORD, EndedProgram, last_line, run_program
from newskills.environments.services import Companions

HOUSEKEEPING = 120.0
"""Seconds for a call of the engine that does no work inside."""
COPYING = 1800.0
ENDING = 0.5
"""Seconds for what an engine does when a container has ended."""
TRIES = 3
ROOT = "0"
BETTER_ENGINES = "Use ++environment.engine=podman or docker."
_ENGINE_SPEAKS = (b"Error", b"OCI runtime", b"FATAL", b"error", b"cannot ", b"can only ")
"""How an engine's own message begins, where it could not run a command."""
_ADVICE = re.compile(rb"^(?:Run|See) 'docker .*$", re.MULTILINE)
"""What docker ends each message with."""


class Container:
    """Implements `AgentEnvironment`. `on_stop` is called once, when it is gone."""

    def __init__(
        self,
        engine: EngineProgram,
        spec: EnvironmentSpec,
        environ: Mapping[str, str],
        storage: Storage,
        on_stop: Callable[[Container], None],
    ) -> None:
        self.name = new_name()
        self._engine, self._spec, self._environ, self._on_stop = engine, spec, environ, on_stop
        self._kept: KeptProcess | None = None
        self._keeps = True
        self._turn = asyncio.Lock()
        self._online = not spec.offline
        self._disk = DiskWatch(storage, self._written_files, spec.disk_mb * MIB)
        self._companions = Companions(engine, spec, self.name, environ) if spec.group is not None else None
        self._removal: asyncio.Future[None] | None = None

    async def start(self, timeout: float) -> None:
        """Start the container with the services beside it, and copy the folders of its specification into it. Raises
        ConfigError (image), EnvironmentFailedError."""
        if self._companions is not None:
            self._spec = await self._companions.start_before(timeout)
        for argv in self._engine.start(self.name, self._spec):
            if self._engine.resume(self.name):
                await self._start_joined([*argv, *words_of_kept()], timeout)
            elif (made := await self._call(argv, timeout)).exit_code != 0:
                raise _cannot_start(self._engine, self._spec, made.last_line if made.exit_code is not None else "")
        if self._companions is not None:
            await self._companions.start_after(timeout)
        await self._disk.begin()
        for source, target in self._spec.trees.items():
            await self.copy_in(Path(source), target)

    async def execute(
        self, command: str, *, timeout: float, stdin: bytes = b"", max_output: int = MIB
    ) -> ExecutedCommand:
        """Execute a shell command in the container. Raises EnvironmentFailedError."""
        words = command.encode("utf-8", "replace")
        if b"\0" in words or len(words) > LONGEST_WORD:
            why = f"a command has at most {LONGEST_WORD:,} bytes and no zero bytes; write long texts in parts"
            return ExecutedCommand(status="completed", output=why.encode(), exit_code=126)
        result = None
        if not self._spec.user:  # the kept process is the image's own user
            result = await self._by_kept(words, self._spec.workdir, timeout, stdin, max_output)
        if result is None:
            result = await self._by_engine(words, timeout, stdin, max_output)
        if result.status != "completed":
            await self._revive()
        return result

    async def set_phase(self, *, user: str, online: bool, hosts: Sequence[str] = ()) -> None:
        """Change who runs commands, and whether the network can be reached. Raises EnvironmentFailedError."""
        engine = self._engine
        if user and not engine.has_users:
            raise EnvironmentFailedError(
                f"The task's commands run as its user '{user}', and {engine.program} knows no users of containers.",
                hint=BETTER_ENGINES,
            )
        self._spec = structs.replace(self._spec, user=user)
        if self._spec.offline:
            return
        if self._companions is not None:
            await self._companions.set_network(online=online, hosts=hosts)
            return
        if online == self._online:
            return
        argv = engine.connect(self.name, online=online)
        if not argv:
            raise EnvironmentFailedError(
                f"The task closes the network for a time, which {engine.program} cannot.", hint=BETTER_ENGINES
            )
        done = await self._call(argv, HOUSEKEEPING)
        if done.exit_code != 0:
            action = "open" if online else "close"
            raise EnvironmentFailedError(
                f"{engine.program} cannot {action} the network of container {self.name}: {done.last_line}"
            )
        self._online = online

    async def copy_in(self, source: Path, target: str) -> None:
        """Copy the folder `source` to the folder `target` of the container. Raises EnvironmentFailedError, DataError
        where `source` cannot be read."""
        with tempfile.TemporaryFile() as archive:
            await asyncio.to_thread(pack_folder, source, archive)
            user = ROOT if self._spec.user else ""
            at_root = structs.replace(self._spec, workdir="/", user=user)  # its own may be what is made here
            done: ExecutedCommand | EndedProgram = await self._make_folder(at_root, target)
            tries = TRIES if done.exit_code == 0 else 0
            for _ in range(tries):
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
        """Copy the folder `source` of the container to `target`, no more than `max_bytes`. Raises
        EnvironmentFailedError, DataError."""
        with tempfile.TemporaryFile() as archive:
            argv = self._engine.pack(self.name, self._spec, source)
            done = await run_program(argv, timeout=COPYING, environ=self._environ, stdout=archive)
            if done.exit_code != 0:
                raise EnvironmentFailedError(
                    f"{source} of container {self.name} cannot be copied: {done.last_line}"
                )
            await asyncio.to_thread(unpack_folder, archive, target, source, max_bytes)

    async def stop(self) -> None:
        """Remove the container; return when it is gone, whoever asked first."""
        if self._removal is None:
            self._removal = asyncio.ensure_future(self._remove())
        await asyncio.shield(self._removal)

    async def _start_joined(self, argv: Argv, timeout: float) -> None:
        with tempfile.TemporaryFile() as errors:
            beginning = await self._keep(argv, timeout, errors)
            errors.seek(0)
            shown = last_line(_ADVICE.sub(b"", errors.read()))
        if beginning in ("ended", "late"):
            raise _cannot_start(self._engine, self._spec, shown if beginning == "ended" else "")

    async def _remove(self) -> None:
        companions = self._companions
        try:
            if companions is not None:
                await companions.remove()
            await remove_container(self._engine, self.name, self._environ)
            if companions is not None:
                await companions.remove_places()
        finally:
            self._let_go()
            self._on_stop(self)

    def _shell(self, spec: EnvironmentSpec, command: str, shell: Sequence[str] = INSIDE) -> Argv:
        return [*self._engine.enter(self.name, spec), *shell, command]

    async def _make_folder(self, spec: EnvironmentSpec, target: str) -> EndedProgram | ExecutedCommand:
        command = f"mkdir -p {shlex.quote(target)}"
        result = None
        if not spec.user:
            result = await self._by_kept(command.encode(), spec.workdir, HOUSEKEEPING, b"", MIB)
        return result or await self._call(self._shell(spec, command), HOUSEKEEPING)

    async def _by_kept(
        self, command: bytes, folder: str, timeout: float, stdin: bytes, max_output: int
    ) -> ExecutedCommand | None:
        """Run a command by the kept process; None where it has not begun, so that the engine has to start it."""
        if self._turn.locked() or len(stdin) > LARGEST_INPUT:
            return None
        async with self._turn:
            if (kept := await self._kept_process()) is None:
                return None
            work = kept.run(command, folder, timeout=timeout, stdin=stdin, max_output=max_output)
            return await self._await_within_disk(work)

    async def _kept_process(self) -> KeptProcess | None:
        """Return the kept process; None where there can be none: the image, or what commands have left of it, has
        no Python that is fit."""
        if self._kept is not None and self._kept.is_open:
            return self._kept
        if not self._keeps:
            return None
        start = structs.replace(self._spec, workdir=self._spec.workdir and "/")  # its own may come and go
        resume = self._engine.resume(self.name)
        await self._keep(resume or [*self._engine.enter(self.name, start), *words_of_kept()], STARTING)
        return self._kept

    async def _keep(self, argv: Argv, timeout: float, errors: IO[bytes] | None = None) -> Beginning:
        """Keep the process that `argv` starts, if it can be kept."""
        self._let_go()
        try:
            kept = KeptProcess(argv, self._environ, errors)
        except OSError as error:
            raise EnvironmentFailedError(f"{self._engine.program} cannot be started: {error}.") from error
        beginning: Beginning = "ended"
        try:
            beginning = await kept.begin(timeout)
        finally:
            self._keeps = beginning == "ready"
            if self._keeps:
                self._kept = kept
            else:
                kept.close()
        return beginning

    def _let_go(self) -> None:
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    async def _by_engine(self, command: bytes, timeout: float, stdin: bytes, max_output: int) -> ExecutedCommand:
        """Execute `command` by a call of the engine. Raises EnvironmentFailedError."""
        argv = self._shell(self._spec, command.decode(), WITH_INPUT if stdin else INSIDE)

        async def run() -> ExecutedCommand:
            work = run_program(argv, timeout=timeout, environ=self._environ, stdin=stdin, max_output=max_output)
            result = await self._await_within_disk(work)
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

    async def _await_within_disk(
        self, running: Coroutine[Any, Any, EndedProgram | None]
    ) -> ExecutedCommand | None:
        """Await a command and end it where it fills the disk; return None where it has not begun."""
        work = asyncio.ensure_future(running)
        full = asyncio.create_task(self._disk.until_full())
        try:
            await asyncio.wait((work, full), return_when=asyncio.FIRST_COMPLETED)
            if was_full := not work.done():
                full.result()
                await self._revive()
            if (done := await work) is None:
                return None
        except OSError as error:
            raise EnvironmentFailedError(f"{self._engine.program} cannot be started: {error}.") from error
        finally:
            work.cancel()
            full.cancel()
        if was_full:
            status, exit_code = "disk_full", None
        elif done.exit_code is None:
            status, exit_code = "timeout", None
        else:
            status, exit_code = "completed", done.exit_code
        return ExecutedCommand(
            status=status, output=done.output, omitted=done.omitted, exit_code=exit_code, seconds=done.seconds
        )

    async def _written_files(self) -> Path | None:
        if not (argv := self._engine.written_files(self.name)):
            return None
        shown = await self._call(argv, HOUSEKEEPING)
        folder = Path(shown.output.decode("utf-8", "replace").strip() or "/nonexistent")
        if folder.is_dir():
            return folder
        return None

    async def _was_down(self, output: bytes) -> bool:
        """Return whether the container itself had ended (a command killed its first process), and start it
        again."""
        if not output.startswith(_ENGINE_SPEAKS):
            return False
        probe = await self._call(self._shell(self._spec, ":"), HOUSEKEEPING)
        if probe.exit_code == 0 or b"not found" in probe.output:
            return False
        await self._revive()
        return True

    async def _revive(self) -> None:
        """Kill all that runs in the container and start it again; its files stay."""
        self._let_go()
        for argv in self._engine.end_processes(self.name):
            done = await self._call(argv, HOUSEKEEPING)
            if done.exit_code is None:
                raise EnvironmentFailedError(f"Container {self.name} does not end its processes.")
        self._keeps = True
        if resume := self._engine.resume(self.name):
            await self._keep(resume, HOUSEKEEPING)

    async def _call(
        self, argv: Argv, timeout: float, stdin: bytes | IO[bytes] = b"", **variables: str
    ) -> EndedProgram:
        return await _call_engine(argv, timeout, {**self._environ, **variables}, stdin)


async def _call_engine(
    argv: Argv, timeout: float, environ: Mapping[str, str], stdin: bytes | IO[bytes] = b""
) -> EndedProgram:
    """Call the engine. Raises EnvironmentFailedError where it cannot be started."""
    try:
        return await run_program(argv, timeout=timeout, environ=environ, stdin=stdin)
    except OSError as error:
        raise EnvironmentFailedError(f"{argv[0]} cannot be started: {error}.") from error


async def remove_container(engine: EngineProgram, name: str, environ: Mapping[str, str]) -> None:
    """Remove a container, in up to three tries: podman refuses to remove one that is just ending. Raises
    EnvironmentFailedError."""
    for argv in engine.remove(name):
        for attempt in range(1, TRIES + 1):
            if (await _call_engine(argv, HOUSEKEEPING, environ)).exit_code == 0:
                break
            if attempt < TRIES:
                await asyncio.sleep(attempt * ENDING)


def _cannot_start(engine: EngineProgram, spec: EnvironmentSpec, shown: str) -> EnvironmentFailedError:
    """Return the error for a container that cannot start; `shown`: what the engine ended with, '' where it did not
    end."""
    why = shown or "it takes longer than ++environment.start_timeout"
    if "daemon running" in why:
        hint = "Start it, or use another engine: ++environment.engine=podman."
    else:
        hint = engine.image_hint()
    stop = "" if why.endswith(("?", ".", "!")) else "."
    return EnvironmentFailedError(
        f"{engine.program} cannot start a container of image '{spec.image}': {why}{stop}", hint=hint
    )
