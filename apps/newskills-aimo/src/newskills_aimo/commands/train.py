# SPDX-License-Identifier: Apache-2.0
"""`ns aimo train`: a model for competition mathematics, in three stages."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from newskills.commands.command import Command
from newskills.pipelines.options import NAME, DryRun, doc
from newskills_aimo.recipe.settings import AimoConfig

LAST = "last"
DATA, REPORT, REWARD = {"group": "data"}, {"group": "reports"}, {"group": "stage rl"}
AtLeastOne = Annotated[int, Meta(ge=1)]


class Options(Struct, frozen=True, kw_only=True):
    stage: Annotated[
        Literal["cot", "tir", "rl", "full"], doc("stage to run; full = all three, one after the other")
    ] = "full"
    base_model: Annotated[str | None, doc("base model of the (first) stage, instead of the stage's default")] = (
        None
    )
    output_dir: Annotated[
        str | None, doc("folder of the stage; with --stage full: parent folder of all stages")
    ] = None
    config: Annotated[str | None, doc("YAML file of settings; options and ++ keys override it")] = None
    max_samples: Annotated[AtLeastOne | None, doc("largest number of training problems in each stage")] = None
    learning_rate: Annotated[float | None, doc("peak learning rate")] = None
    num_epochs: Annotated[float | None, doc("passes over the data")] = None
    save_steps: Annotated[int | None, doc("steps between checkpoints")] = None
    logging_steps: Annotated[int | None, doc("accepted for compatibility; every step is logged")] = None
    eval_steps: Annotated[int | None, doc("steps between evaluations on held-out rows")] = None
    resume_from_checkpoint: Annotated[
        str | None,
        doc("resume from the last checkpoint (the default), or from the checkpoint given here", {"bare": LAST}),
    ] = None
    force_cpu: Annotated[bool, doc("train on the CPU even if there is a GPU")] = False
    backend: Annotated[
        Literal["auto", "cpu", "trl"],
        doc("trainer; auto = cpu for small Llama models if there is no GPU, otherwise trl"),
    ] = "auto"
    flash_attn: Annotated[bool, doc("use FlashAttention on a GPU that supports it")] = True
    dry_run: DryRun = False
    data_dir: Annotated[str | None, doc("folder of prepared data", DATA)] = None
    mirror: Annotated[str | None, doc("folder of an offline mirror (default: NEWSKILLS_MIRROR)", DATA)] = None
    offline: Annotated[bool | None, doc("never use the network", DATA)] = None
    save_samples: Annotated[bool, doc("keep only a share of the samples of stage rl", REPORT)] = False
    sample_save_rate: Annotated[float, Meta(gt=0, le=1, description="share to keep", extra=REPORT)] = 0.01
    samples_filename: Annotated[str, doc("file for these samples, in the output folder", REPORT)] = "samples.jsonl"
    report_to: Annotated[
        Literal["tensorboard", "wandb", "none"] | None,
        doc(
            "where to log metrics, in addition to metrics.jsonl (default: tensorboard, if it is installed)",
            {**REPORT, **NAME},
        ),
    ] = None
    run_name: Annotated[str | None, doc("run name there (default: name of the stage)", REPORT)] = None
    num_generations: Annotated[int | None, doc("samples per problem (group size)", REWARD)] = None
    vllm: Annotated[bool, doc("sample with vLLM, on the GPU of the training", REWARD)] = True
    eval_samples: Annotated[int | None, doc("number of held-out problems for evaluation", REWARD)] = None
    eval_batch_size: Annotated[int | None, doc("held-out problems per batch", REWARD)] = None
    use_llm_judge: Annotated[bool, doc("a judge model also rates the samples", REWARD)] = False
    llm_judge_model: Annotated[str | None, doc("judge model", REWARD)] = None
    llm_judge_weight: Annotated[float | None, doc("weight of the judge's rating in the reward", REWARD)] = None


COMMAND = Command(
    name="aimo_train",
    summary="Train a model for competition mathematics in three stages: SFT on chains of thought, SFT on "
    "solutions with code (run in the sandbox), reinforcement learning. Each stage is a few ns "
    "commands; --dry_run shows them. A killed run resumes with the same command.",
    options=Options,
    config=AimoConfig,
    run="newskills_aimo.running.stages:run",
    result="newskills_aimo.running.stages:run_stages",
    examples=(
        "ns aimo train --stage full --base-model Qwen/Qwen2.5-14B",
        "ns aimo train --stage rl --base-model smollm2 --max-samples 200 --force-cpu --output-dir outputs/small",
    ),
)
