# SPDX-License-Identifier: Apache-2.0
"""SWE-agent (https://swe-agent.com, Yang et al. 2024, arXiv:2405.15793) as it is, as a program in the task's container.

Its folder is seen there read-only. The container has no network but a socket, behind which is the run's endpoint
(concurrency, retries, token counts, sampling parameters). What it writes about its work becomes our record.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from newskills.base.environment import AgentEnvironment
from newskills.base.errors import ConfigError
from newskills.base.protocols import Model
from newskills.base.records import Request, Row
from newskills.gateway.routes import IDENTITY as HEADER
from newskills.graders.software.task import REPOSITORY
from newskills.solve.agents.options import AgentOptions, Trajectory, time_for
from newskills.solve.agents.programs.program import (
    OUT,
    WORK,
    ContainerProgram,
    ProgramEndpoint,
    command_line,
    session_of,
)
from newskills.solve.agents.swe_agent.trajectories import SUFFIX, read_trajectory

QUIET = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "PYTHONDONTWRITEBYTECODE": "1",
    "SWE_AGENT_LOG_STREAM_LEVEL": "INFO",
}
INSTALL = (
    "Install it once: git clone https://github.com/SWE-agent/SWE-agent {folder}/source; "
    "UV_PYTHON_INSTALL_DIR={folder}/python uv venv --managed-python --python 3.12 {folder}/venv; "
    "uv pip install --compile-bytecode --python {folder}/venv/bin/python -e {folder}/source mcp"
)
_VERSION = re.compile(r"sweagent-(.+)\.dist-info\Z")

_REASON = re.compile(r"Exit(?:ing)? due to [^\n]+")


class SweAgentConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the agent `swe-agent` (`++agent_config.*`)."""

    prompt: Annotated[str, Meta(description="prompt of the record; the program asks by its own")] = ""
    folder: Annotated[
        str, Meta(description="folder with the program: its checkout in source, its environment in venv")
    ] = "/opt/swe-agent"
    config: Annotated[
        str, Meta(description="configuration of the program: a name in source/config, or a .yaml path")
    ] = "default"
    commit: Annotated[str, Meta(description="commit that the checkout must be at; default: whatever is there")] = (
        ""
    )
    options: Annotated[
        Row, Meta(description="more options of `sweagent run`: {agent.tools.execution_timeout: 60}")
    ] = {}
    time_limit: Annotated[float, Meta(ge=0, description="seconds for one task; 0 = no limit")] = 7200.0


