# SPDX-License-Identifier: Apache-2.0
"""Options and `++` keys of GRPO: how problems are solved, by the names that an evaluation has for it, and rewarded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, field

from newskills.base.records import Row
from newskills.config.layers import Layer
from newskills.environments.config import EnvironmentConfig
from newskills.pipelines.options import AtLeastOne, doc
from newskills.pipelines.training.methods.options import LocalOptions, PromptKeys
from newskills.run.planning.config import EndpointConfig
from newskills.run.rewarding.reward import RewardConfig
from newskills.sandbox.config import SandboxConfig
from newskills.train.settings import Baseline, Control, EvalSettings, Schedule

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


class GrpoOptions(LocalOptions, frozen=True, kw_only=True):
    benchmark: Annotated[
        str | None,
        doc("benchmark to train on: its prompt, solver, grader and split; several with weights: a:2,b:1"),
    ] = None
    split: Annotated[str, doc("split of the benchmark")] = "train"
    training_data: Annotated[
        str | None,
        doc("JSONL file of problems instead of a benchmark, with the fields that prompt and grader need"),
    ] = None
    eval_data: Annotated[
        str | None,
        doc("JSONL file of held-out problems, with the prompt and grader of the training (or --eval_benchmark)"),
    ] = None
    explain_batch: Annotated[
        AtLeastOne | None,
        doc(
            "step of the training in output_dir to explain instead of training: groups, rewards, advantages, and how "
            "far it pushed each token"
        ),
    ] = None


class GrpoKeys(RolloutKeys, frozen=True, kw_only=True):
    """`++` keys of `ns grpo`."""

    eval_type: Annotated[str | None, Meta(description="another grader than the benchmark's")] = None
    eval_config: Annotated[dict[str, Any], Meta(description="settings of the grader")] = msgspec.field(
        default_factory=dict
    )
    batch_size: Annotated[int, Meta(ge=1, description="problems per step")] = 8
    group_size: Annotated[int, Meta(ge=2, description="samples per problem (group size)")] = 8
    schedule: Annotated[Schedule, Meta(description="schedule of the learning rate after warm-up")] = "linear"
    temperature: Annotated[float, Meta(gt=0, description="temperature of the samples")] = 1.0
    top_p: Annotated[float, Meta(gt=0, le=1, description="nucleus sampling mass of the samples")] = 1.0
    scale_by_std: Annotated[
        bool, Meta(description="divide advantages by the group's standard deviation (++baseline=mean)")
    ] = True
    baseline: Annotated[
        Baseline,
        Meta(
            description="what is subtracted from the rewards of a group: their mean, or weighted: a mean in which "
            "unlikely samples weigh more, which makes the gradient less noisy"
        ),
    ] = "mean"
    loss: Annotated[
        Literal["importance_sampling", "ppo", "gspo"],
        Meta(
            description="ppo: clip the probability ratio of a token (trl always does); gspo: of a whole sequence"
        ),
    ] = "importance_sampling"
    iterations: Annotated[
        int, Meta(ge=1, description="updates per step with the same samples; more than 1 needs loss ppo")
    ] = 1
    clip_low: Annotated[float, Meta(gt=0, lt=1, description="lower clip: the ratio stays above 1 minus this")] = (
        0.2
    )
    clip_high: Annotated[float, Meta(gt=0, description="upper clip: the ratio stays below 1 plus this")] = 0.2
    kl: Annotated[float, Meta(ge=0, description="weight of the KL divergence from the initial model")] = 0.0
    drop_cut_off: Annotated[bool, Meta(description="ignore samples that reached max_tokens")] = False
    resample: Annotated[
        int,
        Meta(ge=0, description="times to draw other problems in place of groups whose rewards are all equal"),
    ] = 0
    put_aside: Annotated[
        int,
        Meta(
            ge=0,
            description="steps for which a problem rests whose samples all got the same reward (all or none solve it), "
            "twice as many each further time; 0 = never",
        ),
    ] = 0
    min_signal: Annotated[
        float,
        Meta(
            ge=0,
            lt=1,
            description="(cpu) add groups to a step until its gradient is so much signal (expected cosine of two such "
            "steps); 0 = never",
        ),
    ] = 0.0
    max_groups: Annotated[int, Meta(ge=1, description="most groups of a step with ++min_signal")] = 64
    control: Annotated[
        Control,
        Meta(description="shuffled: shuffle rewards within groups, to see how much of a change is chance"),
    ] = "none"
    masked: Annotated[
        str | None, Meta(description="file with problem ids to leave out, one per line (wrong expected answers)")
    ] = None
    save_every: Annotated[int, Meta(ge=0, description="steps between checkpoints; 0 = only at the end")] = 10
    held_out: Annotated[
        int,
        Meta(
            ge=0,
            description="number of training problems (at most a quarter) to hold out for evaluation, if no "
            "others are given; 0 = none",
        ),
    ] = 200
    eval: EvalSettings = EvalSettings(every=0, stop_worse=0.05, returns=3)
    reward: RewardConfig = RewardConfig()
