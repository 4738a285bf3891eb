# SPDX-License-Identifier: Apache-2.0
"""The options that say which model judges answers, and where it runs."""

from __future__ import annotations

from typing import Annotated, Literal

from newskills.pipelines.options import WorkOptions, doc

JUDGE = {"group": "judge (for benchmarks that need one)"}
Kind = Literal["llm", "math_judge", "comet", "nvembed", "arena"]


class JudgeOptions(WorkOptions, frozen=True, kw_only=True):
    """They apply to benchmarks that need a judge; with `judge_all` to all whose metric knows judgements."""

    judge_model: Annotated[
        str | None, doc("name or path of the judge model (default: the benchmark's own)", JUDGE)
    ] = None
    judge_server_type: Annotated[str | None, doc("server type of the judge, as in --server_type", JUDGE)] = None
    judge_server_address: Annotated[str | None, doc("address of a running judge", JUDGE)] = None
    judge_server_gpus: Annotated[int | None, doc("host the judge on this many GPUs per node", JUDGE)] = None
    judge_server_nodes: Annotated[int | None, doc("nodes for the judge's server", JUDGE)] = None
    judge_server_args: Annotated[
        str | None, doc("more arguments for the judge's engine, passed on unchanged", JUDGE)
    ] = None
    judge_server_entrypoint: Annotated[str | None, doc("another start command for the judge's engine", JUDGE)] = (
        None
    )
    judge_server_container: Annotated[
        str | None, doc("container image of the judge's server (clusters)", JUDGE)
    ] = None
    judge_batch_api: Annotated[bool, doc("ask the judge in batches, as --batch_api does the model", JUDGE)] = False
    judge_container: Annotated[str | None, doc("container image of the judge's client (clusters)", JUDGE)] = None
    judge_type: Annotated[
        Kind | None,
        doc(
            "llm: one question per answer; math_judge: the same, but no question where the answers are equal "
            "as text; comet, nvembed: a trained model instead of questions (translation; multiple choice); "
            "arena: pairwise comparison",
            JUDGE,
        ),
    ] = None
    judge_generation_type: Annotated[
        Literal["generate", "math_judge"] | None, doc("older form of --judge_type", JUDGE)
    ] = None
    judge_generation_module: Annotated[
        str | None, doc("your own judge: FILE.py or MODULE, with SOLVER or ::MAKER", JUDGE)
    ] = None
    judge_step_fn: Annotated[
        str | None,
        doc("your own function, FILE.py::NAME: takes records, returns a text with a verdict for each", JUDGE),
    ] = None
    extra_judge_args: Annotated[str, doc("++ options for the judge, as one text", JUDGE)] = ""
    judge_pipeline_kwargs: Annotated[
        str, doc("JSON of options for the judge's jobs: model, server_*, partition, num_jobs, …", JUDGE)
    ] = ""
    judge_sbatch_kwargs: Annotated[str, doc("JSON of sbatch settings for the judge's jobs", JUDGE)] = ""
    judge_all: Annotated[bool, doc("also judge benchmarks that need no judge", JUDGE)] = False
