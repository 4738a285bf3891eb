# SPDX-License-Identifier: Apache-2.0
"""`ns grpo`: reinforcement learning on this machine, rewarded by a grader."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from newskills.commands.command import Command
from newskills.commands.shared.rollouts import RolloutKeys
from newskills.commands.shared.training_options import TRAINING, LocalOptions
from newskills.pipelines.options import doc
from newskills.run.rewarding.reward import RewardConfig
from newskills.train.settings import EvalSettings, Schedule


class Options(LocalOptions, frozen=True, kw_only=True):
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
    scale_by_std: Annotated[bool, Meta(description="divide advantages by the group's standard deviation")] = True
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
    masked: Annotated[
        str | None, Meta(description="file with problem ids to leave out, one per line (wrong expected answers)")
    ] = None
    save_every: Annotated[int, Meta(ge=0, description="steps between checkpoints; 0 = only at the end")] = 10
    held_out: Annotated[
        int,
        Meta(
            ge=0,
            description="number of training problems (at most a tenth) to hold out for evaluation, if no "
            "others are given; 0 = none",
        ),
    ] = 200
    eval: EvalSettings = EvalSettings(every=20)
    reward: RewardConfig = RewardConfig()


COMMAND = Command(
    name="grpo",
    summary="Train a small model with reinforcement learning on this machine (GRPO, LoRA on a CPU): the "
    "grader that evaluates gives the reward. A killed or stopped run resumes with the same command "
    "and reaches the same numbers. Needs newskills[train,local].",
    options=Options,
    config=GrpoKeys,
    run="newskills.commands.train.grpo.work:run",
    aliases={"hf_model": "model"},
    examples=(
        "ns grpo --model=training/sft/final_hf_model --benchmark=sorting-lesson --output_dir=training/grpo ++steps=30",
        "ns grpo --model=smollm2 --training_data=problems.jsonl --output_dir=training/math "
        "++prompt_config=generic/math ++eval_type=math",
    ),
    essentials=(
        *TRAINING,
        "benchmark",
        "eval_data",
        "++prompt_config",
        "++eval_type",
        "++group_size",
        "++solver_config",
        "++agent",
        "++max_tokens",
        "++temperature",
        "++kl",
        "++held_out",
        "++reward.correct",
        "++reward.wrong",
    ),
)
