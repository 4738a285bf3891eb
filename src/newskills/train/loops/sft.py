# SPDX-License-Identifier: Apache-2.0
"""Supervised fine-tuning: the loss is the mean over the completion tokens of a batch."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from newskills.base.errors import DataError
from newskills.train.loops.folder import TrainingLog
from newskills.train.loops.schedule import batch_at
from newskills.train.loops.stepping import Hooks, adam_at, run_steps
from newskills.train.settings import Schedule
from newskills.train.verbs import AdamParams, Datum, TrainingClient


class SftConfig(Struct, frozen=True, kw_only=True):
    """steps of batch_size sequences; save_every steps a checkpoint (0 = only at the end)."""

    steps: int
    batch_size: int = 16
    learning_rate: float = 2e-4
    schedule: Schedule = "linear"
    warmup_steps: int = 0
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    save_every: int = 20
    seed: int = 0

    def adam(self, step: int) -> AdamParams:
        return adam_at(self, step)


def example(prompt: Sequence[int], completion: Sequence[int]) -> Datum:
    """Only the completion's tokens count (each 1). Raises DataError where either is empty."""
    if not prompt or not completion:
        raise DataError("An example needs at least one token of input and one token to train on.")
    tokens = [*prompt, *completion]
    weights = [0.0] * (len(prompt) - 1) + [1.0] * len(completion)
    return Datum(tokens=tokens[:-1], targets=tokens[1:], weights=weights)


def sft(
    client: TrainingClient,
    examples: Sequence[Datum],
    config: SftConfig,
    folder: TrainingLog,
    hooks: Hooks = Hooks(),  # noqa: B008 - frozen
) -> bool:
    """Goes on from the last checkpoint of `folder`; returns whether all steps are done.

    Raises DataError without examples, TrainingError where the loss is no number (the last checkpoint stays).
    """
    if not examples:
        raise DataError("There is nothing to train on.", hint="Check the filters of the training data.")

    def step_of(step: int) -> dict[str, float]:
        batch = batch_at(examples, step, config.batch_size, config.seed)
        count = sum(weight for datum in batch for weight in datum.weights or ())
        output = client.forward_backward([_scaled(datum, 1 / count) for datum in batch], "cross_entropy")
        adam = config.adam(step)
        changed = client.optim_step(adam)
        return {"loss": output.loss, "learning_rate": adam.learning_rate, "tokens": count, **changed}

    return run_steps(client, config, folder, step_of, hooks)


def _scaled(datum: Datum, factor: float) -> Datum:
    return Datum(
        tokens=datum.tokens, targets=datum.targets, weights=[weight * factor for weight in datum.weights or ()]
    )
