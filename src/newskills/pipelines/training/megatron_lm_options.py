# SPDX-License-Identifier: Apache-2.0
"""The options of `ns megatron_lm train`."""

from __future__ import annotations

from typing import Annotated

from newskills.pipelines.options import doc
from newskills.pipelines.training.options import TRAINING, TrainingOptions


class MegatronLmOptions(TrainingOptions, frozen=True, kw_only=True):
    arguments: Annotated[list[str], doc("more arguments for Megatron-LM, after --", {"positional": True})] = []  # noqa: RUF012 - copied
    megatron_model: Annotated[str, doc("Megatron-LM checkpoint to start from")]
    tokenizer_model: Annotated[str, doc("Hugging Face folder or name with the tokenizer")]
    per_split_data_path: Annotated[
        str, doc("JSON file that names the data of each split (--per-split-data-args-path)")
    ]
    entrypoint: Annotated[str, doc("pretrain_gpt.py, pretrain_mamba.py, or a path", TRAINING)] = "pretrain_gpt.py"
    init_cmd: Annotated[str | None, doc("shell text to run before it, on each node", TRAINING)] = None
    megatron_path: Annotated[
        str | None,
        doc("folder of Megatron-LM in the container (default: MEGATRON_PATH or /opt/Megatron-LM)", TRAINING),
    ] = None
