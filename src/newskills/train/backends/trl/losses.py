# SPDX-License-Identifier: Apache-2.0
"""Losses of TRL's GRPO by name, and the other terms that are added to a loss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from newskills.base.errors import ConfigError
from newskills.train.backends.trl.settings import TrlSettings
from newskills.train.loops.grpo import GrpoConfig

PAPERS: Mapping[str, str] = {
    "grpo": "mean over the tokens of a sample, then over samples (https://arxiv.org/abs/2402.03300)",
    "dr_grpo": "sum over tokens / a constant, advantages not divided by the deviation (https://arxiv.org/abs/2503.20783)",
    "dapo": "mean over all tokens of a step (https://arxiv.org/abs/2503.14476)",
    "bnpo": "mean over the tokens of each part of a step",
    "gspo": "one clipped ratio per sample (https://arxiv.org/abs/2507.18071)",
    "cispo": "clipped weights instead of clipped ratios (https://arxiv.org/abs/2506.13585)",
    "sapo": "soft gates instead of clipping (https://arxiv.org/abs/2511.20347)",
    "luspo": "sums over tokens with one ratio per sample (https://arxiv.org/abs/2602.05261)",
    "vespo": "a gamma-shaped weight of the sample's ratio (https://arxiv.org/abs/2602.10693)",
    "masked": "as dapo; tokens that trainer and sampler rate too differently are left out (IcePop)",
}
"""What each loss is."""
CLIP_MAX, CLIP_MIN = 5.0, 0.5
"""Ratios of trainer to sampler outside of which `masked` leaves out a token."""
USUAL_CAP = 5.0
"""Largest weight of CISPO where `++importance_cap=0` names none."""


def loss_arguments(trl: TrlSettings, config: GrpoConfig) -> dict[str, Any]:
    """Return the arguments of GRPOConfig for the loss that `trl` names, laid over those of the other settings.

    Raises ConfigError for a loss that needs vLLM's log-probabilities.
    """
    extra: dict[str, Any] = {"entropy_coef": trl.entropy_bonus} if trl.entropy_bonus else {}
    name = trl.loss
    if name == "token_mean":
        return extra
    extra |= {"loss_type": name, "importance_sampling_level": "token"}
    if name == "gspo":
        extra |= {"loss_type": "grpo", "importance_sampling_level": "sequence"}
    elif name == "luspo":
        extra["importance_sampling_level"] = "sequence"
    elif name == "dr_grpo":
        extra["scale_rewards"] = "none"
    elif name == "cispo":
        extra["epsilon_high"] = config.importance_cap or USUAL_CAP
    elif name == "masked":
        if not trl.sampler.startswith("vllm"):
            raise ConfigError(
                "++trainer.trl.loss=masked compares trainer and sampler, which are the same for "
                f"++trainer.trl.sampler={trl.sampler}.",
                hint="Use it with ++trainer.trl.sampler=vllm or vllm_server, or ++trainer.trl.loss=dapo.",
            )
        extra |= {
            "loss_type": "dapo",
            "vllm_importance_sampling_correction": True,
            "vllm_importance_sampling_mode": "token_mask",
            "vllm_importance_sampling_clip_max": CLIP_MAX,
            "vllm_importance_sampling_clip_min": CLIP_MIN,
        }
    return extra


def check_loss(trl: TrlSettings, what: str) -> None:
    """Raise ConfigError for a loss or an entropy bonus with `what`, which does not have them."""
    if trl.loss != "token_mean":
        raise ConfigError(f"++trainer.trl.loss={trl.loss} does not go with {what}.", hint="Leave one of them out.")
    if trl.entropy_bonus:
        raise ConfigError(f"++trainer.trl.entropy_bonus does not go with {what}.", hint="Leave one of them out.")
