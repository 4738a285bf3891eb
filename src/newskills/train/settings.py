# SPDX-License-Identifier: Apache-2.0
"""Settings of trainings as commands offer them, apart from what follows them: `--help` loads no loop."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from newskills.train.backends.trl.settings import TrlSettings

Schedule = Literal["constant", "linear", "cosine"]
"""How the learning rate falls."""
Baseline = Literal["mean", "weighted"]
"""What is taken from the rewards of a group of samples."""
Control = Literal["none", "shuffled"]
"""A training that shows what chance does: advantages of rewards that are shuffled within their groups."""
TooLong = Literal["error", "drop", "truncate"]
"""What becomes of a sequence that is longer than the model's context."""
PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


class LoraSettings(Struct, frozen=True, kw_only=True):
    """The pairs that are trained (https://arxiv.org/abs/2106.09685)."""

    rank: Annotated[int, Meta(ge=1, description="rank of the LoRA pairs")] = 16
    alpha: Annotated[float, Meta(gt=0, description="scale: the LoRA product is multiplied by alpha / rank")] = 32.0
    dropout: Annotated[
        float, Meta(ge=0, lt=1, description="dropout: share of the input that is left out (trl)")
    ] = 0.0
    targets: Annotated[tuple[str, ...], Meta(description="projections that get a LoRA pair")] = PROJECTIONS
    seed: Annotated[int, Meta(description="random seed of the initial values")] = 0


class TrainerSettings(Struct, frozen=True, kw_only=True):
    """How this machine computes. Another number of threads changes the last digits of the results."""

    weights: Annotated[
        Literal["lora", "full"], Meta(description="what is trained: LoRA pairs, or all weights (trl)")
    ] = "lora"
    lora: LoraSettings = LoraSettings()
    dtype: Annotated[str, Meta(description="number format of the frozen weights: auto, bfloat16, float32")] = (
        "auto"
    )
    threads: Annotated[int, Meta(ge=0, description="threads of the trainer; 0 = one per core")] = 0
    trl: TrlSettings = TrlSettings()


class EvalSettings(Struct, frozen=True, kw_only=True):
    """How held-out problems are asked during training."""

    every: Annotated[
        int,
        Meta(
            ge=0,
            description="steps between evaluations; 0 = only before the first and after the last (grpo: as often as "
            "takes about a fifth of the time, every 5 at most)",
        ),
    ] = 100
    max_problems: Annotated[
        int, Meta(ge=1, description="number of held-out problems to evaluate on (the first ones)")
    ] = 200
    samples: Annotated[int, Meta(ge=1, description="answers per problem")] = 1
    temperature: Annotated[float, Meta(ge=0, description="temperature of the answers; 0 = greedy")] = 0.0
    max_tokens: Annotated[int, Meta(ge=1, description="longest answer in tokens")] = 256
    batch_size: Annotated[int, Meta(ge=1, description="problems per batch")] = 32
    code_tags: Annotated[
        str | None,
        Meta(
            description="how code is marked in answers (qwen: ```python); the sandbox runs it. none: no code "
            "is run"
        ),
    ] = None
    code_executions: Annotated[int, Meta(ge=1, description="largest number of code blocks to run per answer")] = 5
    patience: Annotated[
        int,
        Meta(ge=0, description="early stopping: evaluations without a better reward; 0 = never"),
    ] = 0
    stop_worse: Annotated[
        float,
        Meta(
            ge=0,
            lt=1,
            description="end a run whose evaluations show a loss against the first one: chance to do so without a "
            "loss (paired test, its level spent over all evaluations); 0 = never",
        ),
    ] = 0.0
    returns: Annotated[
        int,
        Meta(
            ge=0,
            description="(cpu; trl: LoRA pairs, one process) how often a loss that lasts takes the run back to its "
            "best weights, with a quarter of the learning rate, before one ends it; 0 = the first loss ends it",
        ),
    ] = 0
    final: Annotated[
        Literal["best", "last"],
        Meta(description="which model the run keeps: the best by evaluation reward, or the last"),
    ] = "best"
