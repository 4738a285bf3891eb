# SPDX-License-Identifier: Apache-2.0
"""Options and `++` keys of all trainings by our own trainers; light, since every `--help` loads them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from newskills.config.layers import Layer
from newskills.pipelines.options import (
    DEFAULT_PROJECT,
    JOB,
    AtLeastOne,
    PlacementOptions,
    WandbGroup,
    WandbName,
    WandbProject,
    doc,
)
from newskills.train.settings import EvalSettings, TooLong, TrainerSettings


class LocalOptions(PlacementOptions, frozen=True, kw_only=True):
    """Options of every training, here or as a job."""

    model: Annotated[str, doc("Hugging Face folder or hub name, .gguf file, or smollm2")]
    output_dir: Annotated[
        str, doc("folder for checkpoints and metrics; a run in the same folder resumes where it stopped")
    ]
    backend: Annotated[
        str,
        doc("cpu: LoRA, small Llama, Qwen; trl: any model, GPUs (newskills[trl]); tinker: at a Tinker service"),
    ] = "cpu"
    data_dir: Annotated[str | None, doc("folder of prepared data")] = None
    eval_benchmark: Annotated[
        str | None, doc("benchmark to evaluate on during training (++eval.*), with its prompt and grader")
    ] = None
    eval_split: Annotated[str, doc("split of that benchmark")] = "test"
    allow_overlap: Annotated[bool, doc("allow training on problems that are also evaluated on")] = False
    wandb_name: WandbName = None
    wandb_group: WandbGroup = None
    wandb_project: WandbProject = DEFAULT_PROJECT
    push_to: Annotated[
        str | None, doc("hf://OWNER/NAME: send each checkpoint there while training (cpu, trl); needs HF_TOKEN")
    ] = None
    push_public: Annotated[bool, doc("make that repository public (default: private)")] = False
    num_gpus: Annotated[
        int | None, doc("GPUs per node of the job; with --backend=trl each gets a process (default: none)", JOB)
    ] = None
    num_nodes: Annotated[AtLeastOne, doc("nodes of the job, which train together (--backend=trl)", JOB)] = 1


class StepKeys(Struct, frozen=True, kw_only=True):
    """`++` keys of every training."""

    epochs: Annotated[float, Meta(gt=0, description="passes over the data (epochs), unless steps is set")] = 1.0
    steps: Annotated[AtLeastOne | None, Meta(description="number of training steps (batches)")] = None
    learning_rate: Annotated[float, Meta(gt=0, le=1, description="peak learning rate")] = 2e-4
    warmup_steps: Annotated[int, Meta(ge=0, description="warm-up steps")] = 0
    weight_decay: Annotated[float, Meta(ge=0, description="weight decay of AdamW")] = 0.0
    max_grad_norm: Annotated[float, Meta(ge=0, description="gradient clipping: largest norm; 0 = none")] = 1.0
    seed: Annotated[int, Meta(description="seed of the data order and of the samples")] = 0
    too_long: Annotated[
        TooLong,
        Meta(
            description="rows longer than the model's context: error = stop, drop = leave out, truncate = cut (sft)"
        ),
    ] = "error"
    max_length: Annotated[
        AtLeastOne | None, Meta(description="longest context in tokens, if shorter than the model's")
    ] = None
    chat_template_kwargs: Annotated[
        dict[str, Any] | None, Meta(description="chat template variables, as in an evaluation")
    ] = None
    eval: EvalSettings = EvalSettings()
    report_to: Annotated[
        tuple[Literal["tensorboard", "wandb", "trackio"], ...],
        Meta(description="where else to log metrics, step by step"),
    ] = ()
    keep: Annotated[
        int, Meta(ge=0, description="number of latest checkpoints to keep, beside the best one; 0 = all")
    ] = 0
    checkpoint_must_save_by: Annotated[
        str | None,
        Meta(description="days:hours:minutes:seconds after which the run must have saved a checkpoint and ended"),
    ] = None
    trainer: TrainerSettings = TrainerSettings()

    def limit(self, base: Path) -> int | None:
        """Return the tokens that fit into the model in `base`."""
        from newskills.run.training.examples import context_of

        return min(filter(None, (self.max_length, context_of(base))), default=None)


class PromptKeys(StepKeys, frozen=True, kw_only=True):
    """`++` keys of a training whose prompts are made of a benchmark's rows."""

    prompt_config: Annotated[str | None, Meta(description="another prompt than the benchmark's")] = None
    prompt_format: Annotated[
        Literal["ns", "openai"] | None, Meta(description="openai: the problems hold `messages`")
    ] = None
    system_message: Annotated[str | None, Meta(description="system message, instead of the prompt's own")] = None
    user_message: Annotated[str | None, Meta(description="user template, instead of the prompt's own")] = None
    examples_type: Annotated[str | None, Meta(description="few-shot set, instead of the prompt's own")] = None

    def prompt_layer(self) -> Layer:
        """Return the settings that the user changes of the prompt; the rest is as in an evaluation of the benchmark."""
        names = ("prompt_config", "prompt_format", "system_message", "user_message", "examples_type")
        options_set = {name: getattr(self, name) for name in (*names, "chat_template_kwargs")}
        return Layer("command line", {name: value for name, value in options_set.items() if value is not None})


TRAINING = (
    "model",
    "training_data",
    "output_dir",
    "backend",
    "eval_benchmark",
    "dry_run",
    "cluster",
    "num_gpus",
    "dependent_jobs",
    "++epochs",
    "++steps",
    "++batch_size",
    "++learning_rate",
    "++seed",
    "++save_every",
    "++eval.every",
    "++trainer.lora.rank",
)
"""What the short help of a training shows."""
