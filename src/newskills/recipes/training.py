# SPDX-License-Identifier: Apache-2.0
"""A trained model from a model folder and a loop: checkpoints on the way, merged weights at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta, Struct

from newskills.base.errors import DataError, TrainingError
from newskills.base.records import Row
from newskills.models.serving.weights import resolve_weights
from newskills.recipes.skill import Skill
from newskills.train.loops.folder import TrainingFolder
from newskills.train.verbs import Datum

if TYPE_CHECKING:
    from newskills.train.cpu.trainer import CpuTrainer

Say = Callable[[str], None]
Loop = Callable[["CpuTrainer", TrainingFolder], bool]


class LoraSettings(Struct, frozen=True, kw_only=True):
    """The pairs that are trained."""

    rank: Annotated[int, Meta(ge=1, description="rank of the LoRA pairs")] = 16
    alpha: Annotated[float, Meta(gt=0, description="their product counts alpha / rank times")] = 32.0
    seed: Annotated[int, Meta(description="seed of their first values")] = 0


class TrainerSettings(Struct, frozen=True, kw_only=True):
    """How this machine computes. Another number of threads changes the last digits of the results."""

    lora: LoraSettings = LoraSettings()
    dtype: Annotated[str, Meta(description="of the frozen weights: auto, bfloat16, float32")] = "auto"
    threads: Annotated[int, Meta(ge=0, description="of the trainer; 0 = one a core")] = 0


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


def trained(base: Path, folder: TrainingFolder, target: Path, settings: TrainerSettings, loop: Loop) -> bool:
    """Runs `loop` on `base` and merges what it learnt into `target`; False where the loop was stopped."""
    from newskills.train.convert.merge import merge_lora
    from newskills.train.cpu.llama import LoraConfig
    from newskills.train.cpu.trainer import CpuTrainer, CpuTrainerConfig

    if target.is_dir():
        return True
    lora = LoraConfig(**msgspec.structs.asdict(settings.lora))
    config = CpuTrainerConfig(lora=lora, dtype=settings.dtype, threads=settings.threads)
    if not folder.finished and not loop(CpuTrainer(base, config), folder):
        return False
    if folder.last is None:
        raise TrainingError("The training ended without a checkpoint.")
    merge_lora(base, folder.path / folder.last.state_path, target)
    return True


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
