# SPDX-License-Identifier: Apache-2.0
"""NeMo-RL (https://github.com/NVIDIA-NeMo/RL, 0.5 or later): the YAML of a run, and the programs that read it.

The YAML names one of NeMo-RL's own as its parent (`defaults:`) and holds only what differs from that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from newskills.base.records import Row
from newskills.train.pipelines.common import TrainerRun, format_clock
from newskills.train.pipelines.inside import PYTHON
from newskills.train.pipelines.losses import nemo_rl_loss

PREFIX = "step_"
"""Beginning of the names of its checkpoints."""
ROOT = "/opt/nemo-rl"
"""Where NVIDIA's images have it."""
STOPPED = "Timeout has been reached, stopping training"
"""What its loops print after `checkpoint_must_save_by`."""
RAY_RESOURCES = '{"slurm_managed_ray_cluster": 1}'
"""Without this tag in the Ray cluster NeMo-RL starts one of its own on the first node (`init_ray`)."""
WEIGHTS = "policy/weights/model"
"""Below a checkpoint: safetensors, where its automodel backend has written them."""
PROFILED = "*policy*,*vllm*"
"""Ray workers that `nsys` watches (docs/nsys-profiling.md)."""
FOREVER = 100_000_000
LENGTH = 4096
"""Tokens of a sequence where nobody chose and the model can see as many."""
RATE, SFT_BATCH = 1e-6, 32
"""Learning rate at the end of a fine-tuning, and at its beginning where nobody chose; sequences of its steps."""
LOGIT_BYTES = 4 + 4
"""Of a logit in float32 with its gradient."""
ENVIRONMENT = "newskills"
"""Name of our grader in `env`; registered by PROGRAM."""
PROGRAM = "newskills.train.pipelines.nemo_rl_program"
NEEDS = "newskills.graders.worker"
"""What its Python must be able to import."""

Backend = Literal["fsdp", "megatron"]
Algorithm = Literal["sft", "grpo", "gym"]
PARENTS: Mapping[Algorithm, str] = {
    "sft": "examples/configs/sft.yaml",
    "grpo": "examples/configs/grpo_math_1B.yaml",
    "gym": "examples/nemo_gym/grpo_nanov3.yaml",
}
PROGRAMS: Mapping[Algorithm, str] = {
    "sft": "examples/run_sft.py",
    "grpo": "examples/run_grpo.py",
    "gym": "examples/nemo_gym/run_grpo_nemo_gym.py",
}


