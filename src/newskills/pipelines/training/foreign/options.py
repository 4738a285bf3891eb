# SPDX-License-Identifier: Apache-2.0
"""Options of commands that train on clusters with the trainers of others; light, since `--help` loads them."""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar, cast

from msgspec import NODEFAULT, Meta, Struct, defstruct, field
from msgspec.structs import fields

from newskills.pipelines.options import AtLeastOne, PlacementOptions, doc
from newskills.train.pipelines.losses import Loss
from newskills.train.pipelines.nemo_rl import ROOT
from newskills.train.pipelines.verl import MODULE

TRAINING = {"group": "training"}
MODEL = {"group": "the final model"}
JUDGES = {"group": "judge servers"}
REPORT = {"group": "Weights & Biases"}


class TrainingOptions(PlacementOptions, frozen=True, kw_only=True):
    """What all trainers on clusters take."""

    output_dir: Annotated[
        str | None,
        doc("folder for checkpoints, logs and final_hf_model (default: results/EXPNAME, printed)", TRAINING),
    ] = None
    num_nodes: Annotated[AtLeastOne, doc("nodes", TRAINING)] = 1
    num_gpus: Annotated[
        AtLeastOne | None, doc("GPUs per node (default: all GPUs of the cluster's nodes)", TRAINING)
    ] = None
    container: Annotated[
        str | None, doc("container image of the trainer: a name of the cluster config or an image reference")
    ] = None
    wandb_project: Annotated[str, doc("project of the run", REPORT)] = "nemo-skills"
    wandb_group: Annotated[str | None, doc("group of the run", REPORT)] = None
    disable_wandb: Annotated[
        bool, doc("do not log to Weights & Biases (also the case without WANDB_API_KEY)", REPORT)
    ] = False


class RayOptions(TrainingOptions, frozen=True, kw_only=True):
    """What trainers on Ray take."""

    backend: Annotated[
        Literal["fsdp", "megatron"] | None,
        doc(
            "training backend that splits the model (default: fsdp; megatron above 20 billion parameters)",
            TRAINING,
        ),
    ] = None
    max_length: Annotated[
        AtLeastOne | None,
        doc(
            "longest sequence in tokens, prompt and answer (default: the model's context, at most 4096)", TRAINING
        ),
    ] = None
    lora_rank: Annotated[
        AtLeastOne | None,
        doc("train LoRA pairs of this rank instead of all weights (fsdp); they are merged at the end", TRAINING),
    ] = None
    ray_template: Annotated[
        str | None,
        doc("program that starts Ray around a command, with the arguments of newskills.launch.ray_node", TRAINING),
    ] = None


class NemoRlOptions(RayOptions, frozen=True, kw_only=True):
    """What `ns nemo_rl sft` and `ns nemo_rl grpo` share."""

    model: Annotated[str, doc("model to start from: a Hugging Face folder or name")]
    training_data: Annotated[str | None, doc("JSONL file to train on")] = None
    validation_data: Annotated[str | None, doc("JSONL file of the same format to validate on")] = None
    data_format: Annotated[
        str | None,
        doc("format of the rows, if the file does not exist yet (default: read from its first line)", TRAINING),
    ] = None
    config: Annotated[str | None, doc("another NeMo-RL YAML to start from", TRAINING)] = None
    nemo_rl_path: Annotated[str, doc("folder of NeMo-RL in the container", TRAINING)] = ROOT
    profile_step_range: Annotated[
        str | None, doc("steps A:B to profile with nsys, from 1, B excluded", TRAINING)
    ] = None
    final_hf_path: Annotated[
        str | None, doc("folder for the final model (default: OUTPUT_DIR/final_hf_model)", MODEL)
    ] = None
    conversion_step: Annotated[str, doc("step that becomes the final model: last, or a number", MODEL)] = "last"
    average_steps: Annotated[str | None, doc("steps to average into the final model, comma separated", MODEL)] = (
        None
    )
    remove_checkpoints_after_average: Annotated[
        bool, doc("remove the checkpoints of these steps after averaging", MODEL)
    ] = False
    run_conversion_only: Annotated[
        bool, doc("no training: only convert the checkpoints to the final model", MODEL)
    ] = False
    max_position_embeddings: Annotated[
        AtLeastOne | None, doc("value to write into the model's config.json", MODEL)
    ] = None


PromptConfig = Annotated[
    str, doc("prompt for rows {problem, expected_answer}: the same as in evaluations", TRAINING)
]


LossOption = Annotated[
    Loss | None,
    doc(
        "loss by name, with the values of its paper; ++ keys win (default: the trainer's configuration)", TRAINING
    ),
]
EntropyBonus = Annotated[
    float, Meta(ge=0), doc("weight of the mean entropy of a token, which is rewarded (verl)", TRAINING)
]


