# SPDX-License-Identifier: Apache-2.0
"""The options of `ns eval`."""

from __future__ import annotations

from typing import Annotated

from newskills.pipelines.evaluation.judge_options import JudgeOptions
from newskills.pipelines.options import JOB, AcceptLost, doc


class EvalOptions(JudgeOptions, frozen=True, kw_only=True):
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
