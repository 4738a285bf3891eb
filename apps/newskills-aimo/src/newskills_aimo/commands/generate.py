# SPDX-License-Identifier: Apache-2.0
"""`ns aimo generate`: answers of a trained model to problems."""

from __future__ import annotations

from typing import Annotated, Literal

from newskills.commands.command import Command
from newskills.pipelines.options import AtLeastOne, doc
from newskills.run.planning.config import GenerationConfig
from newskills_aimo.commands.options import AnswerOptions, UseVllm


class Options(AnswerOptions, frozen=True, kw_only=True):
    strategy: Annotated[
        Literal["greedy", "majority_vote", "weighted_vote", "genselect", "tir"],
        doc(
            "how the answer is chosen: one sample; majority vote; weighted vote; the sample that the model "
            "itself ranks best (genselect); with code run in the sandbox (tir)"
        ),
    ] = "greedy"
    problem: Annotated[str | None, doc("a problem")] = None
    input_file: Annotated[str | None, doc("JSONL file with `problem`, instead")] = None
    num_samples: Annotated[
        AtLeastOne | None, doc("answers to choose from (default 16); with tir, several vote (default: one)")
    ] = None
    use_vllm: UseVllm = False


COMMAND = Command(
    name="aimo_generate",
    summary="Answer problems with a model of the aimo recipe. ++ keys are those of ns generate.",
    options=Options,
    config=GenerationConfig,
    run="newskills_aimo.running.generation:run",
    result="newskills_aimo.running.generation:generate_answers",
    examples=(
        'ns aimo generate --model ./outputs/rl_math --strategy tir --problem "What is 17 squared?"',
        "ns aimo generate --model smollm2 --strategy majority_vote --num-samples 8 --input-file problems.jsonl",
    ),
)
