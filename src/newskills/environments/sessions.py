# SPDX-License-Identifier: Apache-2.0
"""Environments without an image: sessions of the sandbox, with the programs of this machine and folders of their own.

What is copied in lies below the session's home, as nothing else can be written: `/testbed` becomes `/sandbox/testbed`.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import os
import shlex
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from newskills.base.aio import Gate
from newskills.base.environment import MIB, AgentEnvironment, EnvironmentSpec, ExecutedCommand
from newskills.base.errors import ConfigError, EnvironmentFailedError, SandboxError
from newskills.base.protocols import Execution, ExecutionResult, Sandbox
from newskills.environments.archives import pack_folder, unpack_folder
from newskills.environments.config import EnvironmentConfig

HOME = "/sandbox"
OWN = (HOME, "/tmp", "/dev/shm")  # noqa: S108 - of the session's own tree
"""Folders that a session can write to."""
HOUSEKEEPING = 600.0
PIECE = 3 * MIB
LARGEST_OUTPUT = 10_000_000
KILLED = 137
ISOLATED = "a"
_IN, _OUT = "/tmp/.newskills-in.tar", "/tmp/.newskills-out.tar"  # noqa: S108 - of the session's own tree
_numbers = itertools.count(1)


def place_in_session(path: str) -> str:
    """Return where a session has what a container has at `path`.

    >>> place_in_session("/testbed"), place_in_session("/tmp/a"), place_in_session("")
    ('/sandbox/testbed', '/tmp/a', '/sandbox')
    """
    if any(path == folder or path.startswith(f"{folder}/") for folder in OWN):
        return path
    return HOME + path.rstrip("/")


class SessionPool:
    """Implements `AgentEnvironments`. The sandboxes are its own, one for each set of folders that sessions see;
    sessions end with this process."""

    def __init__(self, config: EnvironmentConfig, make: Callable[[Mapping[str, str]], Sandbox]) -> None:
        """Create the pool; `make` makes a sandbox whose sessions see folders of this machine: place → folder."""
        self._make, self._network = make, config.network
        self._sandboxes: dict[tuple[tuple[str, str], ...], Sandbox] = {}
        self._gate = Gate(config.at_once)
        self._alive: set[SessionEnvironment] = set()

    def expect(self, spec: EnvironmentSpec) -> None:
        """Do nothing: a session starts in a moment."""

    async def start(self, spec: EnvironmentSpec) -> AgentEnvironment:
        """Start a session for `spec`. Raises ConfigError (isolation that gives no folders of one's own),
        EnvironmentFailedError."""
        if spec.offline and self._network:
            raise EnvironmentFailedError(
                "The task forbids the network, which all sessions of this run have.",
                hint="Close it for all tasks: ++environment.network=false",
            )
        await self._gate.acquire()
        environment = SessionEnvironment(self._sandbox(spec.mounts), spec, self)
        self._alive.add(environment)
        try:
            await environment.start()
        except BaseException:
            await environment.stop()
            raise
        return environment

    async def close(self) -> None:
        for environment in tuple(self._alive):
            await environment.stop()
        for sandbox in self._sandboxes.values():
            await sandbox.close()

    def _sandbox(self, mounts: Mapping[str, str]) -> Sandbox:
        key = tuple(sorted(mounts.items()))
        if key not in self._sandboxes:
            self._sandboxes[key] = self._make({place: folder for folder, place in key})
        return self._sandboxes[key]

    def forget(self, environment: SessionEnvironment) -> None:
        """Forget an environment that is gone, and free its place."""
        if environment in self._alive:
            self._alive.remove(environment)
            self._gate.release()


class SessionEnvironment:
    """Implements `AgentEnvironment`."""

    def __init__(self, sandbox: Sandbox, spec: EnvironmentSpec, pool: SessionPool) -> None:
        self._sandbox, self._spec, self._pool = sandbox, spec, pool
        self._name = f"agent-{os.getpid()}-{next(_numbers)}"
        self._workdir = place_in_session(spec.workdir)
        self._begun = False

    async def start(self) -> None:
        """Make the working folder of the session and copy the folders of its specification into it. Raises ConfigError,
        EnvironmentFailedError."""
        made = await self._run(f"mkdir -p {shlex.quote(self._workdir)}", HOUSEKEEPING)
        if made.isolation_level != ISOLATED:
            raise ConfigError(
                f"Agents need sessions at isolation level {ISOLATED}; "
                f"this machine allows level {made.isolation_level}.",
                hint="`ns sandbox doctor` says why. Or use containers: ++environment.engine=podman",
            )
        for source, target in self._spec.trees.items():
            await self.copy_in(Path(source), target)

    async def execute(
        self, command: str, *, timeout: float, stdin: bytes = b"", max_output: int = MIB
    ) -> ExecutedCommand:
        """Execute a command; output beyond `max_output` is cut at its end. Raises EnvironmentFailedError."""
        if "\0" in command:
            why = "a command holds no zero bytes"
            return ExecutedCommand(status="completed", output=why.encode(), exit_code=126)
        exported = "".join(
            f"export {name}={shlex.quote(value)}\n" for name, value in sorted(self._spec.variables.items())
        )
        script = f"exec 2>&1\n{exported}cd {shlex.quote(self._workdir)} || exit 126\n{command}\n"
        result = await self._run(
            script, timeout, stdin.decode("utf-8", "replace"), min(max_output, LARGEST_OUTPUT)
        )
        if result.status == "timeout":
            return ExecutedCommand(status="timeout", output=result.stdout.encode(), seconds=result.seconds)
        code = result.exit_code
        ended = result.status in ("completed", "error") and code is not None and code >= 0
        return ExecutedCommand(
            status="completed",
            output=(result.stdout + ("" if ended else result.stderr)).encode("utf-8", "replace"),
            exit_code=code if ended else KILLED,
            seconds=result.seconds,
        )

    async def set_phase(self, *, user: str, online: bool, hosts: Sequence[str] = ()) -> None:
        """Raise EnvironmentFailedError where anything is to change: a session has one user, and one network."""
        if user or not online:
            raise EnvironmentFailedError(
                "The task has users of its own or closes the network for a time, which sessions of the sandbox cannot.",
                hint="Use containers: ++environment.engine=podman",
            )

    async def copy_in(self, source: Path, target: str) -> None:
        """Copy the folder `source` to the folder `target` of the session. Raises EnvironmentFailedError, DataError
        where `source` cannot be read."""
        place = shlex.quote(place_in_session(target))
        with tempfile.TemporaryFile() as archive:
            await asyncio.to_thread(pack_folder, source, archive)
            await self._certain(f"mkdir -p {place} && : > {_IN}")
            while piece := archive.read(PIECE):
                await self._certain(f"base64 -d >> {_IN}", base64.b64encode(piece).decode())
        await self._certain(f"tar -xf {_IN} -C {place} && rm -f {_IN}")

    async def copy_out(self, source: str, target: Path, *, max_bytes: int) -> None:
        """Copy the folder `source` of the session to `target`, no more than `max_bytes`. Raises EnvironmentFailedError,
        DataError."""
        place = shlex.quote(place_in_session(source))
        await self._certain(f"tar -cf {_OUT} -C {place} .")
        with tempfile.TemporaryFile() as archive:
            for number in itertools.count():
                shown = await self._certain(
                    f"dd if={_OUT} bs={PIECE} skip={number} count=1 2>/dev/null | base64 -w0"
                )
                if not (piece := base64.b64decode(shown.stdout)):
                    break
                archive.write(piece)
                if archive.tell() > 2 * max_bytes + MIB:
                    break
            await asyncio.to_thread(unpack_folder, archive, target, source, max_bytes)
        await self._certain(f"rm -f {_OUT}")

    async def stop(self) -> None:
        """End the session. Raises EnvironmentFailedError where the sandbox cannot end it."""
        try:
            await self._sandbox.delete_session(self._name)
        except SandboxError as error:
            raise EnvironmentFailedError(error.message) from error
        finally:
            self._pool.forget(self)

    async def _certain(self, command: str, stdin: str = "") -> ExecutionResult:
        """Run a step of ours that must work; return its result. Raises EnvironmentFailedError."""
        result = await self._run(command, HOUSEKEEPING, stdin, LARGEST_OUTPUT)
        if result.exit_code != 0:
            last = result.stderr.strip().rpartition("\n")[2][:300]
            raise EnvironmentFailedError(
                f"Files cannot be copied in session {self._name}: {last or result.status}."
            )
        return result

    async def _run(self, script: str, timeout: float, stdin: str = "", limit: int = MIB) -> ExecutionResult:
        """Run a shell script in the session. Raises EnvironmentFailedError where the sandbox failed, or the session and
        its files are lost."""
        execution = Execution(
            code=script,
            language="shell",
            timeout=timeout,
            session_id=self._name,
            std_input=stdin,
            max_output_characters=limit,
        )
        try:
            result = await self._sandbox.execute(execution)
        except SandboxError as error:
            raise EnvironmentFailedError(f"A session of the sandbox failed: {error.message}") from error
        if result.new_session_created and self._begun:
            raise EnvironmentFailedError("A session of the sandbox ended, and the files in it are lost.")
        self._begun = True
        return result
