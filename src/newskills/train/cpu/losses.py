# SPDX-License-Identifier: Apache-2.0
"""Log-probabilities of targets without keeping a float32 row of the vocabulary for each, and the losses over them."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from newskills.train.verbs import LossConfig, LossName

CHUNK = 256
"""Rows of logits that are worked on at once."""


class _TargetLogprobs(torch.autograd.Function):
    """Backward computes the logits once more, chunk by chunk, instead of keeping them."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, head: Tensor, targets: Tensor) -> Tensor:
        found, sums = [], []
        for rows, aims in zip(hidden.split(CHUNK), targets.split(CHUNK), strict=True):
            logits = F.linear(rows, head).float()
            sums.append(logits.logsumexp(-1))
            found.append(logits.gather(1, aims[:, None]).squeeze(1) - sums[-1])
        ctx.save_for_backward(hidden, head, targets, torch.cat(sums))
        return torch.cat(found)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        hidden, head, targets, sums = ctx.saved_tensors
        back = torch.empty_like(hidden)
        for start in range(0, len(hidden), CHUNK):
            part = slice(start, start + CHUNK)
            logits = F.linear(hidden[part], head).float()
            slope = logits.sub_(sums[part, None]).exp_().mul_(-gradients[0][part, None])
            slope.scatter_add_(1, targets[part, None], gradients[0][part, None])
            back[part] = slope.to(head.dtype) @ head
        return back, None, None


def target_logprobs(hidden: Tensor, head: Tensor, targets: Tensor) -> Tensor:
    """hidden [M, D], frozen head [V, D], targets [M] → log-probabilities [M] in float32."""
    found: Tensor = _TargetLogprobs.apply(hidden, head, targets)  # type: ignore[no-untyped-call]
    return found


def loss_of(name: LossName, logprobs: Tensor, inputs: dict[str, Tensor], config: LossConfig) -> Tensor:
    """The sum over tokens [M] that is to become smaller.

    cross_entropy        -Σ weight · log p
    importance_sampling  -Σ p / q · advantage
    ppo                  -Σ min(p / q · advantage, clip(p / q) · advantage)
    cispo                -Σ clip(p / q), held fixed, · log p · advantage
    """
    if name == "cross_entropy":
        return -(inputs["weights"] * logprobs).sum()
    ratio, advantages = (logprobs - inputs["logprobs"]).exp(), inputs["advantages"]
    plain = ratio * advantages
    if name == "importance_sampling":
        return -plain.sum()
    clipped = ratio.clamp(*config.bounds(name))
    if name == "cispo":
        return -(clipped.detach() * logprobs * advantages).sum()
    return -torch.minimum(plain, clipped * advantages).sum()
