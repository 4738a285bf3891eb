# SPDX-License-Identifier: Apache-2.0
"""A trained model from a model folder and a trainer: checkpoints on the way, merged weights at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.models.serving.weights import resolve_weights
from newskills.recipes.skill import Skill
from newskills.train.loops.folder import TrainingFolder
from newskills.train.trainers import Trainer
from newskills.train.verbs import Datum

Say = Callable[[str], None]


def model_folder(model: str, made: Path, *, say: Say) -> Path:
    """The Hugging Face folder of `model`; a .gguf file, or a name that is known, is converted into `made` once."""
    from newskills.train.convert.from_gguf import gguf_to_hf

    if Path(model).expanduser().is_dir():
        return Path(model).expanduser()
    if not made.is_dir():
        weights = resolve_weights(model, say=say)
        say(f"converting {weights.name} to a Hugging Face folder")
        gguf_to_hf(weights, made)
    return made


def trained(trainer: Trainer, folder: TrainingFolder, target: Path, learn: Callable[[Trainer], bool]) -> bool:
    """Lets `trainer` learn and writes its model to `target`; False where it was stopped. Closes `folder`."""
    try:
        if target.is_dir():
            return True
        if not learn(trainer):
            return False
        trainer.finish(folder, target)
        return True
    finally:
        folder.close()


def examples_of(rows: Sequence[Row], skill: Skill, where: Path) -> list[Datum]:
    """Training examples of `{input, output}` texts, taken as they are, or of `{messages}` that end with a reply.

    Raises DataError for rows of neither form.
    """
    return [_example(row, skill, f"{where}, row {number}") for number, row in enumerate(rows, 1)]


def _example(row: Row, skill: Skill, where: str) -> Datum:
    if "messages" in row:
        *before, last = row["messages"]
        if last.get("role") != "assistant" or not isinstance(last.get("content"), str):
            raise DataError(f"{where}: the last message is not a reply of the assistant.")
        return skill.reply(before, last["content"])
    if isinstance(row.get("input"), str) and isinstance(row.get("output"), str):
        return skill.continuation(row["input"], row["output"])
    raise DataError(
        f"{where} has neither `input` and `output` nor `messages`; its keys are {', '.join(sorted(row)) or 'none'}.",
        hint="ns prepare_training_data writes both forms.",
    )
