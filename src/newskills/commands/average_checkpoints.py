# SPDX-License-Identifier: Apache-2.0
"""`ns average_checkpoints`: the mean of some checkpoints' weights."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from msgspec import Struct

from newskills.commands._command import Command
from newskills.commands._dry_run import show_dry_run
from newskills.commands._options import DryRun, doc
from newskills.commands._training import require_train
from newskills.config.command_line import Parsed


class Options(Struct, frozen=True, kw_only=True):
    checkpoints: Annotated[list[str], doc("Hugging Face folders of the same model (several words)")]
    output_model: Annotated[str, doc("folder to write; must not be there yet")]
    dry_run: DryRun = False


def run(parsed: Parsed[Options]) -> int:
    options = parsed.options
    if options.dry_run:
        reads = [("reads", folder, "weights") for folder in options.checkpoints]
        show_dry_run([*reads, ("writes", options.output_model, f"the mean of {len(reads)}")])
        return 0
    require_train("torch", "safetensors")
    from newskills.train.convert.merge import average_checkpoints

    target = Path(options.output_model)
    average_checkpoints([Path(folder) for folder in options.checkpoints], target)
    sys.stdout.write(f"{target}: the mean of {len(options.checkpoints)} checkpoints\n")
    return 0


COMMAND = Command(
    name="average_checkpoints",
    summary="Average the weights of checkpoints of one run, tensor by tensor. The originals stay.",
    options=Options,
    run=run,
    examples=("ns average_checkpoints --checkpoints hf/step-100 hf/step-200 --output_model=hf/mean",),
)
