# SPDX-License-Identifier: Apache-2.0
"""`ns nemo_gym_rollouts`: rollouts of a model in the environments of NVIDIA's NeMo Gym."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.gym_rollouts.options import GymRolloutsOptions

COMMAND = Command(
    name="nemo_gym_rollouts",
    summary="Collect rollouts in the environments of NVIDIA's NeMo Gym: start its servers, serve the model beside them "
    "(or ask one at --server_address), and write what the model does. +key=value goes to NeMo Gym: +agent_name, "
    "+limit, +num_samples_in_parallel, +num_repeats. Rollouts whose file exists are not collected again.",
    options=GymRolloutsOptions,
    run="newskills.pipelines.gym_rollouts.jobs:run",
    result="newskills.pipelines.gym_rollouts.jobs:generate_rollouts",
    prepare="newskills.pipelines.gym_rollouts.jobs:prepare",
    any_keys=True,
    examples=(
        "ns nemo_gym_rollouts --cluster=slurm --config_paths=ns_tools/configs/ns_tools.yaml "
        "--input_file=/data/in.jsonl --output_dir=/results --model=/models/mine --server_type=vllm --server_gpus=8 "
        "--with_sandbox +agent_name=ns_tools_simple_agent +num_repeats=4",
        "ns nemo_gym_rollouts --config_paths=a.yaml --input_file=in.jsonl --output_dir=rollouts --gym_path=Gym "
        "--server_address=http://localhost:8000 --model=my-model +agent_name=simple",
    ),
)
