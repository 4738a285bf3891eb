# SPDX-License-Identifier: Apache-2.0
"""`python src/newskills/aimo/training/tinker_sft_math.py key=value …` is `ns tinker sft …`; and from Python."""

from __future__ import annotations

import sys
from typing import Literal

import msgspec
from msgspec import Struct

from newskills.aimo.training.tinker_rl_math import MathRLConfig, run_recipe, train_math_rl
from newskills.cli import main


class MathSFTConfig(Struct, frozen=True, kw_only=True):
    """Settings of `ns tinker sft`; None = chosen by the stage, or by model."""

    model_name: str = "Qwen/Qwen2.5-14B"
    lora_rank: int = 64
    stage: Literal["cot", "tir"] = "cot"
    batch_size: int | None = None
    learning_rate: float | None = None
    max_tokens: int | None = None
    num_epochs: int | None = None
    dataset_name: str | None = None
    dataset_split: str = "train"
    max_samples: int | None = None
    save_every: int | None = None
    log_dir: str = "./outputs/tinker_sft_math"
    resume_from: str | None = None


async def train_math_sft(config: MathSFTConfig) -> None:
    """Fine-tune at a Tinker service; the same call resumes. Raises ConfigError where the training did not end."""
    keys = msgspec.structs.asdict(config)
    run_recipe("tinker_sft", {"kind": keys.pop("stage"), "max_length": keys.pop("max_tokens"), **keys})


async def train_full_pipeline(
    base_model: str = "Qwen/Qwen2.5-14B", output_base: str = "./outputs", max_samples: int | None = None
) -> None:
    """Fine-tune on solutions in words, then with code, then train on rewards; each starts from the one before."""
    cot, tir, rl = (f"{output_base}/{name}" for name in ("sft_cot", "sft_tir", "rl_math"))
    await train_math_sft(MathSFTConfig(model_name=base_model, stage="cot", log_dir=cot, max_samples=max_samples))
    await train_math_sft(
        MathSFTConfig(model_name=base_model, stage="tir", log_dir=tir, max_samples=max_samples, resume_from=cot)
    )
    train_math_rl(MathRLConfig(model_name=base_model, log_dir=rl, max_samples=max_samples, resume_from=tir))


if __name__ == "__main__":
    sys.exit(main(["tinker_sft", *sys.argv[1:]]))
