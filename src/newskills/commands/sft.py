# SPDX-License-Identifier: Apache-2.0
"""`ns sft`: supervised fine-tuning on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from newskills.base.store import read_rows
from newskills.commands._command import Command
from newskills.commands._dry_run import show_dry_run
from newskills.commands._options import AtLeastOne, DryRun, doc
from newskills.commands._training import ended, keys_of, require_train, steps_shown, stop_on_signals
from newskills.config.command_line import Parsed
from newskills.recipes.skill import Skill
from newskills.recipes.training import TrainerSettings, examples_of, model_folder, trained
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.schedule import Schedule, steps_of
from newskills.train.loops.sft import SftConfig, sft

FINAL = "final_hf_model"


class Options(Struct, frozen=True, kw_only=True):
    model: Annotated[str, doc("Hugging Face folder, .gguf file, or smollm2")]
    training_data: Annotated[str, doc("JSONL of {input, output} or {messages}")]
    output_dir: Annotated[str, doc("folder of checkpoints and metrics; the same folder goes on where it was")]
    backend: Annotated[Literal["cpu"], doc("cpu: LoRA in this process, for small Llama models")] = "cpu"
    dry_run: DryRun = False


class SftKeys(Struct, frozen=True, kw_only=True):
    """`++` keys of `ns sft`."""

    epochs: Annotated[float, Meta(gt=0, description="passes over the data, unless steps is set")] = 1.0
    steps: Annotated[AtLeastOne | None, Meta(description="batches to learn from")] = None
    batch_size: Annotated[int, Meta(ge=1, description="sequences of a step")] = 16
    learning_rate: Annotated[float, Meta(gt=0, description="at its highest")] = 2e-4
    schedule: Annotated[Schedule, Meta(description="of the learning rate after warm-up")] = "linear"
    warmup_steps: Annotated[int, Meta(ge=0, description="steps up to the learning rate")] = 0
    weight_decay: Annotated[float, Meta(ge=0, description="of AdamW")] = 0.0
    max_grad_norm: Annotated[float, Meta(ge=0, description="longer gradients are cut to this; 0 = never")] = 1.0
    save_every: Annotated[int, Meta(ge=0, description="steps between checkpoints; 0 = only at the end")] = 20
    seed: Annotated[int, Meta(description="of the order of the data")] = 0
    trainer: TrainerSettings = TrainerSettings()


def run(parsed: Parsed[Options]) -> int:
    options = parsed.options
    keys = keys_of(SftKeys, parsed)
    if keys is None:
        return 0
    out, data = Path(options.output_dir), Path(options.training_data)
    rows = list(read_rows(data))
    steps = keys.steps or steps_of(keys.epochs, max(1, len(rows)), keys.batch_size)
    if options.dry_run:
        show_dry_run(
            [
                ("reads", options.model, "the model"),
                ("reads", data, f"{len(rows)} rows"),
                ("writes", out, f"{steps} steps of {keys.batch_size}: metrics.jsonl, checkpoints"),
                ("writes", out / FINAL, "the model with the pairs merged"),
            ]
        )
        return 0
    require_train("torch", "safetensors", "tokenizers")
    base = model_folder(options.model, out / "base_hf_model", say=print)
    examples = examples_of(rows, Skill(base), data)
    names = set(SftConfig.__struct_fields__) - {"steps"}
    config = SftConfig(
        steps=steps, **{name: value for name, value in msgspec.structs.asdict(keys).items() if name in names}
    )
    settings = {**msgspec.to_builtins(config), "trainer": keys.trainer, "model": options.model, "data": str(data)}
    folder = TrainingFolder(out, settings)
    with stop_on_signals() as stop:
        whole = trained(
            base,
            folder,
            out / FINAL,
            keys.trainer,
            lambda client, at: sft(client, examples, config, at, told=steps_shown("SFT"), stop=stop),
        )
    folder.close()
    return ended(whole, out / FINAL, folder)


COMMAND = Command(
    name="sft",
    summary="Fine-tune a small model on this machine (LoRA on a CPU). A killed or stopped run goes on with the same "
    "command, to the same numbers. Needs newskills[train,local].",
    options=Options,
    config=SftKeys,
    run=run,
    aliases={"hf_model": "model"},
    examples=(
        "ns sft --model=smollm2 --training_data=train.jsonl --output_dir=training/sft ++epochs=2 ++learning_rate=1e-3",
    ),
)
