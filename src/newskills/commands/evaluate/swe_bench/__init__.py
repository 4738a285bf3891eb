# SPDX-License-Identifier: Apache-2.0
"""`ns swe_bench export|grade|report`: patches for the harness of SWE-bench, and its verdicts."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from newskills.commands.command import Command
from newskills.pipelines.options import DryRun, doc


class Options(Struct, frozen=True, kw_only=True):
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


COMMAND = Command(
    name="swe_bench",
    summary="Grade patches as SWE-bench does: run the tests in containers and read their logs by the package "
    "swebench, or export predictions for its harness and read its verdicts. An instance that could not be judged "
    "is unscored, never wrong.",
    options=Options,
    run="newskills.commands.evaluate.swe_bench.work:run",
    examples=(
        "ns swe_bench export output.jsonl --output_file=predictions.jsonl --model_name=my-model",
        "ns swe_bench report output.jsonl --reports=logs/run_evaluation/run --output_file=graded.jsonl",
        "ns swe_bench grade output.jsonl --output_file=graded.jsonl --workers=8",
        "ns swe_bench grade output.jsonl --output_file=graded.jsonl --engine=harness",
    ),
)
