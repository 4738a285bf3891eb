# SPDX-License-Identifier: Apache-2.0
"""`ns quickstart`: the main job on an embedded default."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.start.quickstart_options import QuickstartOptions

COMMAND = Command(
    name="quickstart",
    summary="Train a real 135M model to sort numbers on this machine's CPU: evaluate it, generate data, "
    "fine-tune (SFT), train with reinforcement learning (GRPO), evaluate again on the same held-out "
    "problems, and print the comparison with its interval. Needs newskills[local,train]; no GPU, no "
    "account. --no_train: only evaluate it on two benchmarks with several seeds.",
    options=QuickstartOptions,
    run="newskills.pipelines.start.quickstart:run",
    result="newskills.pipelines.start.quickstart:run_quickstart",
)
