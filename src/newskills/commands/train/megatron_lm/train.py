# SPDX-License-Identifier: Apache-2.0
"""`ns megatron_lm train`: training with Megatron-LM on a cluster."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.training.foreign.options import MegatronLmOptions

COMMAND = Command(
    name="train_megatron_lm",
    summary="Train with Megatron-LM on a cluster, one process per GPU. Give its own arguments after --, or "
    "as ++keys: ++lr=1e-5 is --lr=1e-5, ++bf16=true is --bf16.",
    options=MegatronLmOptions,
    run="newskills.pipelines.training.foreign.megatron_lm:run",
    prepare="newskills.pipelines.training.foreign.megatron_lm:prepare",
    result="newskills.pipelines.training.foreign.megatron_lm:train_with_megatron_lm",
    any_keys=True,
    examples=(
        "ns megatron_lm train --cluster=slurm --expname=pretraining --megatron_model=/models/base-megatron "
        "--tokenizer_model=/models/base --per_split_data_path=/data/blend.json --output_dir=/results/pretraining "
        "--num_nodes=4 --num_gpus=8 ++use_checkpoint_args=true -- --lr 1e-5 --train-iters 1000",
    ),
)
