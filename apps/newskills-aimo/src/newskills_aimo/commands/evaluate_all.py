# SPDX-License-Identifier: Apache-2.0
"""`ns aimo evaluate_all`: a trained model on all benchmarks of the recipe."""

from __future__ import annotations

from typing import Annotated

from newskills.commands.command import Command
from newskills.pipelines.options import doc
from newskills.run.planning.config import GenerationConfig
from newskills_aimo.commands.options import BenchmarkOptions, UseVllm


class Options(BenchmarkOptions, frozen=True, kw_only=True):
    benchmarks: Annotated[list[str], doc("names of benchmarks (default: math math500 aime amc gsm8k)")] = []  # noqa: RUF012 - copied
    merge_output: Annotated[bool, doc("also write all scores into one file, all_results.json")] = False
    vllm: UseVllm = True


COMMAND = Command(
    name="aimo_evaluate_all",
    summary="Evaluate a model of the aimo recipe on all its benchmarks with one server. Without a GPU, "
    "llama.cpp serves it, as with --no-vllm. ++ keys are those of ns eval.",
    options=Options,
    config=GenerationConfig,
    run="newskills_aimo.running.evaluation:run_all",
    result="newskills_aimo.running.evaluation:all_result",
    aliases={"use_vllm": "vllm"},
    examples=("ns aimo evaluate_all --model ./outputs/rl_math --benchmarks math500 aime --merge-output",),
)