class RewardServices(Struct, frozen=True, kw_only=True):
    """What runs beside a trainer and helps to reward: options of all that train by rewards."""

    server_model: Annotated[str | None, doc("name or path of the judge", JUDGES)] = None
    server_address: Annotated[str | None, doc("address of a running judge", JUDGES)] = None
    server_type: Annotated[str | None, doc("engine of the judge: vllm, sglang, trtllm, …", JUDGES)] = None
    server_gpus: Annotated[int | None, doc("GPUs per node of each server", JUDGES)] = None
    server_nodes: Annotated[AtLeastOne, doc("nodes of each server", JUDGES)] = 1
    n_servers: Annotated[AtLeastOne, doc("number of independent servers", JUDGES)] = 1
    server_args: Annotated[str, doc("more arguments for the engine, passed on unchanged", JUDGES)] = ""
    server_entrypoint: Annotated[str | None, doc("another start command for the engine", JUDGES)] = None
    server_container: Annotated[str | None, doc("container image of the servers", JUDGES)] = None
    with_sandbox: Annotated[bool, doc("run a sandbox beside the trainer", TRAINING)] = False
    sandbox_env_overrides: Annotated[list[str], doc("KEY=VALUE settings of the sandbox", TRAINING)] = []


OptionsT = TypeVar("OptionsT", bound=TrainingOptions)


def with_reward_services(options: type[OptionsT]) -> type[OptionsT]:
    """Return a class of the same name that has the fields of `RewardServices`, too: structs have one parent only."""
    fields_of_services = [
        (
            entry.name,
            entry.type,
            entry.default if entry.default_factory is NODEFAULT else field(default_factory=list),
        )
        for entry in fields(RewardServices)
    ]
    name, module = options.__name__, options.__module__
    namespace = {"__doc__": options.__doc__}
    made = defstruct(
        name, fields_of_services, bases=(options,), module=module, namespace=namespace, frozen=True, kw_only=True
    )
    return cast("type[OptionsT]", made)


def reward_services(options: TrainingOptions) -> RewardServices:
    """Return the reward services that `options` describe; the defaults where their class has none of these fields."""
    services = {
        name: getattr(options, name) for name in RewardServices.__struct_fields__ if hasattr(options, name)
    }
    return RewardServices(**services)


@with_reward_services
class GrpoNemoRlOptions(NemoRlOptions, frozen=True, kw_only=True):
    """What `ns nemo_rl grpo` takes: what all trainings with NeMo-RL do, and what runs beside it."""

    prompt_config: PromptConfig = "generic/math"
    loss: LossOption = None
    entropy_bonus: EntropyBonus = 0.0


@with_reward_services
class PpoVerlOptions(RayOptions, frozen=True, kw_only=True):
    """What `ns verl ppo` takes."""

    model: Annotated[str, doc("model to start from: a Hugging Face folder or name")]
    prompt_data: Annotated[
        str, doc("rows in verl's format (Parquet, JSONL), or JSONL of {problem, expected_answer}")
    ]
    eval_data: Annotated[str | None, doc("validation rows, in the same format")] = None
    data_format: Annotated[
        str | None,
        doc("verl or plain, if the file does not exist yet (default: read from its first line)", TRAINING),
    ] = None
    prompt_config: PromptConfig = "generic/math"
    loss: LossOption = None
    entropy_bonus: EntropyBonus = 0.0
    tools: Annotated[
        str | None,
        doc("tools that the model may call: verl's YAML of tools, or a Python file with its functions", TRAINING),
    ] = None
    staleness: Annotated[
        float | None,
        doc(
            "asynchronous rollouts: largest share of samples that an older model may have made, such as 0.1",
            TRAINING,
        ),
    ] = None
    rollout_gpus: Annotated[
        AtLeastOne, doc("GPUs of each node that sample, with --staleness; the others learn", TRAINING)
    ] = 1
    script_module: Annotated[str, doc("training module", TRAINING)] = MODULE
    verl_config_dir: Annotated[str | None, doc("folder with another Hydra configuration", TRAINING)] = None
    verl_config_name: Annotated[str | None, doc("name of that configuration", TRAINING)] = None
    final_ckpt_path: Annotated[
        str | None, doc("folder for the final model (default: OUTPUT_DIR/final_hf_model)", MODEL)
    ] = None
    convert_last_ckpt_to_hf: Annotated[
        bool, doc("convert the last checkpoint to a Hugging Face folder", MODEL)
    ] = True


class MegatronLmOptions(TrainingOptions, frozen=True, kw_only=True):
    """What `ns megatron_lm train` takes."""

    arguments: Annotated[list[str], doc("more arguments for Megatron-LM, after --", {"positional": True})] = []  # noqa: RUF012 - copied
    megatron_model: Annotated[str, doc("Megatron-LM checkpoint to start from")]
    tokenizer_model: Annotated[str, doc("Hugging Face folder or name with the tokenizer")]
    per_split_data_path: Annotated[
        str, doc("JSON file that names the data of each split (--per-split-data-args-path)")
    ]
    entrypoint: Annotated[str, doc("pretrain_gpt.py, pretrain_mamba.py, or a path", TRAINING)] = "pretrain_gpt.py"
    init_cmd: Annotated[str | None, doc("shell text to run before it, on each node", TRAINING)] = None
    megatron_path: Annotated[
        str | None,
        doc("folder of Megatron-LM in the container (default: MEGATRON_PATH or /opt/Megatron-LM)", TRAINING),
    ] = None
