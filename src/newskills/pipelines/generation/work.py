# SPDX-License-Identifier: Apache-2.0
"""What `ns generate` does. Apart from its options, so that help and completion load no engine."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from newskills.base.errors import NewskillsError
from newskills.base.terminal import counted
from newskills.config.command_line import Parsed
from newskills.launch.experiments import Experiment
from newskills.pipelines.arguments import command_line
from newskills.pipelines.generation.options import GenerateOptions
from newskills.pipelines.generation.units import CONTAMINATION, generation_kind, plan_generation
from newskills.pipelines.models import choose_models, hosting_of
from newskills.pipelines.options import tracking_of
from newskills.pipelines.pages import cache_line, dry_run, ledger_line, show_explained, show_plan
from newskills.pipelines.placement.cluster import target_cluster
from newskills.pipelines.placement.packaged_code import within_repository
from newskills.run.engine.execute import execute
from newskills.run.engine.preflight import asks_nothing
from newskills.run.hosting.roles import at_servers, check_units, host_servers
from newskills.run.judging.contamination import contamination_line
from newskills.run.planning.plan import PlannedUnit
from newskills.run.planning.spec import RunResult, RunSpec, UnitResult
from newskills.run.records.paths import done_path
from newskills.run.reporting.tables import finish_counts
from newskills.run.reporting.tracking import log_reports


def run(parsed: Parsed[GenerateOptions]) -> int:
    options = parsed.options
    if (cluster := target_cluster(options, parsed.given, options.num_jobs)) is not None:
        from newskills.pipelines.generation.jobs import prepare
        from newskills.pipelines.submission.submit import run_prepared

        ready = prepare(parsed, cluster)
        if ready is not None:
            return run_prepared(ready)
        return 0
    planned = plan_generation(parsed)
    if parsed.explain:
        show_explained(planned)
        return 0
    if dry_run(options, planned):
        show_plan(planned)
        return 0
    result = run_generation(parsed, planned)
    for unit in result.units:
        counts = f"; {ledger_line(unit.ledger)}" if unit.ledger.total else ""
        if finishes := finish_counts(unit.ledger):
            counts += f"; finish reasons: {finishes}"
        if generation_kind(options) == CONTAMINATION and unit.status == "done":
            counts = f"; {contamination_line(Path(unit.output))}"
        note = f" ({unit.note})" if unit.note and not result.message else ""
        sys.stdout.write(f"{unit.output}: {unit.status}, {_format_done(unit)}{counts}{note}\n")
    sys.stdout.write(cache_line(result.units))
    if result.message:
        sys.stderr.write(f"{result.message}\n")
    return result.exit_code


def _format_done(unit: UnitResult) -> str:
    """Format what is done as `3 rows`, or `1 of 3 rows` where some have no record yet."""
    done, rows = unit.kept + unit.generated, counted(unit.rows, "row")
    if done == unit.rows:
        return rows
    return f"{done} of {rows}"


def generate_outputs(parsed: Parsed[GenerateOptions]) -> RunResult | Experiment | None:
    """Generate for Python, and return the run, the experiment, or None for a dry run; raises NewskillsError where
    anything is left undone.

    On a cluster: what was submitted, None where nothing is left to do.
    """
    if (cluster := target_cluster(parsed.options, parsed.given, parsed.options.num_jobs)) is not None:
        from newskills.pipelines.generation.jobs import prepare
        from newskills.pipelines.submission.submit import submit_and_wait

        ready = prepare(parsed, cluster)
        if ready is not None:
            return submit_and_wait(ready)
        return None
    planned = plan_generation(parsed)
    if dry_run(parsed.options, planned):
        show_plan(planned)
        return None
    done = run_generation(parsed, planned)
    if done.exit_code:
        raise NewskillsError(done.message)
    return done


def run_generation(parsed: Parsed[GenerateOptions], planned: Sequence[PlannedUnit]) -> RunResult:
    """Check every first prompt, start the server if one is to be hosted, and run."""
    options = parsed.options
    tracking = tracking_of(
        options.wandb_name, options.wandb_project, options.wandb_group, samples=options.log_samples
    )
    _run_shell_command(options.preprocess_cmd, "--preprocess_cmd")
    files = dict.fromkeys(piece.unit.merged for piece in planned)
    asking = {piece.unit.merged for piece in planned if not asks_nothing(piece.unit)}
    waiting = [file for file in files if options.rerun_done or file in asking or not done_path(file).exists()]
    output_dir = planned[0].unit.merged.parent
    logs = Path(options.log_dir or output_dir / "generation-logs")
    hosting = hosting_of(choose_models(options, parsed.overrides), options, logs)
    check_units(planned, hosting)
    with host_servers(hosting, planned, rerun_done=options.rerun_done) as servers:
        units = tuple(piece.unit for piece in at_servers(planned, servers))
        done = execute(
            RunSpec(
                units=units,
                output_dir=str(output_dir),
                rerun_done=options.rerun_done,
                log_dir=str(logs),
                sequential=options.single_node_mode == "sequential",
                resume_with=command_line("generate"),
            )
        )
    for file in waiting:
        if done_path(file).exists():
            _run_shell_command(options.postprocess_cmd, "--postprocess_cmd")
    if tracking is not None and done.exit_code == 0:
        log_reports(tracking, [], {"generate": Path(done.units[0].output)})
    return done


def _run_shell_command(command: str | None, option: str) -> None:
    """Run the user's own words with the shell; no text of a model or of data is ever in them. Raises NewskillsError
    where they fail."""
    command = within_repository(command or "")
    if command and (code := subprocess.run(["/bin/sh", "-c", command], check=False).returncode):
        raise NewskillsError(f"{option} ended with exit code {code}: {command}")
