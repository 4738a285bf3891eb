# SPDX-License-Identifier: Apache-2.0
"""The options that say which model judges answers, and where it runs."""

from __future__ import annotations

from typing import Annotated, Literal

from newskills.pipelines.options import WorkOptions, doc

JUDGE = {"group": "judge (for benchmarks that need one)"}
Kind = Literal["llm", "math_judge", "comet", "nvembed", "arena"]


class JudgeOptions(WorkOptions, frozen=True, kw_only=True):
    """They apply to benchmarks that need a judge; with `judge_all` to all whose metric knows judgements."""

    judge_model: Annotated[str | None, doc("name or path of the judge (default: the benchmark's own)", JUDGE)] = (
        None
    )
    judge_server_type: Annotated[str | None, doc("as --server_type, of the judge", JUDGE)] = None
    judge_server_address: Annotated[str | None, doc("a judge that runs", JUDGE)] = None
    judge_server_gpus: Annotated[int | None, doc("host the judge on this many GPUs per node", JUDGE)] = None
    judge_server_nodes: Annotated[int | None, doc("nodes of its server", JUDGE)] = None
    judge_server_args: Annotated[str | None, doc("further arguments of its engine, as they are", JUDGE)] = None
    judge_server_entrypoint: Annotated[str | None, doc("other start command of its engine", JUDGE)] = None
    judge_server_container: Annotated[str | None, doc("container image of its server (clusters)", JUDGE)] = None
    judge_container: Annotated[str | None, doc("container image of the judge's client (clusters)", JUDGE)] = None
    judge_type: Annotated[
        Kind | None,
        doc(
            "llm: one question per answer; math_judge: none where the texts are equal; comet, nvembed: a trained "
            "model that runs with the judge (translations; choices)",
            JUDGE,
        ),
    ] = None
    judge_generation_type: Annotated[
        Literal["generate", "math_judge"] | None, doc("the same, as older documents have it", JUDGE)
    ] = None
    judge_generation_module: Annotated[
        str | None, doc("a judge of your own: FILE.py or MODULE, with SOLVER or ::MAKER", JUDGE)
    ] = None
    judge_step_fn: Annotated[
        str | None, doc("a function of your own, FILE.py::NAME: records → a text with a verdict for each", JUDGE)
    ] = None
    extra_judge_args: Annotated[str, doc("++ options of the judge, as one text", JUDGE)] = ""
    judge_pipeline_kwargs: Annotated[
        str, doc("JSON of options for the judge's jobs: model, server_*, partition, num_jobs, …", JUDGE)
    ] = ""
    judge_sbatch_kwargs: Annotated[str, doc("JSON of sbatch settings of the judge's jobs", JUDGE)] = ""
    judge_all: Annotated[bool, doc("judge the benchmarks that need no judge, too", JUDGE)] = False
