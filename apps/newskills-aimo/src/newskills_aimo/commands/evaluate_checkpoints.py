# SPDX-License-Identifier: Apache-2.0
"""`ns aimo evaluate_checkpoints`: how a model got better, or worse, while it was trained."""

from __future__ import annotations

from typing import Annotated

from newskills.commands.command import Command
from newskills.pipelines.options import doc
from newskills.run.planning.config import GenerationConfig
from newskills_aimo.commands.options import BenchmarkOptions, UseVllm


class Options(BenchmarkOptions, frozen=True, kw_only=True):
    benchmark: Annotated[str, doc("names as in ns aimo evaluate; several separated by commas")] = "math500"
    base_model: Annotated[str | None, doc("base model of LoRA checkpoints, if the checkpoints do not name it")] = (
        None
    )
    use_vllm: UseVllm = False


COMMAND = Command(
    name="aimo_evaluate_checkpoints",
    summary="Evaluate every checkpoint of a training folder (--model) and show the scores by step, with "
    "intervals. Checkpoints that are already evaluated are skipped. ++ keys are those of ns eval.",
    options=Options,
    config=GenerationConfig,
    run="newskills_aimo.running.evaluation:run_checkpoints",
    result="newskills_aimo.running.evaluation:checkpoints_result",
    aliases={"checkpoints_dir": "model", "checkpoint_dir": "model"},
    examples=(
        "ns aimo evaluate_checkpoints --model outputs/rl_math --benchmark math500 --output-dir results/curve",
    ),
)
