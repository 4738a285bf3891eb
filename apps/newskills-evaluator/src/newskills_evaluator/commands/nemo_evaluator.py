# SPDX-License-Identifier: Apache-2.0
"""`ns nemo_evaluator`: tasks of NVIDIA's NeMo Evaluator as jobs of a cluster, with their servers beside them."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills_evaluator.running.options import NemoEvaluatorOptions

COMMAND = Command(
    name="nemo_evaluator",
    summary="Run tasks of NVIDIA's NeMo Evaluator, each in its own container and job. The model and the "
    "judge can be served on nodes of their own. ++key=value changes the configuration.",
    options=NemoEvaluatorOptions,
    run="newskills_evaluator.running.jobs:run",
    result="newskills_evaluator.running.jobs:result",
    prepare="newskills_evaluator.running.jobs:prepare",
    any_keys=True,
    examples=(
        "ns nemo_evaluator --cluster=slurm --nemo_evaluator_config=tasks.yaml --output_dir=/results "
        "--server_type=vllm --server_model=/models/mine --server_gpus=8",
        "ns nemo_evaluator --nemo_evaluator_config=tasks.yaml --output_dir=results "
        "--server_base_url=http://localhost:8000 --server_model=my-model",
    ),
)
