# SPDX-License-Identifier: Apache-2.0
"""Settings of how a model in training solves its problems, by the names that an evaluation has for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, field

from newskills.base.records import Row
from newskills.commands.shared.training_options import PromptKeys
from newskills.config.layers import Layer
from newskills.environments.config import EnvironmentConfig
from newskills.run.planning.config import EndpointConfig
from newskills.sandbox.config import SandboxConfig

AS_IN_EVAL = (
    *("solver", "solver_config", "agent", "agent_config", "agent_max_turns", "environment", "sandbox", "models"),
    "tool_overrides",
)
"""Keys that go to the skill as they were typed, so that what was not typed stays as the benchmark has it."""


class RolloutKeys(PromptKeys, frozen=True, kw_only=True):
    """`++` keys of a training whose problems may take several turns."""

    max_tokens: Annotated[
        int,
        Meta(
            ge=1,
            description="longest sample in tokens; with code or tools, of all turns together; of each turn of an "
            "agent or in an environment",
        ),
    ] = 256
    code_tags: Annotated[
        str | None,
        Meta(
            description="how code is marked in samples (qwen: ```python); the sandbox runs it, and the model goes on"
        ),
    ] = None
    code_executions: Annotated[int, Meta(ge=1, description="largest number of code blocks per sample")] = 5
    tool_modules: Annotated[
        tuple[str, ...] | None,
        Meta(description="tools that the model may call, as in ns eval: python, mcp, module::Class, …"),
    ] = None
    tool_overrides: Annotated[Row, Meta(description="settings of the tools: {Provider: {key: value}}")] = field(
        default_factory=dict
    )
    max_tool_calls: Annotated[int, Meta(ge=1, description="largest number of tool calls per sample")] = 8
    solver: Annotated[
        str | None,
        Meta(description="another solver than the benchmark's, as in ns eval: openenv, module::maker, …"),
    ] = None
    solver_config: Annotated[Row, Meta(description="settings of the solver")] = field(default_factory=dict)
    agent: Annotated[
        str | None, Meta(description="agent that works on each task in an environment of its own: bash, …")
    ] = None
    agent_config: Annotated[Row, Meta(description="settings of the agent")] = field(default_factory=dict)
    agent_max_turns: Annotated[int, Meta(ge=1, description="largest number of turns of an agent per sample")] = 100
    environment: EnvironmentConfig = EnvironmentConfig()
    sandbox: SandboxConfig = SandboxConfig()
    models: Annotated[
        dict[str, EndpointConfig],
        Meta(description="models of other roles, for a solver that uses some (++models.user.model=NAME …)"),
    ] = field(default_factory=dict)
    importance_cap: Annotated[
        float,
        Meta(ge=0, description="largest importance weight of a token, with several turns; 0 = no correction"),
    ] = 2.0
    turn_weight: Annotated[
        float, Meta(ge=0, description="weight of the rewards that an environment gives per turn")
    ] = 0.0

    def layers(self, overrides: Mapping[str, Any]) -> list[Layer]:
        """Return the settings that the user changes of an evaluation of the skill; `overrides` are the keys as typed.

        Raises ConfigError.
        """
        from newskills.run.rewarding.rollouts import with_code

        changes: dict[str, Any] = {"inference.tokens_to_generate": self.max_tokens}
        if self.code_tags is not None:
            changes |= with_code(self.code_tags, self.code_executions, self.max_tokens)
        if self.tool_modules is not None:
            changes |= {"tool_modules": list(self.tool_modules), "max_tool_calls": self.max_tool_calls}
        typed = {key: value for key, value in overrides.items() if key.partition(".")[0] in AS_IN_EVAL}
        return [self.prompt_layer(), Layer("command line", {**changes, **typed})]
