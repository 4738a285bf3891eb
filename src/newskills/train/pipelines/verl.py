# SPDX-License-Identifier: Apache-2.0
"""verl (https://github.com/verl-project/verl, 0.9): overrides of its Hydra configuration `ppo_trainer`."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from newskills.train.pipelines.common import TrainerRun
from newskills.train.pipelines.inside import DEADLINE, PYTHON
from newskills.train.pipelines.losses import verl_loss
from newskills.train.pipelines.verl_saving import CALLBACK, EXPIRES

MODULE = "verl.trainer.main_ppo"
ASYNC_MODULE = "verl.experimental.fully_async_policy.fully_async_main"
"""Its trainer whose samples come from GPUs of their own, while others learn."""
PREFIX = "global_step_"
"""Beginning of the names of its checkpoints."""
PAIRS = "lora_adapter"
"""Folder with LoRA pairs in what its converter writes, beside the weights that they were trained on."""
REWARD = "pkg://newskills.train.pipelines.verl_reward"
LENGTH = 4096
"""Tokens of prompt and answer where nobody chose and the model can see as many."""
MICRO_TOKENS = 16384
"""`ppo_max_token_len_per_gpu` of its actor; the critic's is twice that."""

LOGIT_BYTES = 2 + 2
"""Of a logit in bfloat16 with its gradient."""


class Verl(Struct, frozen=True, kw_only=True):
    """A training with verl's PPO loop.

    graded  the rows are ours, and so is the reward
    prompt, answer  tokens of them at most
    tools   file of tools that the model may call: YAML of stateful ones, or Python with functions
    staleness, samplers  asynchronous rollouts: the largest share of samples of an older model, and GPUs of each node
                         that sample; None: the same GPUs sample and learn in turns
    loss, entropy  a loss by name, and the weight of the entropy bonus
    lora_rank      of LoRA pairs; None: all weights are trained
    """

    run: TrainerRun
    prompt_data: str
    eval_data: str | None = None
    backend: str = "fsdp"
    graded: bool = False
    prompt: int = 1024
    answer: int = 3072
    module: str = MODULE
    config_dir: str | None = None
    config_name: str | None = None
    tools: str | None = None
    staleness: float | None = None
    samplers: int = 1
    loss: str | None = None
    entropy: float = 0.0
    lora_rank: int | None = None

    @property
    def saves_in_time(self) -> bool:
        """Whether our callback decides when verl saves; its asynchronous trainer minds the time limit itself."""
        return self.staleness is None and self.module == MODULE

    @property
    def tensor_parallel(self) -> int:
        """GPUs that hold a copy of the model which samples: two as in verl, or one where they do not go by pairs."""
        sampling = self.run.gpus if self.staleness is None else self.samplers
        if sampling % 2 == 0:
            return 2
        return 1

    def words(self) -> list[str]:
        """Return the words of the trainer and our overrides; what the user adds goes behind them."""
        asynchronous = self.staleness is not None and self.module == MODULE
        words = [PYTHON, "-m", ASYNC_MODULE if asynchronous else self.module]
        if self.config_dir:
            words.append(f"--config-path={self.config_dir}")
        if self.config_name:
            words.append(f"--config-name={self.config_name}")
        return [*words, *self.overrides()]

    def overrides(self) -> list[str]:
        run = self.run
        loggers = ["console", "wandb"] if run.wandb is not None else ["console"]
        values: dict[str, object] = {
            "data.train_files": quote_value(self.prompt_data),
            "data.val_files": quote_value(self.eval_data or self.prompt_data),
            "data.max_prompt_length": self.prompt,
            "data.max_response_length": self.answer,
            "actor_rollout_ref.model.path": quote_value(run.model),
            "critic.model.path": quote_value(run.model),
            "actor_rollout_ref.rollout.name": "vllm",
            "actor_rollout_ref.rollout.tensor_model_parallel_size": self.tensor_parallel,
            "actor_rollout_ref.actor.use_dynamic_bsz": True,
            "critic.use_dynamic_bsz": True,
            "trainer.nnodes": run.nodes,
            "trainer.n_gpus_per_node": run.gpus,
            "trainer.default_local_dir": quote_value(run.checkpoints),
            "trainer.resume_mode": "auto",
            "trainer.save_freq": 10,
            "trainer.test_freq": 10 if self.eval_data else -1,
            "trainer.val_before_train": False,
            "trainer.project_name": quote_value(run.wandb.project if run.wandb else "newskills"),
            "trainer.experiment_name": quote_value(run.name),
            "trainer.logger": f"[{','.join(loggers)}]",
        }
        if self.prompt + self.answer > MICRO_TOKENS:  # a sequence has to fit into one micro-batch
            values |= {
                "actor_rollout_ref.actor.ppo_max_token_len_per_gpu": self.prompt + self.answer,
                "critic.ppo_max_token_len_per_gpu": 2 * (self.prompt + self.answer),
            }
        values |= verl_loss(self.loss, self.entropy)
        if self.lora_rank is not None:
            values |= {
                "actor_rollout_ref.model.lora_rank": self.lora_rank,
                "actor_rollout_ref.model.lora_alpha": 2 * self.lora_rank,
                "actor_rollout_ref.model.target_modules": "all-linear",
                "actor_rollout_ref.rollout.load_format": "safetensors",
            }
        if self.graded:
            values |= {
                "reward.custom_reward_function.path": quote_value(REWARD),
                "reward.custom_reward_function.name": "compute_score",
            }
        if self.tools is not None:
            if self.tools.endswith((".yaml", ".yml")):
                kind = "tool_config_path"
            else:
                kind = "function_tool_path"
            values |= {
                "actor_rollout_ref.rollout.multi_turn.enable": True,
                f"actor_rollout_ref.rollout.multi_turn.{kind}": quote_value(self.tools),
                "actor_rollout_ref.rollout.agent.default_agent_loop": "tool_agent",
            }
        if self.staleness is not None:
            values |= {
                "async_training.staleness_threshold": self.staleness,
                "actor_rollout_ref.hybrid_engine": False,
                "rollout.nnodes": run.nodes,
                "rollout.n_gpus_per_node": self.samplers,
                "trainer.n_gpus_per_node": run.gpus - self.samplers,
            }
        if self.saves_in_time:
            values["++trainer.checkpoint_callback_class"] = quote_value(CALLBACK)
        if run.save_by is not None:
            values[f"++ray_kwargs.ray_init.runtime_env.env_vars.{EXPIRES}"] = f"'{DEADLINE}'"
        engine = ["model_engine=megatron"] if self.backend == "megatron" else []
        return [*engine, *(f"{key}={value}" for key, value in values.items())]


def converter_words(backend: str) -> Sequence[str]:
    """Return the words that make a Hugging Face folder {target} of the checkpoint {checkpoint}."""
    merge = [PYTHON, "-m", "verl.model_merger", "merge", f"--backend={backend}"]
    return [*merge, "--local_dir", "{checkpoint}/actor", "--target_dir", "{target}"]


def quote_value(text: str) -> str:
    """Quote `text` as one value in Hydra's grammar, whatever is in it.

    https://hydra.cc/docs/advanced/override_grammar/basic/: in quotes, a backslash counts only before a quote.
    """
    escaped = ""
    for index, char in enumerate(text):
        if char == "'":
            escaped += "\\'"
        elif char == "\\" and text[index:].lstrip("\\")[:1] in ("'", ""):
            escaped += "\\\\"
        else:
            escaped += char
    return f"'{escaped}'"
