# SPDX-License-Identifier: Apache-2.0
"""An agent that is a data file (`agents.definition`): its program works in the task's environment and asks by the run's
gateway, which keeps what it asked and was answered."""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from newskills.agents.definition import AgentDefinition, agents_folder, fill_placeholders, placeholder_values
from newskills.agents.installing import find_installed, folders_of
from newskills.base.environment import AgentEnvironment, ExecutedCommand, McpServer
from newskills.base.errors import ConfigError, ContextLimitError, DataError, EnvironmentFailedError
from newskills.base.protocols import Model
from newskills.base.records import Message, Request, Row
from newskills.gateway.tasks import GatewayTask, TaskLimits
from newskills.graders.software.task import SETUP_TIMEOUT, format_ending
from newskills.solve.agents.options import REPOSITORY, TERMINAL, AgentOptions, Trajectory, time_for
from newskills.solve.agents.programs.program import (
    ContainerProgram,
    ProgramEndpoint,
    session_of,
)
from newskills.solve.agents.programs.recorded import TaskRecorders, recorded_trajectory
from newskills.solve.agents.programs.script import (
    LONGEST_WORD,
    OWN_LOG,
    TASK_FILE,
    gather_script,
    run_script,
)

PROMPTS = {REPOSITORY: "agents/task", TERMINAL: "agents/terminal_task"}
LOGS = "agent-logs"
"""Folder beside the output with the gateway's log and the program's own of each task."""
MAX_LOG = 256 << 20
ENDS = {"requests": "steps", "generated tokens": "tokens", "cost": "cost", "seconds": "time"}
"""Limits of the gateway → why the work ended."""
BROKEN = "broken"
"""End that is no answer of the model's."""
NOT_EXECUTABLE, NOTHING = 126, 127
"""Exit codes of a shell or a forwarder for a program that cannot be run, and for one that is not there."""


_LOG_FILE = re.compile(r"\d+-[^/]+\Z")


class DeclaredAgentConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of agents that are data files (`++agent_config.*`)."""

    prompt: Annotated[
        str, Meta(description="prompt that states the task; default: agents/task, or agents/terminal_task")
    ] = ""
    folder: Annotated[
        str,
        Meta(description="folder in which agents are installed; default: NEWSKILLS_AGENTS, or one in the cache"),
    ] = ""
    time_limit: Annotated[
        Annotated[float, Meta(ge=0)] | None, Meta(description="seconds for one task; 0 = no limit")
    ] = None
    token_limit: Annotated[
        Annotated[int, Meta(ge=0)] | None, Meta(description="generated tokens for one task; 0 = no limit")
    ] = None
    cost_limit: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="cost of one task, by the server's prices; 0 = no limit"),
    ] = None
    arguments: Annotated[tuple[str, ...], Meta(description="more words of its command line")] = ()
    variables: Annotated[dict[str, str | bool | int | float], Meta(description="more environment variables")] = {}


class DeclaredAgent:
    """Written fields are those of the agent `bash`, and `agent_log`; the patch is what was changed."""

    Config = DeclaredAgentConfig

    def __init__(self, options: AgentOptions, config: DeclaredAgentConfig, definition: AgentDefinition) -> None:
        """Find the installed program. Raises ConfigError where it is not there."""
        self._options, self.config, self._definition = options, config, definition
        folder = Path(config.folder).expanduser().resolve() if config.folder else agents_folder()
        installed = find_installed(definition, folder)
        if installed is None:
            name = str(options.file or definition.name)
            into = f" --folder={config.folder}" if config.folder else ""
            raise ConfigError(
                f"The agent {definition.display_name} is not installed in {folder}.",
                hint=f"Install it once: ns agents install {name}{into}",
            )
        self.version = installed.version
        limits = definition.limits
        self._seconds = limits.seconds if config.time_limit is None else config.time_limit
        self._limits = TaskLimits(
            requests=options.max_turns,
            tokens=limits.tokens if config.token_limit is None else config.token_limit,
            cost=limits.cost if config.cost_limit is None else config.cost_limit,
        )
        self._recorders = TaskRecorders()
        self._container = ContainerProgram(
            definition.display_name,
            folders_of(definition, folder),
            python="python3",
            recorder=self._recorders,
        )

    def prompt(self, usual: str) -> str:
        return self.config.prompt or self._definition.prompt or PROMPTS[usual]

    @property
    def mounts(self) -> Mapping[str, str]:
        return self._container.mounts

    def missing_servers(self, servers: Sequence[McpServer]) -> list[str]:
        """Return the MCP servers of a task that the program cannot be told of."""
        return self._definition.mcp.missing(servers)

    def prepared(self, request: Request) -> Request:
        """Return the first request; a changed file is another setting, so that no run goes on with it unnoticed."""
        encoded = msgspec.json.encode(self._definition, order="sorted")
        digest = hashlib.blake2b(encoded, digest_size=8).hexdigest()
        return msgspec.structs.replace(request, solver={**request.solver, "definition": digest})

    async def work(self, request: Request, model: Model, environment: AgentEnvironment, row: Row) -> Trajectory:
        """Work on a task with the program. Raises what the model and the environment raise, DataError for a task that
        is too long, EnvironmentFailedError where the program does not work."""
        session = session_of(model, request)
        session.limits = self._limits
        session.prices = self._options.prices
        with self._logs(request, row) as (logs, name):
            recorder = self._recorders.begin(session, logs)
            try:
                ran = await self._run(request, session, environment, row)
            finally:
                self._recorders.end(session)
            await self._gather(environment, ran, logs)
            self._check(ran, session)
            trajectory = recorded_trajectory(recorder.log)
        trajectory.ended = self._end(ran, session)
        trajectory.replies, trajectory.log = session.replies, name
        return trajectory

    async def _run(
        self, request: Request, session: GatewayTask, environment: AgentEnvironment, row: Row
    ) -> ExecutedCommand:
        workdir = str(row.get("container_repo_dir") or "")
        task = "\n\n".join(_message_text(message) for message in request.messages or [])
        if len(task.encode("utf-8", "replace")) > LONGEST_WORD:
            raise DataError(f"The task has more than {LONGEST_WORD:,} bytes, which no command line can hold.")

        def line(endpoint: ProgramEndpoint) -> tuple[str, bytes]:
            values = {
                **placeholder_values(),
                "task": task,
                "task_file": TASK_FILE,
                "model": session.model.name,
                "url": f"{endpoint.address}/{endpoint.identity}",
                "key": endpoint.identity,
                "workdir": workdir,
            }
            words = [
                *endpoint.forward,
                *fill_placeholders([*self._definition.command, *self.config.arguments], values),
            ]
            variables = fill_placeholders({**self._definition.variables, **self._variables}, values)
            script = run_script(self._definition, values, variables, words, mcp_servers(row))
            return "sh -s", script.encode("utf-8", "replace")  # a script may be longer than a word

        return await self._container.run(environment, session, line, time_for(row, self._seconds))

    @property
    def _variables(self) -> dict[str, str]:
        """Return the variables of the command line as texts: `true`, not `True`."""
        return {
            name: value if isinstance(value, str) else msgspec.json.encode(value).decode()
            for name, value in self.config.variables.items()
        }

    async def _gather(self, environment: AgentEnvironment, ran: ExecutedCommand, logs: Path) -> None:
        """Keep the program's own log and what it printed. A log that cannot be had is no failure of the task."""
        (logs / "printed.txt").write_bytes(ran.output)
        await environment.execute(gather_script(self._definition), timeout=SETUP_TIMEOUT)
        with tempfile.TemporaryDirectory(prefix="newskills-agent-logs-") as scratch:
            try:
                await environment.copy_out(OWN_LOG, Path(scratch), max_bytes=MAX_LOG)
            except DataError as error:
                (logs / "not-kept.txt").write_text(f"{error.message}\n")
                return
            for file in Path(scratch).iterdir():
                # What still runs in there may have put other names and kinds of files beside those that we copied.
                if _LOG_FILE.match(file.name) and file.is_file() and not file.is_symlink():
                    shutil.copyfile(file, logs / file.name)

    def _check(self, ran: ExecutedCommand, session: GatewayTask) -> None:
        """Raise the failure of the request that ended the work, or EnvironmentFailedError where the program did not
        work."""
        cut = isinstance(session.failure, ContextLimitError) and bool(session.replies)
        if session.failure is not None and not cut:
            raise session.failure
        if not session.replies:
            raise EnvironmentFailedError(f"{self._definition.display_name} {self._silence(ran, session)}")
        if not cut and self._end(ran, session) == BROKEN:
            raise EnvironmentFailedError(f"{self._definition.display_name} failed: {format_ending(ran)}")

    def _silence(self, ran: ExecutedCommand, session: GatewayTask) -> str:
        """Return why there is no reply."""
        if session.refusal:
            return f"asked for what the gateway cannot give: {session.refusal}"
        if ran.exit_code in (NOTHING, NOT_EXECUTABLE):
            return f"cannot run in this environment: {format_ending(ran)}"
        if ran.status != "completed":
            return (
                f"never asked the gateway, and had not ended after {self._seconds:g} s: it waits for an answer of a "
                "person, or its file does not set the address that it asks."
            )
        return (
            f"ended before it asked the gateway ({format_ending(ran)}). If it did its work all the same, its file does "
            "not set the address that it asks."
        )

    def _end(self, ran: ExecutedCommand, session: GatewayTask) -> str:
        """Return why the work ended."""
        if session.exhausted:
            return ENDS[session.exhausted]
        if ran.status != "completed":
            if ran.status == "timeout":
                return "time"
            return ran.status
        if session.failure is not None:
            return "context"
        return self._definition.exit_codes.get(str(ran.exit_code), "submitted" if ran.exit_code == 0 else "failed")

    @contextmanager
    def _logs(self, request: Request, row: Row) -> Iterator[tuple[Path, str | None]]:
        """Yield the folder for the logs of a task, empty, and its name beside the output; without an output it is
        gone afterwards."""
        if self._options.logs is None:
            with tempfile.TemporaryDirectory(prefix="newskills-agent-logs-") as scratch:
                yield Path(scratch), None
            return
        task = str(row.get("instance_id") or row.get("id") or "task")
        name = "".join(sign if sign.isalnum() or sign in "-_." else "_" for sign in task)[:100].lstrip(".")
        digest = hashlib.blake2b(f"{task}\n{request.key()}".encode("utf-8", "replace"), digest_size=4).hexdigest()
        place = f"{LOGS}/{name}-{digest}"
        folder = self._options.logs / place
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        yield folder, place


def mcp_servers(row: Row) -> list[McpServer]:
    """Return the MCP servers that the task of a row offers."""
    return msgspec.convert(row.get("mcp_servers") or [], list[McpServer])


def _message_text(message: Message) -> str:
    content = message.content
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content)
    return content or ""
