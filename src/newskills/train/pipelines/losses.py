# SPDX-License-Identifier: Apache-2.0
"""Losses of reinforcement learning by name, in the keys of verl and NeMo-RL; those that one of them lacks are refused.

The values of the papers stand in both projects' own examples; a user's `++` keys come later and win.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from newskills.base.errors import ConfigError
from newskills.base.records import Row

Loss = Literal["grpo", "dr_grpo", "dapo", "gspo", "cispo", "sapo", "masked"]
ACTOR = "actor_rollout_ref.actor"
SAMPLES = 8
"""Answers to a problem with verl, whose own number is one."""
MASK_MIN, MASK_MAX = 0.5, 5.0
"""Ratios of trainer to sampler outside of which `masked` leaves out a token (IcePop)."""

_VERL: Mapping[str, Mapping[str, object]] = {
    "grpo": {f"{ACTOR}.loss_agg_mode": "seq-mean-token-mean"},
    "dr_grpo": {f"{ACTOR}.loss_agg_mode": "seq-mean-token-sum-norm", "algorithm.norm_adv_by_std_in_grpo": False},
    "dapo": {f"{ACTOR}.loss_agg_mode": "token-mean", f"{ACTOR}.clip_ratio_high": 0.28},
    "gspo": {
        f"{ACTOR}.policy_loss.loss_mode": "gspo",
        f"{ACTOR}.loss_agg_mode": "seq-mean-token-mean",
        f"{ACTOR}.clip_ratio_low": 3e-4,
        f"{ACTOR}.clip_ratio_high": 4e-4,
        f"{ACTOR}.clip_ratio_c": 10.0,
    },
    "cispo": {
        f"{ACTOR}.policy_loss.loss_mode": "cispo",
        f"{ACTOR}.clip_ratio_low": 10,
        f"{ACTOR}.clip_ratio_high": 0.2,
    },
    "sapo": {f"{ACTOR}.policy_loss.loss_mode": "sapo"},
    "masked": {
        f"{ACTOR}.loss_agg_mode": "token-mean",
        "algorithm.rollout_correction.rollout_is": "token",
        "algorithm.rollout_correction.rollout_is_threshold": f"'{MASK_MIN}_{MASK_MAX}'",
    },
}
_NEMO_RL: Mapping[str, Row] = {
    "grpo": {"token_level_loss": False},
    "dapo": {"token_level_loss": True, "ratio_clip_max": 0.28},
    "gspo": {
        "token_level_loss": False,
        "sequence_level_importance_ratios": True,
        "ratio_clip_min": 3e-4,
        "ratio_clip_max": 4e-4,
    },
    "cispo": {"token_level_loss": True, "use_cispo": True, "ratio_clip_max": 5.0},
    "masked": {
        "token_level_loss": True,
        "use_importance_sampling_correction": True,
        "truncated_importance_sampling_type": "icepop",
        "truncated_importance_sampling_ratio": MASK_MAX,
        "truncated_importance_sampling_ratio_min": MASK_MIN,
    },
}


def verl_loss(name: str | None, entropy: float) -> dict[str, object]:
    """Return verl's overrides for the loss, with advantages of groups, and for the entropy bonus."""
    values: dict[str, object] = {f"{ACTOR}.entropy_coeff": entropy} if entropy else {}
    if name is None:
        return values
    groups = {"algorithm.adv_estimator": "grpo", "actor_rollout_ref.rollout.n": SAMPLES}
    return {**groups, **_VERL[name], **values}


def nemo_rl_loss(name: str | None, entropy: float) -> Row:
    """Return NeMo-RL's keys below `loss_fn`. Raises ConfigError for a loss or an entropy bonus, which it lacks."""
    if entropy:
        raise ConfigError(
            "NeMo-RL has no entropy bonus.", hint="Leave out --entropy_bonus, or use ns verl ppo or --backend=trl."
        )
    if name is None:
        return {}
    if name not in _NEMO_RL:
        raise ConfigError(
            f"NeMo-RL has no loss {name}; it has {', '.join(_NEMO_RL)}.",
            hint=f"ns verl ppo --loss={name}, or ns grpo --backend=trl ++trainer.trl.loss={name}.",
        )
    return dict(_NEMO_RL[name])
