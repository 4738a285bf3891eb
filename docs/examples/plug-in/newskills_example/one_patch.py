"""Agent `one-patch`: asks once, and applies the patch of the reply; what an agent has to be better than."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from newskills.base.environment import AgentEnvironment
from newskills.base.protocols import Model
from newskills.base.records import Request, Row
from newskills.solve.agents.options import AgentOptions, Trajectory
from newskills.solve.chat import ask

_PATCH = re.compile(r"^```diff\n(.*?)^```", re.MULTILINE | re.DOTALL)


class OnePatchConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the agent (`++agent_config.*`)."""

    prompt: str = str(Path(__file__).with_suffix(".yaml"))
    timeout: Annotated[float, Meta(gt=0, description="time limit of git apply in seconds")] = 60.0


class OnePatch:
    """One request a task."""

    Config = OnePatchConfig
    version = "1"

    def __init__(self, options: AgentOptions, config: OnePatchConfig) -> None:
        self.config = config

    @property
    def mounts(self) -> Mapping[str, str]:
        return {}

    def prompt(self, usual: str) -> str:
        return self.config.prompt

    def prepared(self, request: Request) -> Request:
        return request

    async def work(self, request: Request, model: Model, environment: AgentEnvironment, row: Row) -> Trajectory:
        reply = await ask(model, msgspec.structs.replace(request, solver={}))
        conversation = [msgspec.to_builtins(message) for message in request.messages or []]
        conversation.append({"role": "assistant", "content": reply.text})
        trajectory = Trajectory(conversation=conversation, replies=[reply], ended="no_command")
        if patch := _PATCH.search(reply.text):
            command = "git apply -"
            result = await environment.execute(command, timeout=self.config.timeout, stdin=patch[1].encode())
            trajectory.add_step(command, result)
            trajectory.ended = "submitted"
        return trajectory
