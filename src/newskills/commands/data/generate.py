# SPDX-License-Identifier: Apache-2.0
"""`ns generate`: a model over a JSONL file."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.commands.shared.essentials import GENERATION, MODEL_AND_RESULTS
from newskills.pipelines.generation.options import GenerateOptions
from newskills.pipelines.options import OLD_NAMES
from newskills.run.planning.config import GenerationConfig

COMMAND = Command(
    name="generate",
    summary="Run a model over a JSONL file: fill the prompt for each row, send it, and write each row with "
    "its answer, in input order. An interrupted run resumes where it stopped.",
    options=GenerateOptions,
    config=GenerationConfig,
    aliases=OLD_NAMES,
    run="newskills.pipelines.generation.work:run",
    result="newskills.pipelines.generation.work:generate_outputs",
    prepare="newskills.pipelines.generation.jobs:prepare",
    examples=(
        "ns generate --server_type=openai --model=gpt-4o-mini --output_dir=./output --input_file=./input.jsonl "
        "++prompt_config=generic/math",
        "ns generate --server_type=llamacpp --model=smollm2 --output_dir=out --input_file=in.jsonl "
        "++prompt_config=generic/default --num_random_seeds=4",
    ),
    essentials=(
        "input_file",
        *MODEL_AND_RESULTS,
        "num_random_seeds",
        "num_chunks",
        "generation_type",
        "with_sandbox",
        *GENERATION,
    ),
)
