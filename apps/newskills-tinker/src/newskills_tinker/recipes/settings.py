# SPDX-License-Identifier: Apache-2.0
"""`key=value` of the Tinker recipes, apart from what follows them: `--help` loads no recipe."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from newskills.train.settings import Schedule

AtLeastOne = Annotated[int, Meta(ge=1)]


class RunConfig(Struct, frozen=True, kw_only=True):
    """`key=value` of both recipes."""

    model_name: Annotated[str, Meta(description="name of the model at the service, or local folder of it")]
    log_dir: Annotated[
        str,
        Meta(
            description="folder for metrics, samples and checkpoints; a run in the same folder resumes "
            "where it stopped"
        ),
    ]
    lora_rank: Annotated[int, Meta(ge=1, description="rank of the LoRA pairs")] = 64
    learning_rate: Annotated[float | None, Meta(description="learning rate; none = chosen by model")] = None
    dataset_split: Annotated[str, Meta(description="split of the dataset")] = "train"
    max_samples: Annotated[AtLeastOne | None, Meta(description="only the first n rows")] = None
    prompt_config: Annotated[str, Meta(description="prompt that wraps the problems")] = "generic/math"
    seed: Annotated[int, Meta(ge=0, description="seed of the data order and of the samples")] = 42
    resume_from: Annotated[
        str | None, Meta(description="tinker:// path of a state, or log_dir of another run, to start from")
    ] = None
    wandb_project: Annotated[str | None, Meta(description="also log to W&B")] = None
    wandb_name: Annotated[str | None, Meta(description="name of the W&B run")] = None
    verbose: Annotated[bool, Meta(description="print a line for every step")] = False


class TinkerRlConfig(RunConfig, frozen=True, kw_only=True):
    """`key=value` of `ns tinker rl`."""

    batch_size: Annotated[int, Meta(ge=1, description="problems per step")] = 64
    group_size: Annotated[int, Meta(ge=2, description="samples per problem (group size)")] = 16
    max_tokens: Annotated[int, Meta(ge=1, description="longest sample in tokens")] = 4096
    dataset_name: Annotated[str, Meta(description="published training set, or a JSONL file")] = (
        "lighteval/MATH-Hard"
    )
    eval_type: Annotated[str, Meta(description="grader that gives the reward")] = "math"
    eval_config: Annotated[dict[str, Any], Meta(description="settings of the grader")] = field(
        default_factory=dict
    )
    correct_reward: Annotated[float, Meta(description="reward of a correct answer")] = 1.0
    incorrect_reward: Annotated[float, Meta(description="reward of a wrong answer, or of none")] = -0.5
    format_bonus: Annotated[float, Meta(description="added to the reward if there is a boxed answer")] = 0.1
    num_epochs: Annotated[int, Meta(ge=1, description="passes over the problems")] = 1
    save_every: Annotated[int, Meta(ge=0, description="steps between checkpoints; 0 = only at the end")] = 100
    eval_every: Annotated[
        int, Meta(ge=0, description="steps between evaluations on held-out problems; 0 = none")
    ] = 0
    eval_samples: Annotated[
        int, Meta(ge=1, description="number of held-out problems, taken from the end of the data")
    ] = 50
    temperature: Annotated[float, Meta(gt=0, description="sampling temperature")] = 0.7
    top_p: Annotated[float, Meta(gt=0, le=1, description="nucleus sampling mass")] = 0.95
    save_samples: Annotated[bool, Meta(description="write samples.jsonl")] = True


class Kind(Struct, frozen=True, kw_only=True):
    """What differs between chains of thought and solutions with code."""

    dataset: str
    batch: int
    epochs: int
    length: int
    save_every: int


KINDS = {
    "cot": Kind(dataset="AI-MO/NuminaMath-CoT", batch=32, epochs=3, length=4096, save_every=100),
    "tir": Kind(dataset="AI-MO/NuminaMath-TIR", batch=16, epochs=2, length=8192, save_every=200),
}


class TinkerSftConfig(RunConfig, frozen=True, kw_only=True):
    """`key=value` of `ns tinker sft`. What is none is taken from `kind`."""

    kind: Annotated[Literal["cot", "tir"], Meta(description="chains of thought, or solutions with code")] = "cot"
    dataset_name: Annotated[
        str | None, Meta(description="published training set, or a JSONL file; none = NuminaMath-CoT or -TIR")
    ] = None
    batch_size: Annotated[int | None, Meta(description="sequences per step; none = 32 (cot), 16 (tir)")] = None
    num_epochs: Annotated[int | None, Meta(description="passes over the data; none = 3 (cot), 2 (tir)")] = None
    max_length: Annotated[
        int | None,
        Meta(description="longest sequence in tokens; longer ones are left out; none = 4096 (cot), 8192 (tir)"),
    ] = None
    save_every: Annotated[
        int | None, Meta(description="steps between checkpoints; none = 100 (cot), 200 (tir); 0 = only at the end")
    ] = None
    lr_schedule: Annotated[Schedule, Meta(description="schedule of the learning rate")] = "linear"
