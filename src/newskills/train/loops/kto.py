# SPDX-License-Identifier: Apache-2.0
"""Kahneman–Tversky optimisation (https://arxiv.org/abs/2402.01306): replies that are good or bad, each on its own.

Unlike DPO it needs no two replies to one prompt. With r = β · (log p − log p_ref) of a reply, and z the divergence
from the reference over replies to other prompts of the batch, the loss of a good reply is w_good · (1 − σ(r − β·z)), of
a bad one w_bad · (1 − σ(β·z − r)).
"""

from __future__ import annotations

from msgspec import Struct

from newskills.train.loops.stepping import adam_at
from newskills.train.settings import Schedule
from newskills.train.verbs import AdamParams, Datum


class LabelledReply(Struct, frozen=True, kw_only=True):
    """`reply`: weights are 1 on its tokens and 0 on the prompt. `good`: whether it is to become likelier."""

    reply: Datum
    good: bool


class KtoConfig(Struct, frozen=True, kw_only=True):
    """steps of batch_size replies; good_weight and bad_weight: what a reply of each kind counts."""

    steps: int
    batch_size: int = 16
    beta: float = 0.1
    good_weight: float = 1.0
    bad_weight: float = 1.0
    learning_rate: float = 5e-5
    schedule: Schedule = "linear"
    warmup_steps: int = 0
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    save_every: int = 20
    seed: int = 0

    def adam(self, step: int) -> AdamParams:
        return adam_at(self, step)
