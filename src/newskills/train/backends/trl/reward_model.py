# SPDX-License-Identifier: Apache-2.0
"""Reward models with TRL on pairs that are token ids already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from datasets import Dataset
from transformers import AutoModelForSequenceClassification
from trl import RewardConfig as TrlConfig
from trl import RewardTrainer

from newskills.base.errors import ConfigError, DataError
from newskills.train.backends.cpu.reward import new_head
from newskills.train.backends.cpu.weights import padding_token
from newskills.train.backends.trl.fitting import check_fits
from newskills.train.backends.trl.model import (
    TrainingTask,
    adapter_config,
    check_lengths,
    load_model,
    load_tokenizer,
    training_arguments,
)
from newskills.train.backends.trl.shared import TrlTrainerMixin, places_of_steps, run_training
from newskills.train.loops.dpo import Pair
from newskills.train.loops.reward_model import (
    PairScores,
    PreferenceData,
    RewardModelConfig,
    due,
    evaluated,
)


class _RewardTrainer(TrlTrainerMixin, RewardTrainer):  # type: ignore[misc]
    pass


def reward_model(task: TrainingTask, data: PreferenceData, config: RewardModelConfig) -> bool:
    """Train a reward model on pairs with TRL. The order of pairs, the learning rates, the first head and the loss are
    those of `newskills.train.loops.reward_model`.

    Raises DataError where there is nothing to train on, or a pair is longer than the model's context, ConfigError where
    memory cannot suffice.
    """
    pairs, held_out = data.pairs, data.held_out
    if not pairs:
        raise DataError("There is nothing to train on.", hint="Check the pairs of chosen and rejected replies.")
    settings, folder = task.settings, task.folder
    if settings.trl.router_loss is not None:
        raise ConfigError("Reward models of TRL have no ++trainer.trl.router_loss.", hint="Leave it out.")
    rows = [_pair_row(pair) for pair in pairs]
    longest = [max(map(len, row.values())) for row in rows]
    # Both replies of a pair go through the model at once.
    check_fits(task, min(config.batch_size, len(rows)), 2 * max(longest), 0)
    model, tokenizer = (
        load_model(task.base, settings, AutoModelForSequenceClassification),
        load_tokenizer(task.base),
    )
    # The head reads the last token that is no padding: an end token that pads would not be read.
    tokenizer.pad_token = tokenizer.convert_ids_to_tokens(padding_token(task.base))
    with torch.no_grad():
        model.score.weight.copy_(new_head(model.score.weight.shape[1], settings.lora.seed))
    check_lengths(longest, model, "pairs")
    size = min(config.batch_size, len(rows))
    order = places_of_steps(config, len(rows), size)
    trainer = _RewardTrainer(
        model=model,
        args=TrlConfig(
            **training_arguments(config, settings, size, output=folder.path, updates=config.steps),
            max_length=None,
            train_sampling_strategy="sequential",
        ),
        train_dataset=Dataset.from_list([rows[at] for at in order]),
        processing_class=tokenizer,
        peft_config=adapter_config(settings, head="score"),
    )

    def more() -> dict[str, float]:
        done = trainer.state.global_step
        last = order[(done - 1) * size : done * size]
        metrics = {"tokens": float(sum(len(ids) for at in last for ids in rows[at].values()))}
        if due(config, done) and held_out.pairs:
            metrics |= evaluated(
                held_out, _score_pairs(trainer, tokenizer.pad_token_id, held_out.pairs, size), folder
            )
        return metrics

    return run_training(trainer, task, config, tokenizer.pad_token_id, more)


@torch.inference_mode()
def _score_pairs(trainer: Any, pad: int, pairs: Sequence[Pair], size: int) -> list[PairScores]:
    model = trainer.accelerator.unwrap_model(trainer.model)
    training = model.training
    model.eval()
    values: list[float] = []
    try:
        sequences = [ids for pair in pairs for ids in _pair_row(pair).values()]
        for start in range(0, len(sequences), 2 * size):
            part = sequences[start : start + 2 * size]
            width = max(map(len, part))
            ids = torch.tensor([[*row, *[pad] * (width - len(row))] for row in part], device=model.device)
            mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in part], device=model.device)
            values += model(input_ids=ids, attention_mask=mask).logits.squeeze(-1).float().tolist()
    finally:
        model.train(training)
    return [PairScores(*two) for two in zip(values[::2], values[1::2], strict=True)]


def _pair_row(pair: Pair) -> dict[str, list[int]]:
    return {
        "chosen_ids": [*pair.chosen.tokens, pair.chosen.targets[-1]],
        "rejected_ids": [*pair.rejected.tokens, pair.rejected.targets[-1]],
    }