class SweAgent:
    """Written fields are those of the agent `bash`; the patch is what it submits."""

    Config = SweAgentConfig

    def __init__(self, options: AgentOptions, config: SweAgentConfig) -> None:
        """Find the program and its configuration. Raises ConfigError where one of them is not there."""
        self._options, self.config = options, config
        self._folder = Path(config.folder).expanduser().resolve()
        self._program = self._folder / "venv" / "bin" / "sweagent"
        if not self._program.is_file() or not (self._folder / "source" / "config").is_dir():
            raise ConfigError(
                f"SWE-agent is not installed in {self._folder}.",
                hint=f"{INSTALL.format(folder=self._folder)}; or name its folder: ++agent_config.folder=FOLDER",
            )
        self._yaml = self._configuration()
        self.version = self._version()
        self._container = ContainerProgram(
            "SWE-agent", {str(self._folder): str(self._folder)}, python=str(self._program.with_name("python"))
        )

    def prompt(self, usual: str) -> str:
        return self.config.prompt or usual

    @property
    def mounts(self) -> Mapping[str, str]:
        return self._container.mounts

    def prepared(self, request: Request) -> Request:
        return request

    async def work(self, request: Request, model: Model, environment: AgentEnvironment, row: Row) -> Trajectory:
        """Work on a task with the program. Raises what the model and the environment raise, EnvironmentFailedError
        where the program does not work."""
        container = self._container
        await container.write(environment, "issue.md", str(row["problem_statement"]))
        await container.write(environment, "config.yaml", self._yaml)
        session = session_of(model, request)
        ran = await container.run(
            environment,
            session,
            lambda endpoint: command_line(self._variables, endpoint, self._words(model.name, endpoint, row)),
            time_for(row, self.config.time_limit),
        )
        return await container.trajectory(environment, ran, session, _find_trajectory, _REASON)

    def _words(self, model: str, endpoint: ProgramEndpoint, row: Row) -> list[str]:
        """Return the program's command line."""
        workdir = str(row.get("container_repo_dir") or REPOSITORY)
        options = {
            "config": f"{WORK}/config.yaml",
            "agent.model.name": f"openai/{model}",
            "agent.model.api_base": endpoint.by_header,
            "agent.model.api_key": "none",
            "agent.model.completion_kwargs": msgspec.json.encode(
                {"extra_headers": {HEADER: endpoint.identity}}
            ).decode(),
            "agent.model.per_instance_cost_limit": "0",
            "agent.model.total_cost_limit": "0",
            "agent.model.per_instance_call_limit": str(self._options.max_turns),
            "agent.model.max_input_tokens": "0",
            "agent.model.retry.retries": "1",  # the run has done its own
            "env.deployment.type": "local",
            "env.repo.type": "preexisting",
            "env.repo.repo_name": workdir.strip("/"),
            "env.repo.reset": "False",
            "problem_statement.type": "text_file",
            "problem_statement.path": f"{WORK}/issue.md",
            "problem_statement.id": "task",
            "output_dir": OUT,
            **_flatten_options(self.config.options),
        }
        words = [str(self._program.with_name("python")), str(self._program), "run"]
        return [*words, *(f"--{name}={value}" for name, value in options.items())]

    @property
    def _variables(self) -> dict[str, str]:
        places = {
            "SWE_AGENT_CONFIG_DIR": "config",
            "SWE_AGENT_TOOLS_DIR": "tools",
            "SWE_AGENT_TRAJECTORY_DIR": "trajectories",
        }
        return QUIET | {name: str(self._folder / "source" / place) for name, place in places.items()}

    def _configuration(self) -> str:
        """Read the configuration's file. Raises ConfigError."""
        name = self.config.config
        if name.endswith(".yaml"):
            file = Path(name)
        else:
            file = self._folder / "source" / "config" / f"{name}.yaml"
        try:
            return file.expanduser().read_text("utf-8")
        except OSError as error:
            raise ConfigError(f"SWE-agent has no configuration '{name}': {file}: {error.strerror}.") from error

    def _version(self) -> str:
        """Return the program's version. Raises ConfigError where the checkout is at another commit than it should
        be."""
        commit = self.config.commit
        if commit:
            words = ["git", "-C", str(self._folder / "source"), "rev-parse", "HEAD"]
            done = subprocess.run(words, check=False, capture_output=True, text=True)
            if done.returncode != 0 or not done.stdout.startswith(commit):
                at = done.stdout.strip() or "no commit"
                raise ConfigError(
                    f"SWE-agent in {self._folder / 'source'} is at {at}, not at {commit}.",
                    hint=f"git -C {self._folder / 'source'} checkout {commit}",
                )
        names = (path.name for path in (self._folder / "venv").glob("lib/python*/site-packages/*.dist-info"))
        versions = [match[1] for name in names if (match := _VERSION.match(name))]
        return "+".join([*(versions or ["unknown"]), *([commit[:12]] if commit else [])])


def _flatten_options(options: Row, prefix: str = "") -> dict[str, str]:
    """Flatten options, named as words of a command line name them.

    >>> _flatten_options({"agent": {"tools": {"execution_timeout": 60}}, "env.name": "a"})
    {'agent.tools.execution_timeout': '60', 'env.name': 'a'}
    """
    flat: dict[str, str] = {}
    for name, value in options.items():
        if isinstance(value, dict):
            flat |= _flatten_options(value, f"{prefix}{name}.")
        else:
            if isinstance(value, str):
                flat[f"{prefix}{name}"] = value
            else:
                flat[f"{prefix}{name}"] = msgspec.json.encode(value).decode()
    return flat


def _find_trajectory(folder: Path) -> Trajectory | None:
    """Return the trajectory in `folder`; None where there is none. Raises EnvironmentFailedError."""
    file = next(iter(sorted(folder.rglob(f"*{SUFFIX}"))), None)
    if file is None:
        return None
    return read_trajectory(file)
