# SPDX-License-Identifier: Apache-2.0
"""`ns eval`: a model on benchmarks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from newskills.commands._command import Command
from newskills.commands._judge_options import JudgeOptions
from newskills.commands._options import JOB, OLD_NAMES, AcceptLost, doc
from newskills.run.config import GenerationConfig

if TYPE_CHECKING:
    pass


class Options(JudgeOptions, frozen=True, kw_only=True):
    benchmarks: Annotated[str, doc("name[:samples],… ; samples ≥ 1 = seeds at temperature 0.7; none = greedy")]
    output_dir: Annotated[str | None, doc("folder of the results (default: results/<expname>)")] = None
    data_dir: Annotated[str | None, doc("where prepared data lies")] = None
    split: Annotated[str | None, doc("split to evaluate (default: the benchmark's own)")] = None
    extra_benchmark_map: Annotated[str | None, doc("JSON file name → folder of further benchmarks")] = None
    summarize_sbatch_kwargs: Annotated[str, doc("JSON of sbatch settings of the summary", JOB)] = ""
    auto_summarize_results: Annotated[bool, doc("tables and metrics.json after the run")] = True
    metric_type: Annotated[str | None, doc("other metrics class (name or module::Class)")] = None
    metrics_kwargs: Annotated[str, doc("JSON of arguments for it")] = ""
    accept_lost: AcceptLost = 1.0


COMMAND = Command(
    name="eval",
    summary="Evaluate a model on benchmarks: generate, grade while generating, and print tables with intervals. "
    "Interrupted runs go on where they were; samples lost to an instrument failure are never counted as wrong.",
    options=Options,
    config=GenerationConfig,
    aliases=OLD_NAMES,
    run="newskills.commands._evaluating:run",
    result="newskills.commands._evaluating:result",
    prepare="newskills.commands._evaluating:prepare",
    examples=(
        "ns eval --benchmarks=gsm8k:4,math-500:2 --model=smollm2 --server_type=llamacpp --output_dir=results "
        "++max_samples=50",
        "ns eval --benchmarks=gsm8k:0 --model=gpt-4o-mini --server_type=openai --output_dir=results",
        "ns eval --benchmarks=truthfulqa --model=smollm2 --server_type=llamacpp --output_dir=results "
        "--judge_model=gpt-4.1 --judge_server_type=openai",
    ),
)
