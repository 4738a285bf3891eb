# SPDX-License-Identifier: Apache-2.0
"""Pairs of token ids for the tiny model, and how to train on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from newskills.base.records import Row
from newskills.base.store import read_rows
from newskills.train.loops.dpo import DpoConfig, Pair
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.sft import example
from newskills.train.loops.stepping import Hooks
from newskills.train.settings import LoraSettings, TrainerSettings
from newskills.train.trainers import make_trainer

END = 60
SETTINGS = TrainerSettings(lora=LoraSettings(rank=4, alpha=8, seed=3), dtype="float32", threads=1)
PAIRS = [
    Pair(
        chosen=example([1, 2, token], [token + 1, token + 2, END]),
        rejected=example([1, 2, token], [token + 3] * (1 + token % 4)),
    )
    for token in range(3, 23)
]
DPO = DpoConfig(steps=9, batch_size=4, learning_rate=0.01, save_every=4, beta=0.2)


def prefer(
    model: Path,
    path: Path,
    config: DpoConfig = DPO,
    settings: TrainerSettings = SETTINGS,
    backend: str = "cpu",
    **hooks: Any,
) -> bool:
    folder = TrainingFolder(path, {"steps": config.steps})
    trainer = make_trainer(backend, model, settings)
    try:
        return trainer.run(config, PAIRS, folder, Hooks(**hooks))
    finally:
        folder.close()


def metrics(path: Path) -> list[Row]:
    return [{k: v for k, v in row.items() if k != "seconds"} for row in read_rows(path / "metrics.jsonl")]
