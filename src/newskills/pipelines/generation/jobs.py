# SPDX-License-Identifier: Apache-2.0
"""`ns generate` as a pipeline: jobs for seeds and chunks, and the user's own command after each finished file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from newskills.config.command_line import Parsed
from newskills.launch.clusters.config import ClusterConfig
from newskills.launch.declarative import JobDict
from newskills.launch.machines.ssh import shell_of
from newskills.launch.scripts.script import BaseJobScript
from newskills.pipelines.arguments import command_line
from newskills.pipelines.generation.options import GenerateOptions
from newskills.pipelines.generation.units import from_benchmark, plan_generation
from newskills.pipelines.models import choose_models
from newskills.pipelines.notices import print_note
from newskills.pipelines.pages import dry_run, show_explained
from newskills.pipelines.placement.cluster import paths_of
from newskills.pipelines.submission.groups import job_group, main_container
from newskills.pipelines.submission.plan import Plan, job_name
from newskills.pipelines.submission.plan_view import settings_of
from newskills.pipelines.submission.prepared import PreparedSubmission, prepare_submission
from newskills.pipelines.units.checks import check_inputs, check_prompts, fetch_weights, with_code, with_inputs
from newskills.pipelines.units.jobs import UnitJobs, parts_of, unfinished_units
from newskills.run.planning.spec import RunSpec, Unit


def prepare(parsed: Parsed[GenerateOptions], cluster: ClusterConfig) -> PreparedSubmission | None:
    """Resolve and check everything; return None where nothing is left to do. Raises NewskillsError."""
    options = parsed.options
    paths = paths_of(cluster, main_container(options), options)
    planned = plan_generation(parsed, there=paths)
    if parsed.explain:
        show_explained(planned)
        return None
    if dry_run(options, planned):
        options = replace(options, dry_run=True)
    units, plan = [piece.unit for piece in planned], Plan()
    shell = shell_of(cluster, os.environ)
    if from_benchmark(parsed):
        units = with_inputs(units, paths, plan, shell)
    left = units
    if not options.rerun_done:
        left = unfinished_units(units, paths, shell)
    folder = units[0].merged.parent
    if not left:
        print_note(f"nothing to do: all results are already in {folder}")
        return None
    if options.wandb_name is not None:
        print_note("--wandb_name has no effect on clusters: ns generate writes no metrics there")
    choice = choose_models(options, parsed.overrides, elsewhere=True)
    check_inputs(left, paths, shell, after=options.run_after, shipped=list(plan.shipments))
    check_prompts(
        left, hosted=choice.host is not None, paths=paths, shipments=plan.shipments, dry_run=options.dry_run
    )
    if not options.dry_run:
        for host in (choice.host, *choice.more.values()):
            fetch_weights(host, paths)
    shared = UnitJobs(
        options=options,
        paths=paths,
        spec=RunSpec(
            units=(),
            output_dir="",
            rerun_done=options.rerun_done,
            resume_with=command_line("generate"),
            log_dir=str(folder / "generation-logs"),
            sequential=options.single_node_mode == "sequential",
        ),
        host=choice.host,
        more=choice.more,
        parts=parts_of(options, cluster),
        name="generate",
        preprocess_cmd=options.preprocess_cmd,
    )
    jobs = shared.add(with_code(left, paths), plan)
    if options.postprocess_cmd:
        _add_postprocessing(options, options.postprocess_cmd, left, jobs, plan)
    shown = {
        "units": f"{len(left)} to do of {len(units)}",
        "output": str(folder),
        **settings_of(planned[0].resolved),
    }
    return prepare_submission(options.expname or "generate", plan, cluster, options, shown)


def _add_postprocessing(
    options: GenerateOptions, text: str, units: Sequence[Unit], jobs: Mapping[Path, Sequence[JobDict]], plan: Plan
) -> None:
    """Add `--postprocess_cmd` once per output file, after all of its chunks, and only where it is complete."""
    names = {unit.merged: unit for unit in units}
    for output, unit in names.items():
        done = f"{output}.done"
        text_if_done = f'[[ -e $1 ]] || {{ echo "$1 is missing" >&2; exit 1; }}\n{text}'
        script = BaseJobScript(["bash", "-c", text_if_done, "bash", done])
        seed = "" if unit.seed is None else f"-rs{unit.seed}"
        plan.add(
            job_name(f"postprocess{seed}"),
            [job_group(script, options)],
            jobs[output],
            outputs=(str(output.parent),),
            makes=(f"{output} (--postprocess_cmd)",),
        )
