# SPDX-License-Identifier: Apache-2.0
"""Megatron-LM (https://github.com/NVIDIA/Megatron-LM): arguments of `pretrain_gpt.py` and its neighbours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from newskills.base.errors import ConfigError
from newskills.train.pipelines.common import TrainerRun

ROOT = "/opt/Megatron-LM"
ENTRYPOINTS = ("pretrain_gpt.py", "pretrain_mamba.py")
STOPPED = "exiting program after"
"""What its loop prints where the time limit or a signal stops it."""


class MegatronLm(Struct, frozen=True, kw_only=True):
    """A training with Megatron-LM. `Run.model` is a Megatron checkpoint."""

    run: TrainerRun
    tokenizer: str
    data: str
    entrypoint: str = ENTRYPOINTS[0]

    def arguments(self) -> list[str]:
        """Return everything behind the entry point; what the user adds comes later, and the last one counts."""
        run = self.run
        words = [
            f"--pretrained-checkpoint={run.model}",
            f"--load={run.checkpoints}",
            f"--save={run.checkpoints}",
            "--tokenizer-type=HuggingFaceTokenizer",
            f"--tokenizer-model={self.tokenizer}",
            f"--per-split-data-args-path={self.data}",
            f"--data-cache-path={run.output_dir}/data-cache",
            f"--tensorboard-dir={run.output_dir}/tensorboard",
            f"--tensor-model-parallel-size={run.gpus}",
            "--exit-signal-handler",
        ]
        if run.save_by is not None:
            words.append(f"--exit-duration-in-mins={max(1, run.save_by // 60)}")
        if run.wandb is not None:
            words += [
                f"--wandb-project={run.wandb.project}",
                f"--wandb-exp-name={run.wandb.name}",
                f"--wandb-save-dir={run.output_dir}/wandb",
            ]
        return words


def from_keys(overrides: Mapping[str, str]) -> list[str]:
    """Convert `++lr=1e-5 ++bf16=true` → `--lr=1e-5 --bf16`. Raises ConfigError for a nested key."""
    words = []
    for key, value in overrides.items():
        if "." in key:
            raise ConfigError(f"++{key}: Megatron-LM's arguments are not nested.")
        option = f"--{key.replace('_', '-')}"
        if value.lower() == "true":
            words.append(option)
        elif value.lower() != "false":
            words.append(f"{option}={value}")
    return words


def check_entrypoint(name: str) -> None:
    """Raise ConfigError for anything but a Python file of Megatron-LM's or an absolute path."""
    if not name.endswith(".py") or (name.startswith(("-", ".")) or "\0" in name):
        raise ConfigError(f"--entrypoint={name}: expected {' or '.join(ENTRYPOINTS)}.")


def extra_arguments(words: Sequence[str], overrides: Mapping[str, str]) -> list[str]:
    """Return what the user adds, as words behind `--` and as `++` keys."""
    return [*words, *from_keys(overrides)]
