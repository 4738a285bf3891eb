# SPDX-License-Identifier: Apache-2.0
"""The settings of the three stages, with the published values as defaults; `default.yaml` is the same as a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from newskills.config.layers import Layer, Resolved, resolve
from newskills.config.settings_file import read_settings

StageName = Literal["cot", "tir", "rl"]
STAGES: tuple[StageName, ...] = ("cot", "tir", "rl")
ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")
PROJECTIONS = (*ATTENTION, "gate_proj", "up_proj", "down_proj")
TESTS = ("hendrycks_math", "math-500", "aime24", "aime25", "amc23", "gsm8k")
"""Benchmarks whose test problems are kept out of all training data."""


def _describe(text: str) -> Meta:
    return Meta(description=text)


Share = Annotated[float, Meta(ge=0, le=1)]
Positive = Annotated[int, Meta(ge=1)]

# Stages differ in the defaults of these, and a field that is declared again would lose its meaning.
Start = Annotated[str, _describe("Hugging Face folder or name, training folder, .gguf file, or smollm2")]
Output = Annotated[str, _describe("folder for data, checkpoints, metrics and the trained model")]
Datasets = Annotated[
    tuple[str, ...], _describe("published sets; if one cannot be downloaded, the next one is used")
]
PromptName = Annotated[str, _describe("prompt that wraps the problems")]
Epochs = Annotated[float, Meta(gt=0, description="passes over the data")]
BatchSize = Annotated[int, Meta(ge=1, description="sequences per device at once (micro-batch)")]
Accumulation = Annotated[int, Meta(ge=1, description="micro-batches per step (gradient accumulation)")]
Rate = Annotated[float, Meta(gt=0, description="peak learning rate")]
GradNorm = Annotated[float, Meta(ge=0, description="gradient clipping: largest norm; 0 = none")]
Rank = Annotated[int, Meta(ge=1, description="rank of the LoRA pairs")]
Alpha = Annotated[float, Meta(gt=0, description="scale: the LoRA product is multiplied by alpha / rank")]
Modules = Annotated[tuple[str, ...], _describe("layers that get LoRA pairs")]
LoggingSteps = Annotated[int, Meta(ge=1, description="accepted for compatibility; every step is logged")]
SaveSteps = Annotated[int, Meta(ge=0, description="steps between checkpoints; 0 = only at the end")]
EvalSteps = Annotated[int, Meta(ge=0, description="steps between evaluations on held-out rows; 0 = none")]
MaxLength = Annotated[int, Meta(ge=1, description="longest sequence in tokens; longer rows are left out")]


class Stage(Struct, frozen=True, kw_only=True):
    """What all stages have. `data_files` (JSONL, JSON, parquet) replace the published sets."""

    start: Start
    output: Output
    datasets: Datasets
    prompt: PromptName
    data_files: Annotated[tuple[str, ...], _describe("files to train on instead")] = ()
    max_samples: Annotated[
        Positive | None, _describe("number of training problems, chosen by the seed; null = all")
    ] = None
    seed: Annotated[int, _describe("seed of the choice and order of the data, and of samples")] = 42
    epochs: Epochs
    batch_size: BatchSize
    accumulation: Accumulation
    learning_rate: Rate
    warmup: Annotated[Share, _describe("share of the steps for warm-up")] = 0.03
    schedule: Annotated[
        Literal["constant", "linear", "cosine"], _describe("schedule of the learning rate after warm-up")
    ] = "cosine"
    weight_decay: Annotated[float, Meta(ge=0, description="weight decay of AdamW")] = 0.01
    max_grad_norm: GradNorm = 1.0
    lora_rank: Rank
    lora_alpha: Alpha
    lora_dropout: Annotated[Share, _describe("dropout of the LoRA input")] = 0.05
    lora_modules: Modules = PROJECTIONS
    attention: Annotated[
        str, _describe("attention implementation of transformers on a GPU; empty = chosen by transformers")
    ] = ""
    logging_steps: LoggingSteps = 10
    save_steps: SaveSteps
    eval_steps: EvalSteps
    keep: Annotated[
        int, Meta(ge=0, description="number of latest checkpoints to keep, beside the best one; 0 = all")
    ] = 3

    @property
    def batch(self) -> int:
        """Sequences of a step."""
        return self.batch_size * self.accumulation


class SftStage(Stage, frozen=True, kw_only=True):
    """Learning from solutions."""

    max_length: MaxLength
    validation: Annotated[Share, _describe("share of the rows to hold out")] = 0.01
    quantisation: Annotated[Literal["nf4", "none"], _describe("quantisation of the frozen weights on a GPU")] = (
        "nf4"
    )


class CotStage(SftStage, frozen=True, kw_only=True):
    """Solutions in words."""

    start: Start = "Qwen/Qwen2.5-14B"
    output: Output = "outputs/sft_cot"
    datasets: Datasets = ("numinamath-cot",)
    prompt: PromptName = "qwen/math-cot"
    epochs: Epochs = 3.0
    batch_size: BatchSize = 4
    accumulation: Accumulation = 8
    learning_rate: Rate = 2e-5
    lora_rank: Rank = 64
    lora_alpha: Alpha = 128.0
    save_steps: SaveSteps = 500
    eval_steps: EvalSteps = 500
    max_length: MaxLength = 4096


class TirStage(SftStage, frozen=True, kw_only=True):
    """Solutions with programs between ```python and ``` and their output between ```output and ```."""

    start: Start = "outputs/sft_cot"
    output: Output = "outputs/sft_tir"
    datasets: Datasets = ("numinamath-tir",)
    prompt: PromptName = "qwen/math-tir"
    epochs: Epochs = 2.0
    batch_size: BatchSize = 2
    accumulation: Accumulation = 16
    learning_rate: Rate = 1e-5
    lora_rank: Rank = 32
    lora_alpha: Alpha = 64.0
    save_steps: SaveSteps = 200
    eval_steps: EvalSteps = 200
    max_length: MaxLength = 8192
    max_executions: Annotated[
        Positive, _describe("largest number of code blocks in a solution; rows with more are left out")
    ] = 5
    timeout: Annotated[
        float, Meta(gt=0, description="time limit of a code block in seconds, when rows are checked")
    ] = 10.0
    check_programs: Annotated[
        bool, _describe("run the code of the rows in the sandbox; leave out rows whose output differs")
    ] = True


class RlStage(Stage, frozen=True, kw_only=True):
    """Learning from rewards: group-relative policy optimisation."""

    start: Start = "outputs/sft_tir"
    output: Output = "outputs/rl_math"
    datasets: Datasets = ("math-hard", "numinamath-cot")
    prompt: PromptName = "qwen/math-cot"
    epochs: Epochs = 1.0
    batch_size: BatchSize = 4
    accumulation: Accumulation = 8
    learning_rate: Rate = 1e-6
    max_grad_norm: GradNorm = 0.5
    lora_rank: Rank = 16
    lora_alpha: Alpha = 32.0
    lora_modules: Modules = ATTENTION
    logging_steps: LoggingSteps = 5
    save_steps: SaveSteps = 100
    eval_steps: EvalSteps = 100
    num_generations: Annotated[int, Meta(ge=2, description="samples per problem (group size)")] = 4
    max_tokens: Annotated[Positive, _describe("longest sample in tokens")] = 2048
    temperature: Annotated[float, Meta(gt=0, description="sampling temperature")] = 0.7
    top_p: Annotated[float, Meta(gt=0, le=1, description="nucleus sampling mass")] = 0.95
    beta: Annotated[float, Meta(ge=0, description="weight of the KL divergence from the initial model")] = 0.1
    vllm: Annotated[Literal["colocate", "none"], _describe("sampler on a GPU")] = "colocate"
    vllm_memory: Annotated[Share, _describe("share of the GPU's memory for vLLM")] = 0.5
    correct: Annotated[float, _describe("reward of a correct answer")] = 1.0
    wrong: Annotated[float, _describe("reward of a wrong answer, or of none")] = -0.5
    boxed: Annotated[float, _describe("added to the reward if the answer is in a box")] = 0.1
    length_penalty: Annotated[
        float, Meta(ge=0, description="length penalty p in p · max(0, characters / 1000 - 2)")
    ] = 0.0
    judge_model: Annotated[str, _describe("judge model that rates samples; empty = none")] = ""
    judge_server_type: Annotated[str, _describe("server type of the judge")] = "openai"
    judge_address: Annotated[str, _describe("address of the judge's server; empty = that of the service")] = ""
    judge_weight: Annotated[Share, _describe("weight of the judge's rating in the reward")] = 0.5
    eval_samples: Annotated[Positive, _describe("number of held-out problems for evaluation")] = 50
    eval_batch_size: Annotated[Positive, _describe("held-out problems per batch")] = 8
    eval_temperature: Annotated[float, Meta(ge=0, description="temperature of the evaluation answers")] = 0.1


class AimoConfig(Struct, frozen=True, kw_only=True):
    """The three stages, and whose test problems none of them may see."""

    cot: CotStage = CotStage()
    tir: TirStage = TirStage()
    rl: RlStage = RlStage()
    decontaminate: Annotated[
        tuple[str, ...],
        _describe("benchmarks (or JSONL files with `problem`) whose problems are removed from the training data"),
    ] = TESTS

    def stage(self, name: StageName) -> Stage:
        stage: Stage = getattr(self, name)
        return stage


DEFAULTS = Path(__file__).with_name("default.yaml")


def resolve_settings(
    file: str | None, options: Mapping[str, Any], overrides: Mapping[str, Any]
) -> Resolved[AimoConfig]:
    """Merge defaults, `file` (YAML), `options` and `++` keys, each over those before it. Raises ConfigError,
    UnknownNameError."""
    hint = f"An example is {DEFAULTS}."
    layers = [Layer("options", options), Layer("command line", overrides)]
    if file:
        layers.insert(0, Layer(file, read_settings(Path(file).expanduser(), hint)))
    return resolve(AimoConfig, layers)
