# SPDX-License-Identifier: Apache-2.0
"""`ns merge_lora`: an adapter multiplied into its base."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from msgspec import Struct

from newskills.commands.command import Command
from newskills.config.command_line import Parsed
from newskills.pipelines.dry_run import show_dry_run
from newskills.pipelines.extras import require_train
from newskills.pipelines.options import DryRun, doc


class Options(Struct, frozen=True, kw_only=True):
    base_model: Annotated[str, doc("Hugging Face folder of the base model")]
    adapter: Annotated[
        str, doc("folder with adapter_model.safetensors (PEFT format), for example a checkpoint of ns sft")
    ]
    output_model: Annotated[str, doc("folder to write; must not exist yet")]
    dry_run: DryRun = False


def run(parsed: Parsed[Options]) -> int:
    options = parsed.options
    if options.dry_run:
        show_dry_run(
            [
                ("reads", options.base_model, "the weights"),
                ("reads", options.adapter, "the LoRA pairs"),
                ("writes", options.output_model, "W + alpha / r · B A, in the base model's precision"),
            ]
        )
        return 0
    require_train("torch", "safetensors")
    from newskills.train.convert.merge import merge_lora

    target = Path(options.output_model)
    pairs = merge_lora(Path(options.base_model), Path(options.adapter), target)
    sys.stdout.write(f"{target}: {pairs} pairs merged\n")
    return 0


COMMAND = Command(
    name="merge_lora",
    summary="Merge a LoRA adapter into its base model: writes a Hugging Face folder that any server can load.",
    options=Options,
    run=run,
    aliases={"input_model": "base_model", "adapter_path": "adapter"},
    examples=(
        "ns merge_lora --base_model=models/base --adapter=training/sft/checkpoint-000044 --output_model=models/sft",
    ),
)