class NemoRl(Struct, frozen=True, kw_only=True):
    """A training with NeMo-RL.

    form    of the rows: messages, input_output, plain or gym
    length  tokens of a sequence, prompt and answer
    steps   updates of a fine-tuning, over which its learning rate falls; None: nobody knows, and it stays
    rate    learning rate of a fine-tuning
    tools   some rows offer tools, whose arguments differ from row to row
    parent  another YAML to start from
    loss, entropy  a loss by name, and the weight of the entropy bonus
    lora_rank      of LoRA pairs; None: all weights are trained
    """

    run: TrainerRun
    algorithm: Algorithm
    backend: Backend
    training_data: str
    validation_data: str | None = None
    form: str
    length: int = LENGTH
    steps: int | None = None
    rate: float = RATE
    tools: bool = False
    root: str = ROOT
    parent: str | None = None
    loss: str | None = None
    entropy: float = 0.0
    lora_rank: int | None = None

    @property
    def micro_batch_size(self) -> int:
        """Sequences at once on a GPU: NeMo-RL's own of a fine-tuning, ours of GRPO."""
        return 1 if self.algorithm == "sft" else 4

    def config(self) -> Row:
        """Return the configuration that is written for the trainer."""
        made: Row = {"defaults": self.parent or f"{self.root}/{PARENTS[self.algorithm]}"}
        if self.algorithm == "sft":
            parts = [self._sft(), _tokenizer_config(self.form), {"data": self._sft_data()}]
        elif self.algorithm == "grpo":
            recipe = _grpo_recipe(self.length, validated=self.validation_data is not None)
            parts = [recipe, {"data": self._grpo_data(), "env": ENV}]
        else:
            parts = [{"data": self._gym_data()}]
        if extra := nemo_rl_loss(self.loss, self.entropy):
            parts.append({"loss_fn": extra})
        for part in (*parts, self._machines(), self._backend()):
            made = merge_configs(made, part)
        return made

    def words(self) -> list[str]:
        """Return the words that start the trainer, up to `--config`, whose value follows."""
        options = ["-m", PROGRAM] if self.graded else []
        return [PYTHON, *options, self.program, "--config"]

    @property
    def program(self) -> str:
        """NeMo-RL's own program."""
        return f"{self.root}/{PROGRAMS[self.algorithm]}"

    @property
    def graded(self) -> bool:
        """Whether our grader rewards."""
        return self.algorithm == "grpo"

    def _machines(self) -> Row:
        run = self.run
        logger: Row = {"log_dir": f"{run.output_dir}/logs", "wandb_enabled": run.wandb is not None}
        if run.wandb is not None:
            logger["wandb"] = {"project": run.wandb.project, "name": run.wandb.name, "id": run.wandb.id}
            if run.wandb.group:
                logger["wandb"]["group"] = run.wandb.group
        checkpointing: Row = {"enabled": True, "checkpoint_dir": run.checkpoints}
        if run.save_by is not None:
            checkpointing["checkpoint_must_save_by"] = format_clock(run.save_by)
        return {
            "policy": {"model_name": run.model, "tokenizer": {"name": run.model}},
            "cluster": {"gpus_per_node": run.gpus, "num_nodes": run.nodes},
            "checkpointing": checkpointing,
            "logger": logger,
        }

    def _backend(self) -> Row:
        megatron = self.backend == "megatron"
        policy: Row = {"dtensor_cfg": {"enabled": not megatron}, "megatron_cfg": {"enabled": megatron}}
        if self.lora_rank is not None:
            pairs = {"enabled": True, "dim": self.lora_rank, "alpha": 2 * self.lora_rank}
            policy["dtensor_cfg"] |= {"_v2": True, "lora_cfg": pairs}
        if megatron:
            policy |= {"optimizer": None, "dynamic_batching": {"enabled": False}}
        return {"policy": policy}

    def _sft(self) -> Row:
        """Return the recipe for SFT, which ends with the data or the time limit, unless the user says how long it
        is."""
        decay, eps, low = 0.01, 1e-8, min(self.rate, RATE)
        policy: Row = {
            "max_total_sequence_length": self.length,
            "max_grad_norm": 0.0 if self.backend == "megatron" else None,
            "sequence_packing": {"enabled": True},
        }
        if self.backend == "megatron":
            policy["megatron_cfg"] = {
                "optimizer": {"lr": self.rate, "min_lr": low, "weight_decay": decay, "adam_eps": eps},
                "scheduler": {
                    "lr_decay_style": "constant" if self.steps is None else "cosine",
                    "lr_decay_iters": self.steps or "${sft.max_num_steps}",
                    "lr_warmup_iters": 0,
                    "lr_warmup_init": low,
                },
            }
        else:
            policy["optimizer"] = {"kwargs": {"lr": self.rate, "weight_decay": decay, "eps": eps}}
            if self.steps is not None:
                policy["scheduler"] = [
                    {
                        "name": "torch.optim.lr_scheduler.CosineAnnealingLR",
                        "kwargs": {"T_max": self.steps, "eta_min": low},
                    },
                    {"milestones": []},
                ]
        return {
            "sft": {"max_num_epochs": FOREVER, "max_num_steps": FOREVER, "val_period": 0, "val_at_start": False},
            "checkpointing": {"keep_top_k": 50, "save_period": 100, "metric_name": None},
            "policy": policy,
        }

    def _sft_data(self) -> Row:
        if self.form == "input_output":
            named: Row = {"dataset_name": "ResponseDataset", "input_key": "input", "output_key": "output"}
        else:
            named = {"dataset_name": "openai_format", "chat_key": "messages"}
        if self.tools:
            named |= {"tool_key": "tools", "use_preserving_dataset": True}
        return {
            **self._data_of(named, processor="sft_processor", workers=10),
            "add_bos": False,
            "add_eos": False,
            "add_generation_prompt": False,
        }

    def _grpo_data(self) -> Row:
        named = {"dataset_name": "ResponseDataset", "input_key": "problem", "output_key": "expected_answer"}
        made = self._data_of(named, processor="math_hf_data_processor", workers=1)
        made["default"]["env_name"] = ENVIRONMENT
        return {**made, "use_multiple_dataloader": False}

    def _data_of(self, named: Row, *, processor: str, workers: int) -> Row:
        if self.validation_data is None:
            validation = None
        else:
            validation = {"data_path": self.validation_data, **named}
        return {
            "_override_": True,
            "max_input_seq_length": "${policy.max_total_sequence_length}",
            "shuffle": True,
            "num_workers": workers,
            "train": {"data_path": self.training_data, **named},
            "validation": validation,
            "default": {"prompt_file": None, "system_prompt_file": None, "processor": processor},
        }

    def _gym_data(self) -> Row:
        validation = None if self.validation_data is None else {"data_path": self.validation_data}
        return {"train": {"data_path": self.training_data}, "validation": validation}


