# SPDX-License-Identifier: Apache-2.0
"""Supervised fine-tuning over the Tinker API, of chains of thought (CoT) or of solutions with code (TIR).

The loss is the mean over the tokens of the solutions of a batch. The loop is that of `newskills.train.loops.sft`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.run.training.examples import examples_of
from newskills.run.training.skill import Skill, asking_by
from newskills.train.backends.tinker.client import TinkerClient
from newskills.train.data.row_fields import REASONING, refuse_lost
from newskills.train.loops.groups import Group
from newskills.train.loops.schedule import rate_at
from newskills.train.loops.sft import SftConfig, sft
from newskills.train.loops.stepping import Hooks
from newskills.train.verbs import AdamParams, Datum
from newskills_tinker.recipes.run_folder import (
    RunFolder,
    model_files,
    optimizer_metrics,
    rate_for,
)
from newskills_tinker.recipes.settings import KINDS, TinkerSftConfig


def with_defaults(config: TinkerSftConfig) -> TinkerSftConfig:
    """Fill in the values of its kind where it has none. Raises DataError for numbers that cannot be."""
    kind = KINDS[config.kind]
    usual = {
        "dataset_name": kind.dataset,
        "batch_size": kind.batch,
        "num_epochs": kind.epochs,
        "max_length": kind.length,
        "save_every": kind.save_every,
    }
    left = {name: value for name, value in usual.items() if getattr(config, name) is None}
    filled = msgspec.structs.replace(config, **left)
    for name, least in (("batch_size", 1), ("num_epochs", 1), ("max_length", 2), ("save_every", 0)):
        if getattr(filled, name) < least:
            raise DataError(f"{name} is {getattr(filled, name)}; it must be at least {least}.")
    return filled


def plan_of(config: TinkerSftConfig) -> str:
    """Describe a run in words."""
    return f"{config.num_epochs} epochs of {config.batch_size} sequences per step"


def fine_tune(
    client: TinkerClient,
    config: TinkerSftConfig,
    rows: Sequence[Row],
    *,
    on_step: Callable[[Row], None] = lambda _: None,
    stop: Callable[[], bool] = lambda: False,
) -> bool:
    """Train from the last line of checkpoints.jsonl with a state; return whether all batches are done.

    `rows` have `problem` and `generation`, `input` and `output`, or `messages`. Raises DataError, TrainingError.
    """
    config = with_defaults(config)
    size, epochs, length = int(config.batch_size or 1), int(config.num_epochs or 1), int(config.max_length or 2)
    folder = _Folder(config)
    try:
        if folder.finished:
            return True
        folder.begin(client, config.resume_from)
        files = model_files(config, client)
        examples = _make_examples(config, rows, Skill(files, asking_by(config.prompt_config, files)), length)
        folder.datums = min(size, len(examples))
        folder.per_epoch = max(1, len(examples) // size)
        folder.total = epochs * folder.per_epoch
        steps = _Steps(
            steps=folder.total,
            batch_size=size,
            learning_rate=config.learning_rate or rate_for(files),
            schedule=config.lr_schedule,
            save_every=int(config.save_every or 0),
            seed=config.seed,
        )
        return sft(
            client, examples, steps, folder, Hooks(on_step=lambda _: on_step(folder.history[-1]), stop=stop)
        )
    finally:
        folder.close()


class _Steps(SftConfig, frozen=True, kw_only=True):
    def adam(self, step: int) -> AdamParams:
        """Return the parameters of a step: momentum as the service's own default; gradients are not clipped."""
        return AdamParams(learning_rate=rate_at(step, self.steps, self.learning_rate, self.schedule))


class _Folder(RunFolder):
    datums = 0

    def recipe_metrics(self, metrics: Row) -> Row:
        return {
            "optim/lr": metrics["learning_rate"],
            "loss/mean": metrics["loss"],
            "train/tokens": metrics["tokens"],
            "train/datums": self.datums,
            **optimizer_metrics(metrics, ()),
            "train/step": metrics["step"],
        }

    def groups(self, groups: Sequence[Group], step: int) -> None:
        """Do nothing: there are no groups."""


def _make_examples(config: TinkerSftConfig, rows: Sequence[Row], skill: Skill, length: int) -> list[Datum]:
    where = Path(str(config.dataset_name))
    examples = []
    for number, row in enumerate(rows[: config.max_samples], 1):
        if row.get("problem") and row.get("generation"):
            place = f"{where} (row {number})"
            refuse_lost(
                row, REASONING[:1], str(row["generation"]), place, "Put it into `generation`, or remove it."
            )
            examples.append(skill.example(row, row["generation"]))
        else:
            examples += examples_of([row], skill, where.with_name(f"{where.name} (row {number})"))
    kept = [example for example in examples if len(example.tokens) < length]
    if not kept:
        raise DataError(
            f"{where} has nothing to train on: {len(examples)} rows, none of at most {length} tokens.",
            hint="Raise max_length, or use another dataset.",
        )
    return kept
