# SPDX-License-Identifier: Apache-2.0
"""OpenHands (https://openhands.dev, Wang et al. 2024, arXiv:2407.16741) by its SDK, as a program in a task's container.

Its agent, system prompt and tools are its own; the task is told by our prompt. See `programs.program` for how it asks.
"""

from __future__ import annotations

import re
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
from newskills.solve.agents.openhands import inside
from newskills.solve.agents.openhands.events import read_events
from newskills.solve.agents.options import REPOSITORY, TERMINAL, AgentOptions, Trajectory, time_for
from newskills.solve.agents.programs.program import (
    GATEWAY,
    OUT,
    WORK,
    ContainerProgram,
    ProgramEndpoint,
    command_line,
    session_of,
)

SETTINGS = "settings.json"
PROMPTS = {REPOSITORY: "agents/task", TERMINAL: "agents/terminal_task"}
GO_ON = (
    "Nobody is here to answer. Go on with the task by calling tools. When all is done, call the tool `finish`; do not "
    "ask for help."
)
MODEL = {
    "api_key": "none",
    "num_retries": 1,  # the run has done its own
    "timeout": 86400,  # seconds; the run has its own limits
    "api_mode": "chat",
    "caching_prompt": False,
    "reasoning_effort": None,
}
"""Of its model, where `options` say nothing else; sampling parameters are the run's."""
QUIET = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "OPENHANDS_SUPPRESS_BANNER": "1",
    "OH_PERSISTENCE_DIR": f"{WORK}/openhands",
    "ALLOW_SHORT_CONTEXT_WINDOWS": "true",
    "PYTHONDONTWRITEBYTECODE": "1",
    "LOG_LEVEL": "ERROR",
}
INSTALL = (
    "Install it once: UV_PYTHON_INSTALL_DIR={folder}/python uv venv --managed-python --python 3.12 {folder}/venv; "
    "uv pip install --compile-bytecode --python {folder}/venv/bin/python openhands-sdk openhands-tools"
)
_VERSION = re.compile(r"openhands_sdk-(.+)\.dist-info\Z")
_REASON = re.compile(r"^[\w.]*(?:Error|Exception)\b[^\n]*", re.MULTILINE)


class OpenHandsConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the agent `openhands` (`++agent_config.*`)."""

    prompt: Annotated[
        str, Meta(description="prompt that states the task; default: agents/task, or agents/terminal_task")
    ] = ""
    folder: Annotated[str, Meta(description="folder with the program: its environment in venv")] = "/opt/openhands"
    preset: Annotated[str, Meta(description="tools and prompts of the program: default, gpt5 or gemini")] = (
        "default"
    )
    options: Annotated[
        Row, Meta(description="more fields of the program's class LLM: {max_message_chars: 10000}")
    ] = {}
    max_empty: Annotated[int, Meta(ge=1, description="replies without a tool call before it is over")] = 3
    time_limit: Annotated[float, Meta(ge=0, description="seconds for one task; 0 = no limit")] = 7200.0


class OpenHands:
    """Written fields are those of the agent `bash`; the patch is what was changed."""

    Config = OpenHandsConfig

    def __init__(self, options: AgentOptions, config: OpenHandsConfig) -> None:
        """Find the program and its preset. Raises ConfigError where one of them is not there."""
        self._options, self.config = options, config
        folder = Path(config.folder).expanduser().resolve()
        self._python = folder / "venv" / "bin" / "python"
        packages = next(iter(folder.glob("venv/lib/python3*/site-packages")), folder)
        versions = [match[1] for path in packages.glob("*.dist-info") if (match := _VERSION.match(path.name))]
        if not self._python.exists() or not versions:
            raise ConfigError(
                f"OpenHands is not installed in {folder}.",
                hint=f"{INSTALL.format(folder=folder)}; or name its folder: ++agent_config.folder=FOLDER",
            )
        self.version = versions[0]
        presets = sorted(path.stem for path in packages.glob("openhands/tools/preset/*.py"))
        if config.preset not in presets:
            raise ConfigError(
                f"OpenHands {self.version} has no preset '{config.preset}'.",
                hint=f"Presets: {', '.join(name for name in presets if not name.startswith('_'))}.",
            )
        self._container = ContainerProgram(
            "OpenHands", {str(folder): str(folder)}, python=str(self._python), files=[Path(inside.__file__)]
        )

    def prompt(self, usual: str) -> str:
        return self.config.prompt or PROMPTS[usual]

    @property
    def mounts(self) -> Mapping[str, str]:
        return self._container.mounts

    def prepared(self, request: Request) -> Request:
        return request

    async def work(self, request: Request, model: Model, environment: AgentEnvironment, row: Row) -> Trajectory:
        """Work on a task with the program. Raises what the model and the environment raise, EnvironmentFailedError
        where the program does not work."""
        container = self._container
        settings = {
            "preset": self.config.preset,
            "out": OUT,
            "message": "\n\n".join(str(message.content) for message in request.messages or []),
            "go_on": GO_ON,
            "max_turns": self._options.max_turns,
            "max_empty": self.config.max_empty,
        }
        await container.write(environment, SETTINGS, msgspec.json.encode(settings).decode())
        words = [str(self._python), f"{GATEWAY}/{Path(inside.__file__).name}", f"{WORK}/{SETTINGS}"]
        session = session_of(model, request)
        ran = await container.run(
            environment,
            session,
            lambda endpoint: command_line(QUIET, endpoint, [*words, self._model(model.name, endpoint)]),
            time_for(row, self.config.time_limit),
        )
        return await container.trajectory(environment, ran, session, read_events, _REASON)

    def _model(self, name: str, endpoint: ProgramEndpoint) -> str:
        """Encode the fields of the program's class LLM."""
        place = {
            "model": f"openai/{name}",
            "base_url": endpoint.by_header,
            "extra_headers": {HEADER: endpoint.identity},
        }
        return msgspec.json.encode({**MODEL, **self.config.options, **place}).decode()
