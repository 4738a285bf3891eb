# SPDX-License-Identifier: Apache-2.0
"""A program of another project, in a folder that the task's container sees read-only.

The container needs no network but a socket, behind which is the run's endpoint (concurrency, retries, token counts,
sampling parameters). Its trajectory is read from files that it leaves.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
import shlex
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from newskills.agents.forwarder import IN_PYTHON, compiled_forwarder
from newskills.base.environment import AgentEnvironment, ExecutedCommand
from newskills.base.errors import ContextLimitError, EnvironmentFailedError
from newskills.base.protocols import Model
from newskills.base.records import Request
from newskills.gateway.server import Recorder, RunGateway
from newskills.gateway.tasks import GatewayTask
from newskills.graders.software.task import SETUP_TIMEOUT, format_ending
from newskills.solve.agents.options import Trajectory
from newskills.solve.interactive.shared import SharedContext

SOCKET = "endpoint.sock"
GATEWAY = "/newskills-agent"
"""Where the container sees our folder, with the socket and the program that leads to it."""
WORK = "/tmp/newskills-agent"  # noqa: S108 - of the container
OUT = f"{WORK}/out"
"""Where the program leaves its files."""
ENDLESS = 7 * 86400.0
MAX_FILES = 256 << 20
LOG = 1 << 16
INTERRUPTED = "interrupted"
"""Why it ended where it did not say why."""
KILLED = 128
"""From this exit code on it was killed, which a command of the model's may have done."""
PORTS = range(20000, 32000)
"""Below those that systems give to connections."""
TAKEN = 98
"""Exit code of the forwarder where another process has its port, as on machines whose containers share a network."""
TRIES = 3
MOST_REFUSALS = 30
"""Requests after a task's limit until its program, which tries again for ever, is killed."""
LOOK_EVERY = 0.5


class ProgramEndpoint(Struct, frozen=True, kw_only=True):
    """How the program reaches the endpoint.

    address   without a version
    path      what follows there for programs that name their task by the header, whose value is `identity`; the
              address with the identity behind it serves all others
    forward   words before the program's own: they lead that address to the socket
    """

    address: str
    path: str
    identity: str
    forward: tuple[str, ...]

    @property
    def by_header(self) -> str:
        return f"{self.address}/{self.path}"


ProgramLine = tuple[str, bytes]
"""A command line, and its input."""


