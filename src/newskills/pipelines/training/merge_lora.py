# SPDX-License-Identifier: Apache-2.0
"""What `ns merge_lora` does: an adapter multiplied into its base."""

from __future__ import annotations

import sys
from pathlib import Path

from newskills.config.command_line import Parsed
from newskills.pipelines.dry_run import show_dry_run
from newskills.pipelines.extras import require_train
from newskills.pipelines.training.options import MergeOptions


def merge_adapter(parsed: Parsed[MergeOptions]) -> Path | None:
    """Merge the pairs and return the folder of the merged model; None for a dry run.

    Raises ConfigError, DataError, StorageError.
    """
    options = parsed.options
    if options.dry_run:
        show_dry_run(
            [
                ("reads", options.base_model, "the weights"),
                ("reads", options.adapter, "the LoRA pairs"),
                ("writes", options.output_model, "W + alpha / r · B A, in the base model's precision"),
            ]
        )
        return None
    require_train("torch", "safetensors")
    from newskills.train.convert.merge import merge_lora

    target = Path(options.output_model)
    pairs = merge_lora(Path(options.base_model), Path(options.adapter), target)
    sys.stdout.write(f"{target}: {pairs} pairs merged\n")
    return target