ENV: Row = {ENVIRONMENT: {"num_workers": 8, "eval_type": "math", "eval_config": {}}}


def _tokenizer_config(form: str) -> Row:
    """Return the template: `input` and `output` are texts as they are (none); conversations get the tokenizer's own."""
    return {"policy": {"tokenizer": {"chat_template": None if form == "input_output" else "default"}}}


def _grpo_recipe(length: int, *, validated: bool) -> Row:
    """Return the recipe for mathematics: 32 problems × 16 answers a step, a small KL term, clipping on both sides."""
    rate, decay = 1e-6, 0.01
    return {
        "grpo": {
            "num_prompts_per_step": 32,
            "num_generations_per_prompt": 16,
            "max_rollout_turns": 1,
            "max_num_epochs": 1,
            "max_num_steps": 1_000_000,
            "normalize_rewards": True,
            "use_leave_one_out_baseline": True,
            "val_period": 10 if validated else 0,
            "val_at_start": False,
            "seed": 42,
        },
        "loss_fn": {
            "reference_policy_kl_penalty": 0.01,
            "reference_policy_kl_type": "k3",
            "kl_input_clamp_value": 20.0,
            "kl_output_clamp_value": 10.0,
            "ratio_clip_min": 0.2,
            "ratio_clip_max": 0.2,
            "token_level_loss": True,
        },
        "checkpointing": {
            "keep_top_k": 50,
            "save_period": 10,
            "metric_name": "val:accuracy" if validated else None,
            "higher_is_better": True,
        },
        "policy": {
            "train_global_batch_size": 512,
            "train_micro_batch_size": 4,
            "max_total_sequence_length": length,
            "optimizer": {"kwargs": {"lr": rate, "weight_decay": decay}},
            "megatron_cfg": {"optimizer": {"lr": rate, "min_lr": rate, "weight_decay": decay}},
        },
    }


def converter_words(backend: Backend, root: str) -> list[str]:
    """Return the words that make a Hugging Face folder {target} of the checkpoint {checkpoint}."""
    name = "convert_megatron_to_hf.py" if backend == "megatron" else "convert_dcp_to_hf.py"
    weights = "{checkpoint}/policy/weights"
    if backend == "megatron":
        source = ["--megatron-ckpt-path", f"{weights}/iter_0000000"]
    else:
        source = ["--dcp-ckpt-path", weights]
    program = [PYTHON, f"{root}/examples/converters/{name}", "--config", "{checkpoint}/config.yaml"]
    return [*program, *source, "--hf-ckpt-path", "{target}"]


def merge_configs(base: Row, over: Mapping[str, Any]) -> Row:
    """Lay `over` over `base`, dictionary by dictionary."""
    made = dict(base)
    for key, value in over.items():
        old = made.get(key)
        if isinstance(old, dict) and isinstance(value, Mapping):
            made[key] = merge_configs(old, value)
        else:
            made[key] = value
    return made