class ContainerProgram:
    """`name` for errors; `folders` hold the program and its Python; `files` of ours lie beside the socket.

    `python` runs the forwarder where it cannot be compiled.
    """

    def __init__(
        self,
        name: str,
        folders: Mapping[str, str],
        *,
        python: str,
        files: Sequence[Path] = (),
        recorder: Recorder | None = None,
    ) -> None:
        self._name, self._folders, self._python = name, folders, python
        self._place = tempfile.TemporaryDirectory(prefix="newskills-agent-")
        compiled = compiled_forwarder()
        self._forwarder = compiled or IN_PYTHON
        self._is_compiled = compiled is not None
        for file in (self._forwarder, *files):
            shutil.copy(file, Path(self._place.name, file.name))
        Path(self._place.name).chmod(0o755)
        self._endpoint: SharedContext[RunGateway] = SharedContext(
            lambda: RunGateway(socket=Path(self._place.name, SOCKET), recorder=recorder)
        )

    @property
    def mounts(self) -> Mapping[str, str]:
        return {**self._folders, self._place.name: GATEWAY}

    async def write(self, environment: AgentEnvironment, name: str, text: str) -> None:
        """Write `text` to the file `name` for the program. Raises EnvironmentFailedError."""
        command = f"mkdir -p {WORK} && cat > {WORK}/{name}"
        done = await environment.execute(command, timeout=SETUP_TIMEOUT, stdin=text.encode("utf-8", "replace"))
        if done.exit_code != 0:
            raise EnvironmentFailedError(f"Files for {self._name} cannot be written: {format_ending(done)}")

    async def run(
        self,
        environment: AgentEnvironment,
        session: GatewayTask,
        line: Callable[[ProgramEndpoint], ProgramLine],
        timeout: float,
    ) -> ExecutedCommand:
        """Run the command line that `line` makes. Raises what the environment raises."""
        identity = secrets.token_urlsafe(16)
        async with self._endpoint.use() as endpoint:
            endpoint.begin(identity, session)
            try:
                for _ in range(TRIES):
                    ran = await self._run_once(environment, session, endpoint.path, identity, line, timeout)
                    if ran.exit_code != TAKEN or session.requests:
                        break
            finally:
                endpoint.end(session)
        return ran

    async def _run_once(
        self,
        environment: AgentEnvironment,
        session: GatewayTask,
        path: str,
        identity: str,
        line: Callable[[ProgramEndpoint], ProgramLine],
        timeout: float,
    ) -> ExecutedCommand:
        port = secrets.choice(PORTS)
        stop = f"stop-{secrets.token_hex(8)}"
        forwarder = f"{GATEWAY}/{self._forwarder.name}"
        address = ProgramEndpoint(
            address=f"http://127.0.0.1:{port}",
            path=path,
            identity=identity,
            forward=(
                *((forwarder,) if self._is_compiled else (self._python, forwarder)),
                f"{GATEWAY}/{SOCKET}",
                str(port),
                f"{GATEWAY}/{stop}",
            ),
        )
        watching = asyncio.create_task(_stop_runaway(session, Path(self._place.name, stop)))
        try:
            command, stdin = line(address)
            return await environment.execute(command, timeout=timeout or ENDLESS, stdin=stdin, max_output=LOG)
        finally:
            watching.cancel()
            Path(self._place.name, stop).unlink(missing_ok=True)

    async def trajectory(
        self,
        environment: AgentEnvironment,
        ran: ExecutedCommand,
        session: GatewayTask,
        read: Callable[[Path], Trajectory | None],
        reason: re.Pattern[str],
    ) -> Trajectory:
        """Return what `read` makes of the folder of its files (None: nothing was done), with what the endpoint has
        seen.

        `reason` finds the sentence of its log that says why it did not work. Raises the failure of the request that
        ended its work, EnvironmentFailedError.
        """
        cut = isinstance(session.failure, ContextLimitError) and bool(session.replies)
        if session.failure is not None and not cut:
            raise session.failure
        with tempfile.TemporaryDirectory() as place:
            await environment.execute(f"mkdir -p {OUT}", timeout=SETUP_TIMEOUT)
            await environment.copy_out(OUT, Path(place), max_bytes=MAX_FILES)
            trajectory = read(Path(place)) if session.replies else None
        if trajectory is None or (trajectory.ended == INTERRUPTED and 0 < (ran.exit_code or 0) < KILLED):
            text = ran.output.decode("utf-8", "replace")
            match = reason.search(text)
            sentence = match[0] if match else format_ending(ran)
            doing = "did not begin its work" if trajectory is None else "failed"
            raise EnvironmentFailedError(f"{self._name} {doing}: {sentence}")
        if ran.status != "completed":
            trajectory.ended = "time" if ran.status == "timeout" else ran.status
        elif cut:
            trajectory.ended = "context"
        trajectory.replies, trajectory.tools = session.replies, session.tools
        return trajectory


def session_of(model: Model, request: Request) -> GatewayTask:
    """Return the task of a program that asks with the run's settings, whatever it says."""
    return GatewayTask(model=model, request=msgspec.structs.replace(request, solver={}))


def command_line(variables: Mapping[str, str], endpoint: ProgramEndpoint, words: Sequence[str]) -> ProgramLine:
    """Return the command line that runs `words` behind the forwarder."""
    settings = [f"{name}={value}" for name, value in variables.items()]
    return shlex.join(["env", *settings, *endpoint.forward, *words]), b""


async def _stop_runaway(session: GatewayTask, stop: Path) -> None:
    """Make the file that ends a program, once it has asked on and on after its task's limit."""
    while session.refusals < MOST_REFUSALS:
        await asyncio.sleep(LOOK_EVERY)
    with contextlib.suppress(OSError):
        stop.touch()
