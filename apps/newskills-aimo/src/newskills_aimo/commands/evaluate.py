# SPDX-License-Identifier: Apache-2.0
"""`ns aimo evaluate`: a trained model on a benchmark of mathematics."""

from __future__ import annotations

from typing import Annotated

from newskills.commands.command import Command
from newskills.pipelines.options import doc
from newskills.run.planning.config import GenerationConfig
from newskills_aimo.commands.options import BenchmarkOptions, UseVllm


class Options(BenchmarkOptions, frozen=True, kw_only=True):
    benchmark: Annotated[
        str,
        doc(
            "math, math_level1, math_level5, math500, aime, amc, gsm8k, or any other; several separated by commas"
        ),
    ] = "math"
    use_vllm: UseVllm = False


COMMAND = Command(
    name="aimo_evaluate",
    summary="Evaluate a model of the aimo recipe: it is served here, prompted as in training, and graded by "
    "the grader that gave the reward. ++ keys are those of ns eval.",
    options=Options,
    config=GenerationConfig,
    run="newskills_aimo.running.evaluation:run_evaluate",
    result="newskills_aimo.running.evaluation:evaluate_result",
    examples=(
        "ns aimo evaluate --model ./outputs/rl_math --benchmark math --use-vllm",
        "ns aimo evaluate --model ./outputs/sft_tir --benchmark aime --use-tir --num-samples 8",
    ),
)
