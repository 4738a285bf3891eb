# SPDX-License-Identifier: Apache-2.0
"""Options and `++` keys of each method but GRPO; light, since every `--help` loads them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from newskills.pipelines.options import doc
from newskills.pipelines.training.methods.options import LocalOptions, PromptKeys, StepKeys
from newskills.train.settings import Schedule


class SftOptions(LocalOptions, frozen=True, kw_only=True):
    training_data: Annotated[
        str,
        doc("file of {messages}, {conversations}, {prompt, completion}, {instruction, output}, {input, output}"),
    ]


class SftKeys(StepKeys, frozen=True, kw_only=True):
    """`++` keys of `ns sft`."""

    batch_size: Annotated[int, Meta(ge=1, description="sequences per step")] = 16
    schedule: Annotated[Schedule, Meta(description="schedule of the learning rate after warm-up")] = "linear"
    code_tags: Annotated[
        str | None,
        Meta(description="how code is marked in `output` texts (qwen: ```python); its output is not trained on"),
    ] = None
    add_end_token: Annotated[
        bool, Meta(description="add the end token to texts that end without one, as TRL does")
    ] = True
    save_every: Annotated[int, Meta(ge=0, description="steps between checkpoints; 0 = only at the end")] = 20


class ReplyOptions(LocalOptions, frozen=True, kw_only=True):
    """Options of every training on replies that are better or worse."""

    training_data: str | None = None
    input_files: Annotated[
        list[str], doc("instead: graded output files of several seeds; correct replies are good, wrong ones bad")
    ] = msgspec.field(default_factory=list)
    benchmark: Annotated[str | None, doc("benchmark of --input_files: its prompt (or ++prompt_config)")] = None


class PairOptions(ReplyOptions, frozen=True, kw_only=True):
    """Options of every training on pairs."""

    training_data: Annotated[
        str | None, doc("JSONL file of {prompt, chosen, rejected}: texts used unchanged, or conversations")
    ] = None
    input_files: Annotated[
        list[str],
        doc("instead: graded output files of several seeds; correct replies are paired with wrong ones"),
    ] = msgspec.field(default_factory=list)


class ReplyKeys(PromptKeys, frozen=True, kw_only=True):
    """`++` keys of every training on replies that are better or worse."""

    drop_cut_off: Annotated[
        bool, Meta(description="ignore replies that reached their limit of tokens (--input_files)")
    ] = False


class PairKeys(ReplyKeys, frozen=True, kw_only=True):
    """`++` keys of every training on pairs."""

    pairs_per_problem: Annotated[int, Meta(ge=1, description="most pairs of one problem (--input_files)")] = 2


class DpoOptions(PairOptions, frozen=True, kw_only=True):
    """Options of `ns dpo`."""


class DpoKeys(PairKeys, frozen=True, kw_only=True):
    """`++` keys of `ns dpo`."""

    learning_rate: Annotated[float, Meta(gt=0, le=1, description="peak learning rate")] = 5e-5
    batch_size: Annotated[int, Meta(ge=1, description="pairs per step")] = 8
    beta: Annotated[float, Meta(gt=0, description="beta: how much a difference from the initial model counts")] = (
        0.1
    )
    sft_weight: Annotated[
        float, Meta(ge=0, description="weight of the SFT loss on the chosen replies beside the DPO loss; 0 = none")
    ] = 1.0
    schedule: Annotated[Schedule, Meta(description="schedule of the learning rate after warm-up")] = "linear"
    save_every: Annotated[int, Meta(ge=0, description="steps between checkpoints; 0 = only at the end")] = 20


class KtoOptions(ReplyOptions, frozen=True, kw_only=True):
    training_data: Annotated[
        str | None, doc("JSONL file of {prompt, completion, label}: label true for a good reply")
    ] = None
    backend: Annotated[
        str,
        doc("trl: any model, GPUs or a CPU (newskills[trl]); cpu: LoRA, small Llama, Qwen; tinker: at a service"),
    ] = "trl"


class KtoKeys(ReplyKeys, frozen=True, kw_only=True):
    """`++` keys of `ns kto`."""

    learning_rate: Annotated[float, Meta(gt=0, le=1, description="peak learning rate")] = 5e-5
    batch_size: Annotated[int, Meta(ge=2, description="replies per step")] = 16
    beta: Annotated[float, Meta(gt=0, description="beta: how much a difference from the initial model counts")] = (
        0.1
    )
    good_weight: Annotated[float, Meta(ge=0, description="weight of the loss of good replies")] = 1.0
    bad_weight: Annotated[float, Meta(ge=0, description="weight of the loss of bad replies")] = 1.0
    schedule: Annotated[Schedule, Meta(description="schedule of the learning rate after warm-up")] = "linear"
    save_every: Annotated[int, Meta(ge=0, description="steps between checkpoints; 0 = only at the end")] = 20


class RewardModelOptions(PairOptions, frozen=True, kw_only=True):
    """Options of `ns reward_model`."""


class RewardModelKeys(PairKeys, frozen=True, kw_only=True):
    """`++` keys of `ns reward_model`."""

    learning_rate: Annotated[float, Meta(gt=0, le=1, description="peak learning rate")] = 1e-4
    batch_size: Annotated[int, Meta(ge=1, description="pairs per step")] = 8
    held_out: Annotated[
        float, Meta(ge=0, lt=1, description="share of the problems whose pairs are held out for evaluation")
    ] = 0.2
    eval_every: Annotated[int, Meta(ge=1, description="steps between evaluations on the held-out pairs")] = 20
    schedule: Annotated[Schedule, Meta(description="schedule of the learning rate after warm-up")] = "linear"
    save_every: Annotated[int, Meta(ge=0, description="steps between checkpoints; 0 = only at the end")] = 20


class DistillOptions(LocalOptions, frozen=True, kw_only=True):
    teacher: Annotated[
        str, doc("Hugging Face folder, .gguf file or smollm2; with --teacher_address, the model's name there")
    ]
    teacher_address: Annotated[
        str | None, doc("address of a server that has the teacher, such as http://gpu:8000/v1")
    ] = None
    teacher_type: Annotated[str, doc("kind of that server: vllm, sglang, openai, …")] = "vllm"
    by: Annotated[
        Literal["logprobs", "texts"],
        doc(
            "logprobs: the student samples, the teacher scores its tokens (on-policy); texts: the teacher answers, "
            "correct answers are trained on (SFT)"
        ),
    ] = "logprobs"
    benchmark: Annotated[str | None, doc("benchmark whose problems are asked: its prompt, grader and split")] = (
        None
    )
    split: Annotated[str, doc("split of the benchmark")] = "train"
    training_data: Annotated[
        str | None, doc("JSONL file of problems instead of the benchmark's, with the fields that the prompt needs")
    ] = None


class DistillKeys(PromptKeys, frozen=True, kw_only=True):
    """`++` keys of `ns distill`."""

    batch_size: Annotated[int, Meta(ge=1, description="prompts per step (by=texts: sequences)")] = 8
    samples: Annotated[int, Meta(ge=1, description="samples per prompt (by=texts: the teacher's answers)")] = 4
    max_tokens: Annotated[int, Meta(ge=1, description="longest sample in tokens")] = 256
    temperature: Annotated[float, Meta(ge=0, description="temperature of the teacher's answers (by=texts)")] = 0.7
    per_problem: Annotated[int, Meta(ge=1, description="most correct answers of one problem (by=texts)")] = 2
    eval_type: Annotated[str | None, Meta(description="another grader than the benchmark's (by=texts)")] = None
    eval_config: Annotated[dict[str, Any], Meta(description="settings of the grader (by=texts)")] = msgspec.field(
        default_factory=dict
    )
    max_retries: Annotated[int, Meta(ge=0, description="retries of a request to the teacher")] = 3
    api_key_env_var: Annotated[
        str | None, Meta(description="environment variable with the key of the teacher's server")
    ] = None
    schedule: Annotated[Schedule, Meta(description="schedule of the learning rate after warm-up")] = "linear"
    save_every: Annotated[int, Meta(ge=0, description="steps between checkpoints; 0 = only at the end")] = 20
