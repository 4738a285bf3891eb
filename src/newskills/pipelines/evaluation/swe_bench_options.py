# SPDX-License-Identifier: Apache-2.0
"""The options of `ns swe_bench`."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from newskills.pipelines.options import DryRun, doc


class SweBenchOptions(Struct, frozen=True, kw_only=True):
    action: Annotated[
        Literal["export", "grade", "report"],
        doc(
            "export: write the patches as the SWE-bench harness reads them; grade: run the tests; "
            "report: add the verdicts of a finished harness run to the records",
            {"positional": True},
        ),
    ]
    input_file: Annotated[str, doc("JSONL records with patches", {"positional": True})]
    output_file: Annotated[
        str | None,
        doc(
            "file to write: predictions (export), otherwise records with verdicts, such as "
            "eval-results/swe-bench/output.jsonl"
        ),
    ] = None
    reports: Annotated[
        str | None, doc("report: folder of the harness run (logs/run_evaluation/<run>), or the report of that run")
    ] = None
    model_name: Annotated[str, doc("model name to write into the predictions")] = "newskills"
    benchmark: Annotated[str, doc("grade: benchmark whose prepared rows hold the tests")] = "swe-bench"
    data_dir: Annotated[str | None, doc("folder of prepared data")] = None
    engine: Annotated[
        Literal["auto", "podman", "docker", "apptainer", "singularity", "enroot", "harness"],
        doc(
            "grade: program that runs the containers of the tests; harness: export, run the harness itself, which "
            "needs a docker daemon, report"
        ),
    ] = "auto"
    container_formatter: Annotated[
        str, doc("grade: where the images are, with fields of the row in braces: /images/{instance_id}.sif")
    ] = ""
    workers: Annotated[int, Meta(ge=1, description="grade: containers to run at once")] = 4
    timeout: Annotated[
        int, Meta(ge=1, description="grade: time limit in seconds for the tests of one instance")
    ] = 1800
    dry_run: DryRun = False
