# SPDX-License-Identifier: Apache-2.0
"""Direct preference optimisation with TRL on pairs that are token ids already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from datasets import Dataset
from trl import DPOConfig as TrlConfig
from trl import DPOTrainer

from newskills.base.errors import DataError
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
from newskills.train.loops.dpo import DpoConfig, Pair
from newskills.train.loops.sft import prompt_and_reply


class _DpoTrainer(TrlTrainerMixin, DPOTrainer):  # type: ignore[misc]
    def _prepare_dataset(self, dataset: Dataset, *_: Any) -> Dataset:
        """Return the rows as they are: token ids already."""
        return dataset


def train_dpo(task: TrainingTask, pairs: Sequence[Pair], config: DpoConfig) -> bool:
    """Train on pairs with TRL. The order of pairs, the learning rates and the loss are those of
    `newskills.train.loops.dpo`; log-probabilities of the reference are computed before the first step, once per pair.

    Raises DataError where there is nothing to train on, or a pair is longer than the model's context,
    ConfigError where memory cannot suffice.
    """
    if not pairs:
        raise DataError("There is nothing to train on.", hint="Check the pairs of chosen and rejected replies.")
    settings, folder = task.settings, task.folder
    rows = on_disk(Dataset.from_list([_pair_row(pair) for pair in pairs]), folder.path)
    lengths = [len(row["prompt_ids"]) + max(len(row["chosen_ids"]), len(row["rejected_ids"])) for row in rows]
    # Both replies of a pair go through the model at once.
    check_fits(task, min(config.batch_size, len(pairs)), 2 * max(lengths), 2 * max(lengths))
    # TRL takes the reference's log-probabilities before the weights are divided.
    model, tokenizer = load_model(task.base, settings, early=True), load_tokenizer(task.base)
    check_lengths(lengths, model, "pairs")
    size = min(config.batch_size, len(rows))
    order = places_of_steps(config, len(rows), size)
    trainer = _DpoTrainer(
        model=model,
        args=TrlConfig(
            **training_arguments(config, settings, size, output=folder.path, updates=config.steps),
            **router_arguments(settings, model),
            beta=config.beta,
            loss_type=["sigmoid", "sft"] if config.sft_weight else ["sigmoid"],
            loss_weights=[1.0, config.sft_weight] if config.sft_weight else None,
            max_length=None,
            precompute_ref_log_probs=True,
            train_sampling_strategy="sequential",
        ),
        train_dataset=rows,
        processing_class=tokenizer,
        peft_config=adapter_config(settings),
    )
    trainer.train_dataset = trainer.train_dataset.select(order)
    counts = [len(row["chosen_ids"]) + len(row["rejected_ids"]) for row in rows]

    def tokens() -> dict[str, float]:
        last = trainer.state.global_step * size
        return {"tokens": float(sum(counts[at] for at in order[last - size : last]))}

    return run_training(trainer, task, config, tokenizer.pad_token_id, tokens)


def _pair_row(pair: Pair) -> dict[str, list[int]]:
    prompt, chosen = prompt_and_reply(pair.chosen)
    same, rejected = prompt_and_reply(pair.rejected)
    if prompt != same:
        raise DataError("The trl trainer needs the same prompt before both replies of a pair.")
    return {"prompt_ids": prompt, "chosen_ids": chosen, "rejected_ids": rejected}
