# SPDX-License-Identifier: Apache-2.0
"""A reward model by Bradley and Terry: a number for each reply, so that of two replies the better one has the higher.

The loss of a pair is −log σ(r(chosen) − r(rejected)) (https://arxiv.org/abs/2203.02155, equation 1), that of a batch
the mean. Only differences mean something: a number alone says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

from msgspec import Struct

from newskills.base.errors import DataError
from newskills.base.store import write_rows
from newskills.train.loops.dpo import Pair
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.method import MethodSettings
from newskills.train.loops.schedule import batch_at
from newskills.train.loops.stepping import Hooks, TrainingSteps
from newskills.train.numbers import softplus
from newskills.train.settings import Schedule
from newskills.train.verbs import TrainingClient

HELD_OUT = "held_out.jsonl"
"""Scores of held-out pairs after the last evaluation: {problem, chosen, rejected}."""


class PairScores(NamedTuple):
    """What a reward model gives to the two replies of a pair."""

    chosen: float
    rejected: float

    @property
    def margin(self) -> float:
        return self.chosen - self.rejected


class HeldOutPairs(Struct, frozen=True, kw_only=True):
    """Pairs that are not trained on. `problems`: which problem each belongs to; one has several."""

    pairs: Sequence[Pair]
    problems: Sequence[str]


class PreferenceData(Struct, frozen=True, kw_only=True):
    """`pairs` to train on, and those that are only scored."""

    pairs: Sequence[Pair]
    held_out: HeldOutPairs


@runtime_checkable
class PairScoringClient(TrainingClient, Protocol):
    """Weights that give replies a number."""

    def prefer(self, pairs: Sequence[Pair]) -> list[PairScores]:
        """Add the gradient of the mean loss of the pairs; return their scores before."""
        ...

    def scores(self, pairs: Sequence[Pair]) -> list[PairScores]:
        """Compute scores of pairs without gradient."""
        ...


class RewardModelConfig(MethodSettings, frozen=True, kw_only=True):
    """steps of batch_size pairs; every eval_every steps, and at the end, the held-out pairs are scored."""

    name: ClassVar[str] = "reward_model"
    title: ClassVar[str] = "reward models"
    needs: ClassVar[type] = PairScoringClient

    steps: int
    batch_size: int = 8
    learning_rate: float = 1e-4
    schedule: Schedule = "linear"
    warmup_steps: int = 0
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    eval_every: int = 20
    save_every: int = 20
    seed: int = 0

    def train(self, client: PairScoringClient, data: PreferenceData, folder: TrainingFolder, hooks: Hooks) -> bool:
        """Train on pairs, as `train_reward_model`."""
        return train_reward_model(client, data.pairs, data.held_out, self, folder, hooks)


def train_reward_model(
    client: PairScoringClient,
    pairs: Sequence[Pair],
    held_out: HeldOutPairs,
    config: RewardModelConfig,
    folder: TrainingFolder,
    hooks: Hooks = Hooks(),  # noqa: B008 - frozen
) -> bool:
    """Train from the last checkpoint of `folder` on; return whether the run has ended (False: it was stopped).

    Raises DataError without pairs, TrainingError where the loss is no number (the last checkpoint stays).
    """
    if not pairs:
        raise DataError("There is nothing to train on.", hint="Check the pairs of chosen and rejected replies.")

    with TrainingSteps(client, config, folder, hooks) as steps:
        for step in steps:
            batch = batch_at(pairs, step, config.batch_size, config.seed)
            scores = client.prefer(batch)
            adam = steps.adam(step)
            tokens = sum(len(reply.tokens) + 1 for pair in batch for reply in (pair.chosen, pair.rejected))
            metrics = {
                **measured(scores),
                "learning_rate": adam.learning_rate,
                "tokens": float(tokens),
                **client.optim_step(adam),
            }
            if held_out.pairs and due(config, step + 1):
                metrics |= evaluated(held_out, client.scores(held_out.pairs), folder)
            steps.done(metrics)
    return steps.ended


def due(config: RewardModelConfig, done: int) -> bool:
    """Return whether the held-out pairs are scored after so many steps."""
    return done % config.eval_every == 0 or done == config.steps


def evaluated(held_out: HeldOutPairs, scores: Sequence[PairScores], folder: TrainingFolder) -> dict[str, float]:
    """Return metrics of the held-out pairs; their scores are written into `folder`. Raises StorageError."""
    if folder.writes:
        _write(folder.path / HELD_OUT, held_out, scores)
    return {f"eval_{name}": value for name, value in measured(scores).items()}


def measured(scores: Sequence[PairScores]) -> dict[str, float]:
    """Return means over the pairs; a tie is half right."""
    return {
        "loss": fmean(softplus(-pair.margin) for pair in scores),
        "accuracy": fmean(right(pair) for pair in scores),
        "margin": fmean(pair.margin for pair in scores),
    }


def right(pair: PairScores) -> float:
    """Return 1 where the chosen reply has the higher score, one half where both have the same."""
    if pair.margin == 0:
        return 0.5
    return float(pair.margin > 0)


def _write(path: Path, held_out: HeldOutPairs, scores: Sequence[PairScores]) -> None:
    write_rows(
        path,
        (
            {"problem": problem, "chosen": pair.chosen, "rejected": pair.rejected}
            for problem, pair in zip(held_out.problems, scores, strict=True)
        ),
    )
