# SPDX-License-Identifier: Apache-2.0
"""Kahneman–Tversky optimisation (https://arxiv.org/abs/2402.01306): replies that are good or bad, each on its own.

Unlike DPO it needs no two replies to one prompt. With r = log p − log p_ref of a reply, and z the divergence from the
reference over replies to other prompts of the batch, the loss of a good reply is w_good · (1 − σ(β · (r − z))), of a
bad one w_bad · (1 − σ(β · (z − r))), and that of a batch the mean. z is a mean over the batch, at least 0, held fixed.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import ClassVar, NamedTuple

from msgspec import Struct

from newskills.base.errors import ConfigError, DataError
from newskills.train.loops.dpo import reply_logprobs, token_count
from newskills.train.loops.folder import TrainingLog
from newskills.train.loops.method import MethodSettings
from newskills.train.loops.schedule import batch_at
from newskills.train.loops.sft import example, prompt_and_reply, scaled
from newskills.train.loops.stepping import Hooks, TrainingSteps
from newskills.train.numbers import sigmoid
from newskills.train.settings import Schedule
from newskills.train.verbs import Datum, ReferenceClient, TrainingClient


class LabelledReply(Struct, frozen=True, kw_only=True):
    """`reply`: weights are 1 on its tokens and 0 on the prompt. `good`: whether it is to become likelier."""

    reply: Datum
    good: bool


class KtoConfig(MethodSettings, frozen=True, kw_only=True):
    """steps of batch_size replies; good_weight and bad_weight: what a reply of each kind counts."""

    name: ClassVar[str] = "kto"
    title: ClassVar[str] = "KTO"
    needs: ClassVar[type] = ReferenceClient

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

    def train(
        self, client: TrainingClient, data: Sequence[LabelledReply], folder: TrainingLog, hooks: Hooks
    ) -> bool:
        """Train on labelled replies, as `kto`."""
        return kto(client, data, self, folder, hooks)


class ReplyLoss(NamedTuple):
    """Of one reply: its loss, and the slope of the loss in log p."""

    loss: float
    slope: float


def reply_loss(ratio: float, divergence: float, config: KtoConfig, *, good: bool) -> ReplyLoss:
    """Compute the loss of a reply with r = `ratio`, z = `divergence`."""
    side, weight = (1.0, config.good_weight) if good else (-1.0, config.bad_weight)
    value = sigmoid(side * config.beta * (ratio - divergence))
    return ReplyLoss(weight * (1 - value), -side * weight * config.beta * value * (1 - value))


def check_labels(replies: Sequence[LabelledReply]) -> None:
    """Raise DataError where there are no replies, or all are of one kind."""
    if not replies:
        raise DataError("There is nothing to train on.", hint="Check the labelled replies.")
    if len({reply.good for reply in replies}) < 2:
        kind = "good" if replies[0].good else "bad"
        raise DataError(
            f"All {len(replies)} replies are {kind}; KTO needs good and bad ones.",
            hint="Draw more replies: ns eval --benchmarks=NAME:8, with a higher ++inference.temperature.",
        )


def kto(
    client: TrainingClient,
    replies: Sequence[LabelledReply],
    config: KtoConfig,
    folder: TrainingLog,
    hooks: Hooks = Hooks(),  # noqa: B008 - frozen
) -> bool:
    """Train from the last checkpoint of `folder` on; return whether the run has ended (False: it was stopped).

    As in `newskills.train.loops.dpo`, one pass finds the log-probabilities, another learns each reply with the slope
    that its loss has there as its weight. z is estimated of each prompt with the reply to the one before it.

    Raises DataError without good and bad replies, ConfigError for batches of one reply or a trainer without reference
    weights, TrainingError where the loss is no number (the last checkpoint stays).
    """
    check_labels(replies)
    if not isinstance(client, ReferenceClient):
        raise ConfigError("This trainer has no reference weights, which KTO needs.", hint="Use --backend=trl.")
    if config.batch_size < 2:
        raise ConfigError(
            "KTO estimates a divergence over the replies of a batch, so a batch of 1 is too small.",
            hint="Raise ++batch_size.",
        )

    longest = max(len(row.reply.tokens) + 1 for row in replies)
    with TrainingSteps(client, config, folder, hooks) as steps:
        for step in steps:
            batch = batch_at(replies, step, config.batch_size, config.seed)
            data, others = [row.reply for row in batch], _mismatched(batch, longest)
            divergence = max(0.0, fmean(_ratios(client, client, others)))
            ratios = _ratios(client, client, data)
            losses = [
                reply_loss(ratio, divergence, config, good=row.good)
                for ratio, row in zip(ratios, batch, strict=True)
            ]
            adam = steps.adam(step)
            metrics = {
                "loss": fmean(loss.loss for loss in losses),
                "kl": divergence,
                **_rewards(batch, ratios, config.beta),
                "learning_rate": adam.learning_rate,
                "tokens": float(sum(map(token_count, data))),
            }
            weighted = [
                scaled(datum, -loss.slope / len(batch))
                for datum, loss in zip(data, losses, strict=True)
                if loss.slope
            ]
            changed = {"grad_norm": 0.0}
            if weighted:
                client.forward_backward(weighted, "cross_entropy")
                changed = client.optim_step(adam)
            steps.done(metrics | changed)
    return steps.ended


def _ratios(client: TrainingClient, reference: ReferenceClient, data: Sequence[Datum]) -> list[float]:
    """Return log p − log p_ref of each reply."""
    own = reply_logprobs(data, client.logprobs(data))
    initial = reply_logprobs(data, reference.reference_logprobs(data))
    return [mine - theirs for mine, theirs in zip(own, initial, strict=True)]


def _mismatched(batch: Sequence[LabelledReply], longest: int) -> list[Datum]:
    """Return each prompt with the reply to the one before it, cut off at `longest` tokens, which fit the model."""
    parts = [prompt_and_reply(row.reply) for row in batch]
    others = [parts[place - 1][1] for place in range(len(parts))]
    return [
        example(prompt, other[: longest - len(prompt)]) for (prompt, _), other in zip(parts, others, strict=True)
    ]


def _rewards(batch: Sequence[LabelledReply], ratios: Sequence[float], beta: float) -> dict[str, float]:
    """Return the mean rewards β · r of each kind that is in the batch, by the names that TRL gives them."""
    good = [beta * ratio for ratio, row in zip(ratios, batch, strict=True) if row.good]
    bad = [beta * ratio for ratio, row in zip(ratios, batch, strict=True) if not row.good]
    means = {"rewards/chosen": good, "rewards/rejected": bad}
    metrics = {name: fmean(values) for name, values in means.items() if values}
    if good and bad:
        metrics["rewards/margins"] = metrics["rewards/chosen"] - metrics["rewards/rejected"]
    return metrics
