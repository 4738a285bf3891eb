# SPDX-License-Identifier: Apache-2.0
"""`ns serve_tinker`: the Tinker API on this machine's CPU."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills_tinker.running.serving import ServeTinkerOptions, serve_tinker

COMMAND = Command(
    name="serve_tinker",
    summary="Serve the Tinker API on this machine: the public `tinker` client trains and samples small Llama "
    "models on a CPU (LoRA), without costs or an account. Saved states survive a restart. Needs "
    "newskills[train] and protobuf.",
    options=ServeTinkerOptions,
    result=serve_tinker,
    examples=(
        "ns serve_tinker --model=smollm2 --output_dir=tinker-states",
        "ns serve_tinker --model=models/tiny --model_name=my/tiny --output_dir=states --port=9070 --threads=1",
    ),
)
