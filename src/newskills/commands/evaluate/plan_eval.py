# SPDX-License-Identifier: Apache-2.0
"""`ns plan_eval`: how many problems and samples it takes to see a difference, and what that costs."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.evaluation.plan_eval import PlanEvalOptions, plan_benchmarks, run

COMMAND = Command(
    name="plan_eval",
    summary="Plan an evaluation: how many problems, and samples of each, it takes to detect a difference between two "
    "models, and what that costs in tokens, time and money, estimated from existing runs, or from a probe of "
    "20 random "
    "problems that it runs itself.",
    options=PlanEvalOptions,
    any_keys=True,
    run=run,
    result=plan_benchmarks,
    examples=(
        "ns plan_eval results/base --delta 2",
        "ns plan_eval results/base results/tuned --delta 1 --prices 0.15,0.60",
        "ns plan_eval --accuracy 60 --problems 1319 --delta 2",
        "ns plan_eval --benchmarks gsm8k:4 --model gpt-4o-mini --server_type openai --delta 2 --prices 0.15,0.60",
    ),
)
