# SPDX-License-Identifier: Apache-2.0
"""Kahneman–Tversky optimisation with TRL on replies that are token ids already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from datasets import Dataset
from trl import KTOConfig as TrlConfig
from trl import KTOTrainer

from newskills.base.errors import ConfigError
from newskills.train.backends.trl.fitting import check_fits
from newskills.train.backends.trl.model import (
    TrainingTask,
    adapter_config,
    check_lengths,
    load_model,
    load_tokenizer,
    router_arguments,
    training_arguments,
)
from newskills.train.backends.trl.shared import TrlTrainerMixin, on_disk, places_of_steps, run_training
from newskills.train.loops.kto import KtoConfig, LabelledReply, check_labels
from newskills.train.loops.sft import prompt_and_reply


class _KtoTrainer(TrlTrainerMixin, KTOTrainer):  # type: ignore[misc]
    def _prepare_dataset(self, dataset: Dataset, *_: Any) -> Dataset:
        """Return the rows as they are: token ids already."""
        return dataset


def train_kto(task: TrainingTask, replies: Sequence[LabelledReply], config: KtoConfig) -> bool:
    """Train on labelled replies with TRL. The order of replies and the learning rates are those of the other loops; the
    loss is TRL's.

    Raises DataError where there is nothing to train on, replies are all good or all bad, or one is too long;
    ConfigError for batches of one reply, of which no divergence can be estimated.
    """
    check_labels(replies)
    settings, folder = task.settings, task.folder
    size = min(config.batch_size, len(replies))
    trl_arguments = training_arguments(config, settings, size, output=folder.path, updates=config.steps)
    micro = trl_arguments["per_device_train_batch_size"]
    if micro < 2:
        raise ConfigError(
            "KTO estimates a divergence over the replies of a batch, so a batch of 1 is too small.",
            hint="Raise ++batch_size or ++trainer.trl.micro_batch_size.",
        )
    parts = [prompt_and_reply(reply.reply) for reply in replies]
    lengths = [len(prompt) + len(text) for prompt, text in parts]
    check_fits(task, size, max(lengths), max(lengths))
    # TRL takes the reference's log-probabilities before the weights are divided.
    model, tokenizer = load_model(task.base, settings, early=True), load_tokenizer(task.base)
    check_lengths(lengths, model, "replies")
    order = places_of_steps(config, len(parts), size)
    rows = Dataset.from_list(_reply_rows(parts, [reply.good for reply in replies], order, micro))
    trainer = _KtoTrainer(
        model=model,
        args=TrlConfig(
            **trl_arguments,
            **router_arguments(settings, model),
            beta=config.beta,
            desirable_weight=config.good_weight,
            undesirable_weight=config.bad_weight,
            max_length=None,
            # LoRA pairs are switched off for the reference; all weights would need a second model.
            precompute_ref_log_probs=settings.weights == "full",
            train_sampling_strategy="sequential",
        ),
        train_dataset=on_disk(rows, folder.path),
        processing_class=tokenizer,
        peft_config=adapter_config(settings),
    )

    def tokens() -> dict[str, float]:
        last = trainer.state.global_step * size
        return {"tokens": float(sum(len(parts[at][1]) for at in order[last - size : last]))}

    return run_training(trainer, task, config, tokenizer.pad_token_id, tokens)


def _reply_rows(
    parts: Sequence[tuple[list[int], list[int]]], good: Sequence[bool], order: Sequence[int], micro: int
) -> list[dict[str, Any]]:
    """Return the replies in the order of training, each with the one before it in its batch, of which z is
    estimated."""
    rows = []
    for start in range(0, len(order), micro):
        batch = order[start : start + micro]
        for place, at in enumerate(batch):
            prompt, reply = parts[at]
            other = parts[batch[place - 1]][1]
            rows.append(
                {"prompt_ids": prompt, "completion_ids": reply, "KL_completion_ids": other, "label": good[at]}
            )
    return rows
