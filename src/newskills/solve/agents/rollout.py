# SPDX-License-Identifier: Apache-2.0
"""A sample solved by an agent: an environment of its own from the first command to the patch, then it is gone."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn, Protocol

import msgspec
from msgspec import Struct

from newskills.agents.definition import AgentDefinition, find_definition, is_file_name, library_files
from newskills.base.environment import AgentEnvironment, AgentEnvironments, EnvironmentSpec
from newskills.base.errors import ConfigError, EnvironmentFailedError, NewskillsError, UnknownNameError
from newskills.base.protocols import Kit, Model, Solver
from newskills.base.records import Attempt, Request, Row, Sample
from newskills.base.registry import DescribedRegistry
from newskills.config.settings import read_config
from newskills.environments import SESSIONS, check_engine, check_image
from newskills.environments.sessions import place_in_session
from newskills.graders.software.task import begin_task, software_task, taken_patch
from newskills.graders.software.terminal import (
    REPORT,
    TerminalTask,
    is_terminal_task,
    judge_task,
    terminal_task,
    work_in_steps,
)
from newskills.solve.agents.options import REPOSITORY, TERMINAL, AgentOptions, Trajectory
from newskills.solve.agents.programs.declared import DeclaredAgent, mcp_servers
from newskills.solve.agents.resumed import ResumedSolver
from newskills.solve.chat import MAIN, ChatSolver
from newskills.solve.parts import SolverParts
from newskills.solve.replies import join_replies


class AgentProperties(Struct, frozen=True, kw_only=True):
    """What is particular about an agent.

    resumes          it works by our own loop, so a sample goes on where it was killed
    needs_container  its program lies in a folder that sessions of the sandbox do not see
    comes            how one comes by it, for people
    """

    resumes: bool = False
    needs_container: bool = False
    comes: str = ""


AGENTS = DescribedRegistry(
    "agent",
    {
        "bash": (
            "newskills.solve.agents.bash:BashAgent",
            AgentProperties(resumes=True, comes="part of newskills"),
        ),
        "mini-swe-agent": (
            "newskills.solve.agents.mini_swe_agent:MiniSweAgent",
            AgentProperties(comes="pip install 'newskills[agents]'"),
        ),
        "swe-agent": (
            "newskills.solve.agents.swe_agent.agent:SweAgent",
            AgentProperties(needs_container=True, comes="a checkout, see docs/agents.md"),
        ),
        "openhands": (
            "newskills.solve.agents.openhands.agent:OpenHands",
            AgentProperties(needs_container=True, comes="an environment of Python, see docs/agents.md"),
        ),
    },
    usual=AgentProperties(),
    group="newskills.agents",
)
"""Agents by name: classes that fit `Agent`, made of (options, settings), with a struct `Config` of the settings."""
PROFILE = {"BASH_ENV": "/root/.bashrc"}
"""Where the images of SWE-bench switch their Python on; bash takes no notice where it is not there."""


class Agent(Protocol):
    """One for all samples of a run."""

    @property
    def version(self) -> str: ...

    def prompt(self, usual: str) -> str:
        """Return the name of the prompt that describes the task, where agents get the `usual` one."""
        ...

    @property
    def config(self) -> Struct: ...

    @property
    def mounts(self) -> Mapping[str, str]:
        """Folders of this machine that its environments need → where they see them."""
        ...

    def prepared(self, request: Request) -> Request:
        """Return the first request of a sample."""
        ...

    async def work(self, request: Request, model: Model, environment: AgentEnvironment, row: Row) -> Trajectory:
        """Work on a task. Raises what the model and the environment raise."""
        ...


def software_agent(parts: SolverParts) -> Solver:
    """Return the solver of benchmarks whose tasks are repositories. Raises ConfigError, UnknownNameError."""
    options = parts.agent
    if options is None:
        _refuse_without_agent()
    options = msgspec.structs.replace(options, logs=parts.folder if parts.resumes else None)
    if (definition := find_definition(options.agent)) is not None:
        return _declared_solver(parts, options, definition)
    name = _resolve_agent(options.agent)
    options = msgspec.structs.replace(options, agent=name)
    kind = AGENTS.get(name)
    agent: Agent = kind(options, read_config(kind.Config, options.settings, f"agent_config of agent '{name}'"))
    solver = AgentSolver(parts, options, agent, AGENTS.properties(name))
    if AGENTS.properties(name).resumes and parts.resumes:
        return ResumedSolver(solver, parts.folder)
    return solver


def _declared_solver(parts: SolverParts, options: AgentOptions, definition: AgentDefinition) -> Solver:
    """Return the solver of an agent that is a data file. Raises ConfigError."""
    file = Path(options.agent) if is_file_name(options.agent) else None
    options = msgspec.structs.replace(options, agent=definition.name, file=file)
    where = f"agent_config of agent '{definition.name}'"
    config = read_config(DeclaredAgent.Config, options.settings, where)
    return AgentSolver(parts, options, DeclaredAgent(options, config, definition), AgentProperties())


def _resolve_agent(name: str) -> str:
    """Return the name of an agent that is a class. Raises UnknownNameError with all that there are."""
    try:
        return AGENTS.resolve(name)
    except UnknownNameError:
        raise UnknownNameError("agent", name, agent_names()) from None


def agent_names() -> list[str]:
    """Return the names of all agents: data files, classes and those of installed distributions."""
    return sorted({*library_files(), *AGENTS.names()})


def _refuse_without_agent() -> NoReturn:
    usual = next(iter(AGENTS.built_in()))
    raise ConfigError(
        "This benchmark needs an agent, which works in a container per task.",
        hint=f"Name one: ++agent={usual}. Without containers here, `ns swe_bench` gives patches that were made "
        "elsewhere to the SWE-bench harness and reads its verdicts.",
    )


class AgentSolver:
    """Row: see `graders.software.task`, and `graders.software.terminal` for tasks that their own script judges.

    Written: `model_patch` (or `task-tests`), `exit_status` (why the agent ended), `agent`, `steps`, `conversation`,
    `tools`, `num_steps`, `agent_seconds`, `cost` where prices are known, and token counts summed over all requests.
    """

    def __init__(
        self, parts: SolverParts, options: AgentOptions, agent: Agent, properties: AgentProperties
    ) -> None:
        self._options, self._agent, self._properties = options, agent, properties
        self._data_dir = parts.data_dir
        self._load, self._plain_chat = parts.load, parts.chat
        self._chats: dict[str, ChatSolver] = {}
        for usual in (REPOSITORY, TERMINAL):
            self._chat(usual)

    def check(self) -> None:
        """Raise ConfigError where no container engine is installed, or the agent needs another one."""
        needs_container = self._properties.needs_container
        check_engine(self._options.environment, os.environ, needs_container=needs_container)

    def request(self, sample: Sample) -> Request:
        """Return the first request of a task. Raises DataError for a row that is no task, ConfigError for an endpoint
        without messages and for an image that cannot be used."""
        if is_terminal_task(sample.row):
            if self._options.environment.engine == SESSIONS:
                raise ConfigError(
                    "Tasks in a terminal need a container: sessions of the sandbox have no /tests for their scripts.",
                    hint="Use containers: ++environment.engine=podman",
                )
            spec, prompt = terminal_task(sample.row, self._data_dir).spec, TERMINAL
        else:
            spec, prompt = software_task(sample.row).spec, REPOSITORY
        self._check_servers(sample.row)
        check_image(self._options.environment, spec, os.environ)
        workdir = spec.workdir
        if self._options.environment.engine == SESSIONS:
            workdir = place_in_session(workdir)
        row = {**sample.row, "container_repo_dir": workdir}
        request = self._chat(prompt).request(msgspec.structs.replace(sample, row=row))
        if request.messages is None:
            raise ConfigError("An agent needs ++inference.endpoint_type=chat.")
        request.solver = {
            "agent": self._label,
            "settings": msgspec.to_builtins(self._agent.config),
            "max_turns": self._options.max_turns,
            "image": spec.image,
        }
        return self._agent.prepared(request)

    def _check_servers(self, row: Row) -> None:
        """Raise ConfigError for a task whose MCP servers the agent cannot be told of."""
        servers = mcp_servers(row)
        missing = [server.name for server in servers]
        if isinstance(self._agent, DeclaredAgent):
            missing = self._agent.missing_servers(servers)
        if missing:
            raise ConfigError(
                f"Task {row.get('id')} offers MCP servers ({', '.join(missing)}), which the agent "
                f"{self._options.agent} cannot use.",
                hint="Use one that can, such as ++agent=claude-code, or leave these tasks out.",
            )

    def _chat(self, usual: str) -> ChatSolver:
        """Return the solver that asks by the agent's prompt for such tasks."""
        name = self._agent.prompt(usual)
        if name not in self._chats:
            self._chats[name] = self._plain_chat.with_prompt(self._load(name))
        return self._chats[name]

    @property
    def _label(self) -> str:
        return f"{self._options.agent}@{self._agent.version}"

    def prepare_ahead(self, sample: Sample, kit: Kit) -> None:
        """Let the environment of a sample be started before its turn."""
        if kit.environments is None:
            return
        with contextlib.suppress(NewskillsError):
            if is_terminal_task(sample.row):
                spec = terminal_task(sample.row, self._data_dir).spec
            else:
                spec = software_task(sample.row).spec
            kit.environments.expect(self._spec(spec))

    async def solve(self, sample: Sample, request: Request, kit: Kit) -> Attempt:
        """Let the agent work on the sample's task. Raises what the model raises, ConfigError,
        EnvironmentFailedError."""
        if kit.environments is None:
            raise ConfigError("This run has no environments for agents.")
        began = time.monotonic()
        if is_terminal_task(sample.row):
            trajectory, outcome = await self._in_terminal(sample, request, kit.models[MAIN], kit.environments)
        else:
            trajectory, outcome = await self._in_repository(sample, request, kit.models[MAIN], kit.environments)
        return await self._attempt(sample, request, trajectory, outcome, time.monotonic() - began)

    async def _in_repository(
        self, sample: Sample, request: Request, model: Model, environments: AgentEnvironments
    ) -> tuple[Trajectory, Row]:
        """Let the agent work, and return what was done, and the patch."""
        task = software_task(sample.row)
        environment = await environments.start(self._spec(task.spec))
        try:
            commit = await begin_task(environment, task)
            trajectory = await self._agent.work(request, model, environment, sample.row)
            patch, why = trajectory.submission, ""
            if patch is None:
                patch, why = await taken_patch(environment, commit)
        finally:
            await asyncio.shield(environment.stop())
        return trajectory, {"model_patch": patch, **({"no_patch_because": why} if why else {})}

    async def _in_terminal(
        self, sample: Sample, request: Request, model: Model, environments: AgentEnvironments
    ) -> tuple[Trajectory, Row]:
        """Let the agent work, and return what was done, and what the task's own tests say of what it left."""
        task = terminal_task(sample.row, self._data_dir)
        environment = await environments.start(self._spec(task.spec))
        try:
            await task.phases.begin(environment, task.instance)
            if task.steps:
                trajectory, report = await self._in_steps(sample, request, model, environment, task, environments)
            else:
                trajectory = await self._agent.work(request, model, environment, sample.row)
                report = await judge_task(environment, task, environments)
        finally:
            await asyncio.shield(environment.stop())
        return trajectory, {REPORT: report}

    async def _in_steps(
        self,
        sample: Sample,
        request: Request,
        model: Model,
        environment: AgentEnvironment,
        task: TerminalTask,
        environments: AgentEnvironments,
    ) -> tuple[Trajectory, Row]:
        """Let the agent work on each step in a conversation of its own; return what was done in all, with the last
        conversation, and the report, which holds those before. Raises EnvironmentFailedError where no step began."""
        done: list[Trajectory] = []

        async def work(now: TerminalTask) -> Row:
            assert now.step is not None
            changed = {"problem_statement": now.step.instruction, "agent_timeout": now.step.agent_timeout}
            row = {**sample.row, **changed}
            first = self.request(msgspec.structs.replace(sample, row=row))
            step_request = msgspec.structs.replace(request, messages=first.messages)
            done.append(await self._agent.work(step_request, model, environment, row))
            return {"exit_status": done[-1].ended, "conversation": done[-1].conversation}

        report = await work_in_steps(environment, task, environments, work)
        if not done:
            raise EnvironmentFailedError(f"Task {task.instance}: its first step cannot begin: {report['log']}")
        begun = [step for step in report["steps"] if "conversation" in step]
        del begun[-1]["conversation"]
        whole = msgspec.structs.replace(
            done[-1],
            steps=[step for trajectory in done for step in trajectory.steps],
            replies=[reply for trajectory in done for reply in trajectory.replies],
        )
        return whole, report

    async def _attempt(
        self, sample: Sample, request: Request, trajectory: Trajectory, outcome: Row, seconds: float
    ) -> Attempt:
        whole = join_replies(trajectory.replies)
        last = trajectory.replies[-1]
        whole.finish_reason = trajectory.ended
        if trajectory.ended in ("submitted", "no_command", "failed"):
            whole.finish_reason = last.finish_reason
        elif trajectory.ended in ("tokens", "context"):
            whole.finish_reason = "length"
        attempt = await self._plain_chat.attempt(sample, request, whole, last.text)
        tools = trajectory.tools or request.tools
        cost = self._options.cost(whole.usage)
        attempt.fields |= {
            **outcome,
            "exit_status": trajectory.ended,
            "agent": self._label,
            "num_steps": len(trajectory.steps),
            "steps": trajectory.steps,
            "conversation": trajectory.conversation,
            "agent_seconds": round(seconds, 3),
        }
        if trajectory.log:
            attempt.fields["agent_log"] = trajectory.log
        if trajectory.native_tools and tools:
            attempt.fields["tools"] = tools
        if cost is not None:
            attempt.fields["cost"] = cost
        return attempt

    def _spec(self, spec: EnvironmentSpec) -> EnvironmentSpec:
        return msgspec.structs.replace(
            spec, variables=spec.variables | PROFILE, mounts={**spec.mounts, **self._agent.mounts}
        )
