# SPDX-License-Identifier: Apache-2.0
"""The options of `ns eval`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from newskills.config.command_line import Parsed, parse
from newskills.config.fields import leaves
from newskills.pipelines.evaluation.judge_options import JudgeOptions
from newskills.pipelines.options import JOB, OLD_NAMES, AcceptLost, PromptSourceOption, doc


class EvalOptions(JudgeOptions, frozen=True, kw_only=True):
    benchmarks: Annotated[
        str,
        doc(
            "name[:samples],… or files (./mine.yaml, ./questions.csv ++columns={question: q}); samples ≥ 1: that many "
            "seeds at temperature 0.7; without samples: greedy"
        ),
    ]
    output_dir: Annotated[str | None, doc("folder for the results (default: results/<expname>)")] = None
    generation_type: Annotated[
        Literal["generate", "majority", "weighted_vote", "best_of_n", "genselect", "gensynthesis"] | None,
        doc(
            "how all benchmarks are answered, instead of in their own ways: generate: one answer to one request; "
            "the others combine several samples into one answer"
        ),
    ] = None
    generation_module: Annotated[
        str | None,
        doc(
            "the same by a solver of your own, module::maker or file.py::maker (without ::, its SOLVER), or a "
            "NeMo-Skills module by name, nemo_skills.inference.NAME"
        ),
    ] = None
    data_dir: Annotated[str | None, doc("folder of prepared data")] = None
    split: Annotated[str | None, doc("data split to evaluate (default: the benchmark's own)")] = None
    extra_benchmark_map: Annotated[
        str | None, doc("JSON file that maps names to folders with more benchmarks")
    ] = None
    prompt_source: PromptSourceOption = None
    summarize_sbatch_kwargs: Annotated[str, doc("JSON of sbatch settings for the summary job", JOB)] = ""
    auto_summarize_results: Annotated[bool, doc("print tables and write metrics.json after the run")] = True
    metric_type: Annotated[str | None, doc("another metrics class (name or module::Class)")] = None
    metrics_kwargs: Annotated[str, doc("JSON of arguments for the metrics class")] = ""
    accept_lost: AcceptLost = 1.0
    plan_cost: Annotated[
        bool,
        doc(
            "print tokens, time and cost of what is left (usual, in batches, prompts cached), and ask nothing but "
            "20 problems of each benchmark that has no answers yet, and its judge about 20 answers"
        ),
    ] = False
    json: Annotated[bool, doc("with --plan_cost: print everything as JSON")] = False
    until: Annotated[
        str | None,
        doc(
            "stop each benchmark early: 'ci<1.0' (score known to ±1.0 points, at 95 %), 'decided vs RUN' (better or "
            "worse than the results in RUN), 'rows=20' (20 random problems); without it, the same command continues"
        ),
    ] = None


def parse_words(words: Sequence[str]) -> Parsed[EvalOptions]:
    """Read `words` as `ns eval` does. Raises ConfigError, UnknownNameError."""
    from newskills.run.planning.config import GenerationConfig

    return parse(EvalOptions, words, command="eval", aliases=OLD_NAMES, keys=leaves(GenerationConfig))
