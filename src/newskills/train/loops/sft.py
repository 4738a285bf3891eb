# SPDX-License-Identifier: Apache-2.0
"""Supervised fine-tuning: the loss is the mean over the completion tokens of a batch.

This file is the whole loop: `sft` is what every trainer that serves the verbs of `newskills.train.verbs` runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from newskills.base.errors import DataError
from newskills.train.loops.folder import TrainingLog
from newskills.train.loops.method import MethodSettings
from newskills.train.loops.schedule import batch_at
from newskills.train.loops.stepping import Hooks, TrainingSteps
from newskills.train.settings import Schedule
from newskills.train.verbs import Datum, TrainingClient


class SftConfig(MethodSettings, frozen=True, kw_only=True):
    """steps of batch_size sequences; save_every steps a checkpoint (0 = only at the end)."""

    name: ClassVar[str] = "sft"
    title: ClassVar[str] = "SFT"

    steps: int
    batch_size: int = 16
    learning_rate: float = 2e-4
    schedule: Schedule = "linear"
    warmup_steps: int = 0
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    save_every: int = 20
    seed: int = 0

    def train(self, client: TrainingClient, data: Sequence[Datum], folder: TrainingLog, hooks: Hooks) -> bool:
        """Train on examples, as `sft`."""
        return sft(client, data, self, folder, hooks)


def sft(
    client: TrainingClient,
    examples: Sequence[Datum],
    config: SftConfig,
    folder: TrainingLog,
    hooks: Hooks = Hooks(),  # noqa: B008 - frozen
) -> bool:
    """Train from the last checkpoint of `folder` on; return whether the run has ended (False: it was stopped).

    Raises DataError without examples, TrainingError where the loss is no number (the last checkpoint stays).
    """
    if not examples:
        raise DataError("There is nothing to train on.", hint="Check the filters of the training data.")

    with TrainingSteps(client, config, folder, hooks) as steps:
        for step in steps:
            batch = batch_at(examples, step, config.batch_size, config.seed)
            tokens = sum(weight for datum in batch for weight in datum.weights or ())
            output = client.forward_backward([scaled(datum, 1 / tokens) for datum in batch], "cross_entropy")
            adam = steps.adam(step)
            changed = client.optim_step(adam)
            steps.done({"loss": output.loss, "learning_rate": adam.learning_rate, "tokens": tokens, **changed})
    return steps.ended


def example(prompt: Sequence[int], completion: Sequence[int]) -> Datum:
    """Make an example in which only the completion's tokens count (each 1). Raises DataError where either is empty."""
    if not prompt or not completion:
        raise DataError("An example needs at least one token of input and one token to train on.")
    tokens = [*prompt, *completion]
    weights = [0.0] * (len(prompt) - 1) + [1.0] * len(completion)
    return Datum(tokens=tokens[:-1], targets=tokens[1:], weights=weights)


def prompt_and_reply(datum: Datum) -> tuple[list[int], list[int]]:
    """Split an example into what `example` made it of. Raises DataError for weights other than 0 on the prompt and 1 on
    the reply."""
    weights = list(datum.weights or ())
    start = weights.index(1) if 1 in weights else len(weights)
    if weights[start:] != [1] * (len(datum.targets) - start) or any(weights[:start]) or start == len(weights):
        raise DataError("A reply needs weights of 0 on its prompt and 1 on its own tokens.")
    return [*datum.tokens[: start + 1]], [*datum.targets[start:]]


def scaled(datum: Datum, factor: float) -> Datum:
    """Return `datum` with its weights multiplied by `factor`."""
    return Datum(
        tokens=datum.tokens, targets=datum.targets, weights=[weight * factor for weight in datum.weights or ()]
    )
