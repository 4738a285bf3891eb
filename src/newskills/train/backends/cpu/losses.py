# SPDX-License-Identifier: Apache-2.0
"""Log-probabilities of targets without keeping a row of the vocabulary for each, and the losses over them."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from newskills.train.verbs import BETA, LossConfig, LossName

CHUNK = 256
"""Rows of logits that are worked on at once."""


class _TargetLogprobs(torch.autograd.Function):
    """The slope of log p(target) is (1 - p) of the target's row of the head less the other rows, each by its share.

    Both are computed beside the logits, so that backward needs neither logits nor head.
    """

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, head: Tensor, targets: Tensor, temperature: float) -> Tensor:
        wanted = ctx.needs_input_grad[0]
        logprobs = torch.empty(len(hidden))
        slopes = torch.empty_like(hidden) if wanted else None
        for start in range(0, len(hidden), CHUNK):
            part = slice(start, start + CHUNK)
            aims = targets[part, None]
            logits = F.linear(hidden[part], head).float()
            if temperature != 1:
                logits /= temperature
            sums = logits.logsumexp(-1, keepdim=True)
            logprobs[part] = (logits.gather(1, aims) - sums).squeeze(1)
            if slopes is not None:
                shares = logits.sub_(sums).exp_()
                missing = 1 - shares.gather(1, aims)
                others = shares.scatter_(1, aims, 0.0).to(head.dtype) @ head
                slopes[part] = (missing * head[targets[part]]).to(head.dtype) - others
        if slopes is not None and temperature != 1:
            slopes /= temperature
        ctx.save_for_backward(slopes)
        return logprobs

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        (slopes,) = ctx.saved_tensors
        return (gradients[0][:, None] * slopes).to(slopes.dtype), None, None, None


def target_logprobs(hidden: Tensor, head: Tensor, targets: Tensor, temperature: float = 1.0) -> Tensor:
    """Compute the log-probabilities [M] in float32: hidden [M, D], frozen head [V, D], targets [M].

    Logits are divided by `temperature`, as they are where tokens are sampled.
    """
    logprobs: Tensor = _TargetLogprobs.apply(hidden, head, targets, temperature)  # type: ignore[no-untyped-call]
    return logprobs


def loss_of(name: LossName, logprobs: Tensor, inputs: dict[str, Tensor], config: LossConfig) -> Tensor:
    """Return the sum over tokens [M] that is to become smaller.

    cross_entropy        -Σ weight · log p
    importance_sampling  -Σ p / q · advantage
    ppo                  -Σ min(p / q · advantage, clip(p / q) · advantage)
    cispo                -Σ clip(p / q), held fixed, · log p · advantage
    dro                  -Σ log p · advantage − ½ beta · (log p − log q)²
    gspo                 as ppo, with s · p / p held fixed for p / q; s: the geometric mean of p / q over the targets of
                         the sequence that count in it
    """
    if name == "cross_entropy":
        return -(inputs["weights"] * logprobs).sum()
    gaps, advantages = logprobs - inputs["logprobs"], inputs["advantages"]
    if name == "dro":
        beta = BETA if config.beta is None else config.beta
        return -(logprobs * advantages - 0.5 * beta * gaps.square()).sum()
    ratio = (gaps if name != "gspo" else _of_sequence(gaps, inputs)).exp()
    plain = ratio * advantages
    if name == "importance_sampling":
        return -plain.sum()
    clipped = ratio.clamp(*config.bounds(name))
    if name == "cispo":
        return -(clipped.detach() * logprobs * advantages).sum()
    return -torch.minimum(plain, clipped * advantages).sum()


def _of_sequence(gaps: Tensor, inputs: dict[str, Tensor]) -> Tensor:
    """Return for each target the mean of its sequence, with the slope of its own."""
    numbers, counted = inputs["sequence"], (inputs["in_ratio"] != 0).float()
    empty = gaps.new_zeros(int(numbers.max()) + 1)
    sums = empty.index_add(0, numbers, gaps.detach() * counted)
    counts = empty.index_add(0, numbers, counted).clamp(min=1)
    return (sums / counts)[numbers] + gaps - gaps.detach()
