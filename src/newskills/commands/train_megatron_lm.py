# SPDX-License-Identifier: Apache-2.0
"""`ns megatron_lm train`: training with Megatron-LM on a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from newskills.commands._cluster_training import TRAINING, TrainingOptions
from newskills.commands._command import Command
from newskills.commands._options import doc

if TYPE_CHECKING:
    pass


class Options(TrainingOptions, frozen=True, kw_only=True):
    arguments: Annotated[list[str], doc("further arguments of Megatron-LM, behind --", {"positional": True})] = []  # noqa: RUF012 - copied
    megatron_model: Annotated[str, doc("checkpoint of Megatron-LM's to start from")]
    tokenizer_model: Annotated[str, doc("Hugging Face folder or name with the tokenizer")]
    per_split_data_path: Annotated[str, doc("JSON that names the data of each split (--per-split-data-args-path)")]
    entrypoint: Annotated[str, doc("pretrain_gpt.py, pretrain_mamba.py, or a path", TRAINING)] = "pretrain_gpt.py"
    init_cmd: Annotated[str | None, doc("shell text before it, on each node", TRAINING)] = None
    megatron_path: Annotated[
        str | None,
        doc("folder of Megatron-LM in the container (default: MEGATRON_PATH or /opt/Megatron-LM)", TRAINING),
    ] = None


COMMAND = Command(
    name="train_megatron_lm",
    summary="Train with Megatron-LM on a cluster, one process for each GPU. Its own arguments follow behind --, or as "
    "++keys: ++lr=1e-5 is --lr=1e-5, ++bf16=true is --bf16.",
    options=Options,
    run="newskills.commands._megatron_training:run",
    prepare="newskills.commands._megatron_training:prepare",
    result="newskills.commands._megatron_training:result",
    any_keys=True,
    examples=(
        "ns megatron_lm train --cluster=slurm --expname=pretraining --megatron_model=/models/base-megatron "
        "--tokenizer_model=/models/base --per_split_data_path=/data/blend.json --output_dir=/results/pretraining "
        "--num_nodes=4 --num_gpus=8 ++use_checkpoint_args=true -- --lr 1e-5 --train-iters 1000",
    ),
)
