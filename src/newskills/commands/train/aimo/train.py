# SPDX-License-Identifier: Apache-2.0
"""`ns aimo train`: a model for competition mathematics, in three stages."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from newskills.commands.command import Command
from newskills.pipelines.options import NAME, DryRun, doc
from newskills.recipes.aimo.settings import AimoConfig

LAST = "last"
DATA, REPORT, REWARD = {"group": "data"}, {"group": "reports"}, {"group": "stage rl"}
AtLeastOne = Annotated[int, Meta(ge=1)]


class Options(Struct, frozen=True, kw_only=True):
    stage: Annotated[
        Literal["cot", "tir", "rl", "full"], doc("which stage; full = all three, one after the other")
    ] = "full"
    base_model: Annotated[str | None, doc("what the (first) stage starts from, instead of its own default")] = None
    output_dir: Annotated[str | None, doc("folder of the stage; with --stage full, of the folders of all")] = None
    config: Annotated[str | None, doc("YAML file of settings; options and ++ keys win over it")] = None
    max_samples: Annotated[AtLeastOne | None, doc("problems to learn from in each stage")] = None
    learning_rate: Annotated[float | None, doc("at its highest")] = None
    num_epochs: Annotated[float | None, doc("passes over the data")] = None
    save_steps: Annotated[int | None, doc("steps between checkpoints")] = None
    logging_steps: Annotated[int | None, doc("accepted; every step is written down")] = None
    eval_steps: Annotated[int | None, doc("steps between measurements on held-out rows")] = None
    resume_from_checkpoint: Annotated[
        str | None,
        doc("go on from the last checkpoint, which is done anyway, or from the one named here", {"bare": LAST}),
    ] = None
    force_cpu: Annotated[bool, doc("train on the CPU even where there is a GPU")] = False
    backend: Annotated[
        Literal["auto", "cpu", "trl"],
        doc("trainer; auto = cpu for small Llama models where there is no GPU, else trl"),
    ] = "auto"
    flash_attn: Annotated[bool, doc("FlashAttention on a GPU that has it")] = True
    dry_run: DryRun = False
    data_dir: Annotated[str | None, doc("where prepared data lies", DATA)] = None
    mirror: Annotated[str | None, doc("folder of an offline mirror (default: NEWSKILLS_MIRROR)", DATA)] = None
    offline: Annotated[bool | None, doc("never use the network", DATA)] = None
    save_samples: Annotated[bool, doc("keep only a share of the samples of the stage rl", REPORT)] = False
    sample_save_rate: Annotated[float, Meta(gt=0, le=1, description="that share", extra=REPORT)] = 0.01
    samples_filename: Annotated[str, doc("their file in the output folder", REPORT)] = "samples.jsonl"
    report_to: Annotated[
        Literal["tensorboard", "wandb", "none"] | None,
        doc(
            "where metrics go beside metrics.jsonl (default: tensorboard, if it is installed)", {**REPORT, **NAME}
        ),
    ] = None
    run_name: Annotated[str | None, doc("name of the run there (default: that of the stage)", REPORT)] = None
    num_generations: Annotated[int | None, doc("samples of each problem", REWARD)] = None
    vllm: Annotated[bool, doc("vLLM samples, on the GPU of the training", REWARD)] = True
    eval_samples: Annotated[int | None, doc("held-out problems of a measurement", REWARD)] = None
    eval_batch_size: Annotated[int | None, doc("of them asked at once", REWARD)] = None
    use_llm_judge: Annotated[bool, doc("a model rates the samples as well", REWARD)] = False
    llm_judge_model: Annotated[str | None, doc("that model", REWARD)] = None
    llm_judge_weight: Annotated[float | None, doc("of its rating in the reward", REWARD)] = None


COMMAND = Command(
    name="aimo_train",
    summary="Train a model for competition mathematics in three stages: solutions in words, solutions with programs "
    "(run in the sandbox), rewards. Each stage is a few ns lines, which --dry_run shows. A killed run goes on with the "
    "same command.",
    options=Options,
    config=AimoConfig,
    run="newskills.commands.train.aimo.work.stages:run",
    examples=(
        "ns aimo train --stage full --base-model Qwen/Qwen2.5-14B",
        "ns aimo train --stage rl --base-model smollm2 --max-samples 200 --force-cpu --output-dir outputs/small",
    ),
)
