# SPDX-License-Identifier: Apache-2.0
"""`ns serve_gym`: benchmarks and graders as resources servers of NeMo Gym."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.serving.serve_gym_options import GymKeys, ServeGymOptions

COMMAND = Command(
    name="serve_gym",
    summary="Serve a benchmark or a grader as a resources server of NeMo Gym, so that gym eval run, NeMo-RL and verl "
    "use it. --folder writes the folder that Gym starts it from, with the benchmark's rows. An answer that could not "
    "be graded is masked; it never gets reward 0.",
    options=ServeGymOptions,
    config=GymKeys,
    result="newskills.pipelines.serving.serve_gym:run_gym_server",
    examples=(
        "ns serve_gym --benchmark=gsm8k --folder=gym",
        "ns serve_gym --benchmark=gsm8k --port=9070",
        "ns serve_gym --grader=math ++reward.wrong=-0.5",
        "ns serve_gym --benchmark=aime24 ++tool_modules=[python] --folder=gym",
    ),
)
