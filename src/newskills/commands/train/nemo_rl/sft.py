# SPDX-License-Identifier: Apache-2.0
"""`ns nemo_rl sft`: supervised fine-tuning with NVIDIA's NeMo-RL on a cluster."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.training.foreign.options import NemoRlOptions


class Options(NemoRlOptions, frozen=True, kw_only=True):
    """Those of all trainings with NeMo-RL."""


COMMAND = Command(
    name="sft_nemo_rl",
    summary="Fine-tune with NVIDIA's NeMo-RL on a cluster: writes its configuration, starts Ray on the "
    "nodes, trains, and converts the last checkpoint to a Hugging Face folder. ++key=value sets "
    "NeMo-RL's own keys.",
    options=Options,
    run="newskills.pipelines.training.foreign.nemo_rl:run",
    prepare="newskills.pipelines.training.foreign.nemo_rl:prepare",
    result="newskills.pipelines.training.foreign.nemo_rl:train_with_nemo_rl",
    any_keys=True,
    aliases={"hf_model": "model"},
    examples=(
        "ns nemo_rl sft --cluster=slurm --expname=my-sft --hf_model=/models/base --training_data=/data/train.jsonl "
        "--output_dir=/results/my-sft --num_nodes=4 --num_gpus=8 --backend=megatron --dependent_jobs=3 "
        "++policy.megatron_cfg.tensor_model_parallel_size=4",
        "ns nemo_rl sft --cluster=slurm --hf_model=/models/base --output_dir=/results/my-sft --run_conversion_only "
        "--average_steps=600,800,1000 --final_hf_path=/models/mine",
    ),
)
