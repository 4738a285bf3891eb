# SPDX-License-Identifier: Apache-2.0
"""A program of another project, in a folder that the task's container sees read-only.

The container needs no network but a socket, behind which is the run's endpoint (concurrency, retries, token counts,
sampling parameters). Its trajectory is read from files that it leaves.
"""

from __future__ import annotations

import re
import secrets
import shlex
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from newskills.base.environment import AgentEnvironment, ExecutedCommand
from newskills.base.errors import ContextLimitError, EnvironmentFailedError
from newskills.base.protocols import Model
from newskills.base.records import Request
from newskills.gateway.server import RunGateway
from newskills.gateway.tasks import GatewayTask
from newskills.graders.software.task import SETUP_TIMEOUT, shown
from newskills.solve.agents.options import Trajectory
from newskills.solve.agents.programs import forward
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


class ProgramEndpoint(Struct, frozen=True, kw_only=True):
    """How the program reaches the endpoint: `address` (a place-holder until it runs), `identity` for the header."""

    address: str
    identity: str


class ContainerProgram:
    """`name` for errors; `folder` holds the program and its Python; `files` of ours lie beside the socket."""

    def __init__(self, name: str, folder: Path, files: Sequence[Path] = ()) -> None:
        self._name, self._folder = name, folder
        self._place = tempfile.TemporaryDirectory(prefix="newskills-agent-")
        for file in (Path(forward.__file__), *files):
            shutil.copy(file, Path(self._place.name, file.name))
        Path(self._place.name).chmod(0o755)
        self._endpoint: SharedContext[RunGateway] = SharedContext(
            lambda: RunGateway(socket=Path(self._place.name, SOCKET))
        )

    @property
    def mounts(self) -> Mapping[str, str]:
        return {str(self._folder): str(self._folder), self._place.name: GATEWAY}

    async def write(self, environment: AgentEnvironment, name: str, text: str) -> None:
        """Write `text` to the file `name` for the program. Raises EnvironmentFailedError."""
        command = f"mkdir -p {WORK} && cat > {WORK}/{name}"
        done = await environment.execute(command, timeout=SETUP_TIMEOUT, stdin=text.encode("utf-8", "replace"))
        if done.exit_code != 0:
            raise EnvironmentFailedError(f"Files for {self._name} cannot be written: {shown(done)}")

    async def run(
        self,
        environment: AgentEnvironment,
        model: Model,
        request: Request,
        words: Callable[[ProgramEndpoint], Sequence[str]],
        variables: Mapping[str, str],
        timeout: float,
    ) -> tuple[ExecutedCommand, GatewayTask]:
        """Run `words`, the first of which is its Python. Raises what the environment raises."""
        session = GatewayTask(model=model, request=msgspec.structs.replace(request, solver={}))
        identity = secrets.token_urlsafe(16)
        async with self._endpoint.use() as endpoint:
            endpoint.begin(identity, session)
            try:
                address = f"{{address}}/{endpoint.path}"
                line = list(words(ProgramEndpoint(address=address, identity=identity)))
                forwarded = [line[0], f"{GATEWAY}/{Path(forward.__file__).name}", f"{GATEWAY}/{SOCKET}", *line]
                command = ["env", *(f"{name}={value}" for name, value in variables.items()), *forwarded]
                ran = await environment.execute(shlex.join(command), timeout=timeout or ENDLESS, max_output=LOG)
            finally:
                endpoint.end(session)
        return ran, session

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
            sentence = match[0] if (match := reason.search(text)) else shown(ran)
            doing = "did not begin its work" if trajectory is None else "failed"
            raise EnvironmentFailedError(f"{self._name} {doing}: {sentence}")
        if ran.status != "completed":
            trajectory.ended = "time" if ran.status == "timeout" else ran.status
        elif cut:
            trajectory.ended = "context"
        trajectory.replies, trajectory.tools = session.replies, session.tools
        return trajectory
