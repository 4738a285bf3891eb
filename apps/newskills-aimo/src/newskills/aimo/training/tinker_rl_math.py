# SPDX-License-Identifier: Apache-2.0
"""`python src/newskills/aimo/training/tinker_rl_math.py key=value …` is `ns tinker rl key=value …`; and from Python."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError
from newskills.cli import main
from newskills_aimo.recipe.answers import extract_boxed_answer, verify_answer


class MathRLConfig(Struct, frozen=True, kw_only=True):
    """Settings of `ns tinker rl`; None = chosen by model."""

    model_name: str = "Qwen/Qwen2.5-14B"
    lora_rank: int = 64
    batch_size: int = 64
    group_size: int = 16
    learning_rate: float | None = None
    max_tokens: int = 4096
    dataset_name: str = "AI-MO/NuminaMath-CoT"
    dataset_split: str = "train"
    max_samples: int | None = None
    correct_reward: float = 1.0
    incorrect_reward: float = -0.5
    format_bonus: float = 0.1
    num_epochs: int = 1
    save_every: int = 100
    eval_every: int = 0
    log_dir: str = "./outputs/tinker_rl_math"
    temperature: float = 0.7
    top_p: float = 0.95
    resume_from: str | None = None
    wandb_project: str | None = None
    wandb_name: str | None = None
    verbose: bool = False
    save_samples: bool = False


def compute_reward(response: str, ground_truth: str, config: MathRLConfig) -> float | None:
    """Return the reward of a response: only an answer in a box is right. None where the grader cannot tell.

    >>> compute_reward(r"So \\boxed{0.5}.", r"It is \\boxed{\\frac12}.", MathRLConfig())
    1.1
    """
    if extract_boxed_answer(response) is None:
        return config.incorrect_reward
    right = verify_answer(response, ground_truth)
    if right is None:
        return None
    reward = config.correct_reward if right else config.incorrect_reward
    return config.format_bonus + reward


def train_math_rl(config: MathRLConfig) -> None:
    """Train at a Tinker service; the same call resumes. Raises ConfigError where the training did not end."""
    run_recipe("tinker_rl", msgspec.structs.asdict(config))


def run_recipe(name: str, keys: Mapping[str, Any]) -> None:
    """Run `ns NAME key=value …`, without the keys that are None. Raises ConfigError where that fails."""
    words = [f"{key}={_format_value(value)}" for key, value in keys.items() if value is not None]
    if code := main([name, *words]):
        raise ConfigError(f"The training ended with code {code}.", hint="The same call resumes from there.")


def _format_value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


if __name__ == "__main__":
    sys.exit(main(["tinker_rl", *sys.argv[1:]]))
