# SPDX-License-Identifier: Apache-2.0
"""`ns eval`: a model on benchmarks."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.commands.shared.essentials import GENERATION, MODEL_AND_RESULTS
from newskills.pipelines.evaluation.options import EvalOptions
from newskills.pipelines.options import OLD_NAMES
from newskills.run.planning.config import GenerationConfig

COMMAND = Command(
    name="eval",
    summary="Evaluate a model on benchmarks: generate, grade while generating, and print tables with "
    "intervals. An interrupted run resumes where it stopped. A failed request is unscored, never a "
    "wrong answer. In Python: newskills.evaluate. (ns evaluate is another command: it runs NeMo "
    "Evaluator configs.)",
    options=EvalOptions,
    config=GenerationConfig,
    aliases=OLD_NAMES,
    run="newskills.pipelines.evaluation.work:run",
    result="newskills.pipelines.evaluation.work:evaluate_benchmarks",
    prepare="newskills.pipelines.evaluation.jobs:prepare",
    examples=(
        "ns eval --benchmarks=gsm8k:4,math-500:2 --model=smollm2 --server_type=llamacpp --output_dir=results "
        "++max_samples=50",
        "ns eval --benchmarks=gsm8k:0 --model=gpt-4o-mini --server_type=openai --output_dir=results",
        "ns eval --benchmarks=truthfulqa --model=smollm2 --server_type=llamacpp --output_dir=results "
        "--judge_model=gpt-4.1 --judge_server_type=openai",
    ),
    essentials=("benchmarks", *MODEL_AND_RESULTS, "judge_model", "judge_server_type", "with_sandbox", *GENERATION),
)
