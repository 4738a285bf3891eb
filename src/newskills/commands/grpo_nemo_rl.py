# SPDX-License-Identifier: Apache-2.0
"""`ns nemo_rl grpo`: reinforcement learning with NVIDIA's NeMo-RL on a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from newskills.commands._cluster_training import (
    JudgeAddress,
    JudgeArgs,
    JudgeContainer,
    JudgeCount,
    JudgeEntrypoint,
    JudgeGpus,
    JudgeModel,
    JudgeNodes,
    JudgeType,
    NemoRlOptions,
    PromptConfig,
    SandboxOverrides,
    WithSandbox,
)
from newskills.commands._command import Command

if TYPE_CHECKING:
    pass


class Options(NemoRlOptions, frozen=True, kw_only=True):
    """Those of all trainings with NeMo-RL, and what runs beside it."""

    prompt_config: PromptConfig = "generic/math"
    server_model: JudgeModel = None
    server_address: JudgeAddress = None
    server_type: JudgeType = None
    server_gpus: JudgeGpus = None
    server_nodes: JudgeNodes = 1
    n_servers: JudgeCount = 1
    server_args: JudgeArgs = ""
    server_entrypoint: JudgeEntrypoint = None
    server_container: JudgeContainer = None
    with_sandbox: WithSandbox = False
    sandbox_env_overrides: SandboxOverrides = []  # noqa: RUF012 - copied


COMMAND = Command(
    name="grpo_nemo_rl",
    summary="Reinforce a model with NVIDIA's NeMo-RL on a cluster. Rows of {problem, expected_answer} are rewarded by "
    "the math grader of evaluations; rows of NeMo Gym by what its YAML names. ++key=value are NeMo-RL's own keys.",
    options=Options,
    run="newskills.commands._nemo_rl_training:run",
    prepare="newskills.commands._nemo_rl_training:prepare",
    result="newskills.commands._nemo_rl_training:result",
    any_keys=True,
    aliases={"hf_model": "model"},
    examples=(
        "ns nemo_rl grpo --cluster=slurm --expname=my-grpo --hf_model=/models/sft --training_data=/data/train.jsonl "
        "--validation_data=/data/test.jsonl --output_dir=/results/my-grpo --num_gpus=8",
        "ns nemo_rl grpo --cluster=slurm --hf_model=/models/sft --training_data=/data/gym.jsonl "
        "--output_dir=/results/gym --num_nodes=2 --server_model=/models/judge --server_type=vllm --server_gpus=8 "
        "--n_servers=2",
    ),
)
