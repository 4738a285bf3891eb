# SPDX-License-Identifier: Apache-2.0
"""Supervised fine-tuning with TRL on examples that are token ids already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from datasets import Dataset
from trl import SFTConfig as TrlConfig
from trl import SFTTrainer
from trl.data_utils import pack_dataset

from newskills.base.errors import ConfigError, DataError
from newskills.train.backends.trl.fitting import check_fits
from newskills.train.backends.trl.model import (
    TrainingTask,
    adapter_config,
    context_of,
    load_model,
    load_tokenizer,
    router_arguments,
    training_arguments,
)
from newskills.train.backends.trl.shared import TrlTrainerMixin, places_of_steps, run_training
from newskills.train.loops.sft import SftConfig
from newskills.train.settings import TrainerSettings
from newskills.train.verbs import Datum

IGNORED = -100
"""A label that transformers leaves out of the loss."""


class _SftTrainer(TrlTrainerMixin, SFTTrainer):  # type: ignore[misc]
    pass


def train_sft(task: TrainingTask, examples: Sequence[Datum], config: SftConfig) -> bool:
    """Train on examples with TRL. The order of examples, the learning rates and the loss are those of
    `newskills.train.loops.sft`.

    Raises DataError where there is nothing to train on, ConfigError where memory cannot suffice.
    """
    if not examples:
        raise DataError("There is nothing to train on.", hint="Check the filters of the training data.")
    settings, folder = task.settings, task.folder
    shared = settings.trl.context_parallel
    if shared > 1 and task.hooks.held_out is not None:
        raise ConfigError(
            f"++trainer.trl.context_parallel={shared} cannot ask held-out problems on the way.",
            hint="Leave out --eval_benchmark and --eval_data; run ns eval on the trained model.",
        )
    longest = max(len(datum.tokens) + 1 for datum in examples)
    length = settings.trl.packed_length if settings.trl.packing else longest
    check_fits(task, min(config.batch_size, len(examples)), length, length)
    model, tokenizer = load_model(task.base, settings), load_tokenizer(task.base)
    rows = _make_dataset(examples, context_of(model), settings)
    size = min(config.batch_size, len(rows))
    order = places_of_steps(config, len(rows), size)
    trl_arguments = training_arguments(config, settings, size, output=folder.path, updates=config.steps)
    trainer = _SftTrainer(
        model=model,
        args=TrlConfig(
            **trl_arguments,
            **router_arguments(settings, model),
            max_length=settings.trl.packed_length if settings.trl.packing else None,
            packing=settings.trl.packing,
            dataset_kwargs={"skip_prepare_dataset": True},
            # Each process gets two pieces of a sequence, one of its first half and one of its second.
            pad_to_multiple_of=2 * shared if shared > 1 else None,
            train_sampling_strategy="sequential",
        ),
        train_dataset=rows.select(order),
        processing_class=tokenizer,
        peft_config=adapter_config(settings),
    )
    tokens = _Tokens(rows, order, size)
    return run_training(trainer, task, config, tokenizer.pad_token_id, lambda: tokens.of(trainer.state))


class _Tokens:
    """Tokens that counted in a step."""

    def __init__(self, rows: Dataset, order: list[int], size: int) -> None:
        self._counts = [sum(label != IGNORED for label in labels) for labels in rows["labels"]]
        self._order, self._size = order, size

    def of(self, state: Any) -> dict[str, float]:
        last = state.global_step * self._size
        return {"tokens": float(sum(self._counts[at] for at in self._order[last - self._size : last]))}


def _make_dataset(examples: Sequence[Datum], context: int | None, settings: TrainerSettings) -> Dataset:
    limit = context
    if settings.trl.packing:
        limit = min(context or settings.trl.packed_length, settings.trl.packed_length)
    longest = max(len(datum.tokens) + 1 for datum in examples)
    if limit and longest > limit:
        count = sum(len(datum.tokens) >= limit for datum in examples)
        raise DataError(
            f"{count} of {len(examples)} examples are longer than {limit} tokens; the longest has {longest}.",
            hint="Set ++too_long=drop or ++too_long=truncate, or a longer ++trainer.trl.packed_length.",
        )
    rows = Dataset.from_dict(
        {
            "input_ids": [[*datum.tokens, datum.targets[-1]] for datum in examples],
            "labels": [_label_ids(datum) for datum in examples],
        }
    )
    if settings.trl.packing:
        return pack_dataset(rows, settings.trl.packed_length, "bfd")
    return rows


def _label_ids(datum: Datum) -> list[int]:
    weights = datum.weights or ()
    if len(weights) != len(datum.targets) or any(weight not in (0, 1) for weight in weights):
        raise DataError("The trl trainer accepts only weights of 0 and 1, one per target.")
    return [IGNORED, *(token if weight else IGNORED for token, weight in zip(datum.targets, weights, strict=True))]
