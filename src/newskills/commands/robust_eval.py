# SPDX-License-Identifier: Apache-2.0
"""`ns robust_eval`: a model on benchmarks, asked in many wordings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from newskills.commands import evaluate
from newskills.commands._command import Command
from newskills.commands._options import OLD_NAMES, doc
from newskills.run.config import GenerationConfig

if TYPE_CHECKING:
    pass


class Options(evaluate.Options, frozen=True, kw_only=True):
    prompt_set_config: Annotated[
        str,
        doc("prompts of each benchmark: a set's name, or YAML of benchmark: [{prompt_config, extract_regex}, …]"),
    ] = "robustness/prompt_set_config"


COMMAND = Command(
    name="robust_eval",
    summary="Evaluate a model on benchmarks with many wordings of the prompt, one `ns eval` for each, and print how "
    "much the wording changes the scores: mean, spread, sensitivity, consistency. Goes on where it was interrupted.",
    options=Options,
    config=GenerationConfig,
    aliases=OLD_NAMES,
    run="newskills.commands._robust:run",
    result="newskills.commands._robust:result",
    prepare="newskills.commands._robust:prepare",
    examples=(
        "ns robust_eval --benchmarks=gpqa:8 --prompt_set_config=robustness/prompt_set_config "
        "--server_type=vllm --model=Qwen/Qwen3-8B --server_address=http://host:8000 --output_dir=robust",
        "ns robust_eval --benchmarks=gsm8k:4 --prompt_set_config=./prompts.yaml --server_type=llamacpp "
        "--model=smollm2 --output_dir=robust ++max_samples=50",
    ),
)
