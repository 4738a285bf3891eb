# SPDX-License-Identifier: Apache-2.0
"""`ns nemo_rl sft`: supervised fine-tuning with NVIDIA's NeMo-RL on a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from newskills.commands._cluster_training import NemoRlOptions
from newskills.commands._command import Command
from newskills.config.command_line import Parsed

if TYPE_CHECKING:
    from newskills.commands._submitting import Prepared
    from newskills.launch.cluster import ClusterConfig
    from newskills.launch.experiments import Experiment


class Options(NemoRlOptions, frozen=True, kw_only=True):
    """Those of all trainings with NeMo-RL."""


def run(parsed: Parsed[Options]) -> int:
    from newskills.commands import _nemo_rl_training

    return _nemo_rl_training.run(parsed)


def prepare(parsed: Parsed[Options], cluster: ClusterConfig) -> Prepared:
    from newskills.commands import _nemo_rl_training

    return _nemo_rl_training.prepare(parsed, cluster)


def result(parsed: Parsed[Options]) -> Experiment | None:
    from newskills.commands import _nemo_rl_training

    return _nemo_rl_training.result(parsed)


COMMAND = Command(
    name="sft_nemo_rl",
    summary="Fine-tune with NVIDIA's NeMo-RL on a cluster: writes its configuration, starts Ray on the nodes, trains, "
    "and makes a Hugging Face folder of the last checkpoint. ++key=value are NeMo-RL's own keys.",
    options=Options,
    run=run,
    prepare=prepare,
    result=result,
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
