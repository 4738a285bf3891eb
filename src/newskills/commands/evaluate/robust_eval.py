# SPDX-License-Identifier: Apache-2.0
"""`ns robust_eval`: a model on benchmarks, asked in many wordings."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.commands.shared.essentials import GENERATION, MODEL_AND_RESULTS
from newskills.pipelines.evaluation.robust_options import RobustEvalOptions
from newskills.pipelines.options import OLD_NAMES
from newskills.run.planning.config import GenerationConfig

COMMAND = Command(
    name="robust_eval",
    summary="Evaluate a model on benchmarks with many wordings of the prompt, one `ns eval` per wording, and "
    "print how much the wording changes the scores: mean, spread, sensitivity, consistency. An "
    "interrupted run resumes where it stopped.",
    options=RobustEvalOptions,
    config=GenerationConfig,
    aliases=OLD_NAMES,
    run="newskills.pipelines.evaluation.robust:run",
    result="newskills.pipelines.evaluation.robust:evaluate_with_prompts",
    prepare="newskills.pipelines.evaluation.robust:prepare",
    examples=(
        "ns robust_eval --benchmarks=gpqa:8 --prompt_set_config=robustness/prompt_set_config "
        "--server_type=vllm --model=Qwen/Qwen3-8B --server_address=http://host:8000 --output_dir=robust",
        "ns robust_eval --benchmarks=gsm8k:4 --prompt_set_config=./prompts.yaml --server_type=llamacpp "
        "--model=smollm2 --output_dir=robust ++max_samples=50",
    ),
    essentials=("benchmarks", "prompt_set_config", *MODEL_AND_RESULTS, *GENERATION),
)
