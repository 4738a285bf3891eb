# SPDX-License-Identifier: Apache-2.0
"""`ns start_server`: a model, served in the foreground until Ctrl-C."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.model_server.options import StartServerOptions
from newskills.pipelines.options import OLD_NAMES

COMMAND = Command(
    name="start_server",
    summary="Serve a model in the foreground: prints its address once it answers, then its log; Ctrl-C stops "
    "everything that was started.",
    options=StartServerOptions,
    run="newskills.pipelines.model_server.work:run",
    result="newskills.pipelines.model_server.work:serve_model",
    prepare="newskills.pipelines.model_server.jobs:prepare",
    aliases=OLD_NAMES,
    examples=(
        "ns start_server --server_type=llamacpp --model=smollm2 --port=5000",
        "ns start_server --cluster=local --server_type=vllm --model=meta-llama/Llama-3.1-8B-Instruct --num_gpus=1",
        "ns start_server --cluster=slurm --server_type=vllm --model=/models/small --server_gpus=8 --create_tunnel",
    ),
)
