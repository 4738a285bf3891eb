# SPDX-License-Identifier: Apache-2.0
"""The last step of every command that submits: show the plan, or submit it and say how to look after it."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from newskills.base.errors import NewskillsError
from newskills.base.tables import print_table
from newskills.launch.clusters.trial import check_python
from newskills.launch.experiments import Experiment, JobRecord
from newskills.launch.machines.ssh import shell_of
from newskills.launch.package import PackageOptions
from newskills.launch.submit import SubmitOptions, submit_pipeline
from newskills.launch.validate import check_pipeline
from newskills.pipelines.notices import print_note
from newskills.pipelines.placement.cluster import make_mount_sources
from newskills.pipelines.placement.shipments import copy_shipments
from newskills.pipelines.submission.prepared import PreparedSubmission
from newskills.pipelines.submission.submitted import SCREENFUL


def submit_prepared(ready: PreparedSubmission) -> Experiment | None:
    """Submit; a dry run shows everything instead, and returns None. Raises NewskillsError."""
    submission, options = ready.submission, ready.options
    settings = SubmitOptions(
        log_dir=submission.log_dir,
        dry_run=options.dry_run,
        reuse_code_exp=submission.reuse_code_exp,
        skip_hf_home_check=submission.skip_hf_home_check,
        allow_missing_dependency=options.allow_missing_dependency,
        packaging=PackageOptions(allow_uncommitted=options.allow_uncommitted),
    )
    if not options.dry_run:
        shell = shell_of(submission.cluster, submission.environ)
        check_python(submission.pipeline, submission.cluster, submission.environ, shell)
    if options.check_mounted_paths and not options.dry_run:
        make_mount_sources(submission.cluster, submission.environ)
    if ready.shipments and not options.dry_run:
        hf_home = submission.skip_hf_home_check
        check_pipeline(submission.pipeline, submission.cluster, submission.environ, skip_hf_home_check=hf_home)
        copy_shipments(ready.shipments, shell_of(submission.cluster, submission.environ))
    experiment = submit_pipeline(
        submission.pipeline, submission.cluster, submission.environ, settings, say=print_note
    )
    if options.dry_run:
        from newskills.pipelines.submission.plan_view import show_pipeline

        show_pipeline(ready, experiment)
        return None
    if experiment.jobs:
        return experiment
    return None


def run_prepared(ready: PreparedSubmission, *, show: Sequence[str] = ()) -> int:
    """Submit for the command line. On this machine the jobs are waited for; `show` names commands whose logs are
    printed."""
    if not ready.submission.cluster.properties.this_machine:
        if (experiment := submit_prepared(ready)) is not None:
            say_submitted(experiment)
        return 0
    from newskills.pipelines.submission.following import follow_experiment

    experiment = submit_prepared(ready)
    if experiment is None:
        return 0
    sys.stderr.write(f"experiment {experiment.id}: {len(experiment.jobs)} jobs in {experiment.folder}\n")
    return follow_experiment(experiment, show=show)


def submit_and_wait(ready: PreparedSubmission) -> Experiment | None:
    """Submit for Python, and return the experiment; on this machine, once it has ended well. Raises
    NewskillsError."""
    experiment = submit_prepared(ready)
    if experiment is not None and experiment.cluster.properties.this_machine:
        from newskills.pipelines.submission.following import follow_experiment

        if code := follow_experiment(experiment):
            raise NewskillsError(f"Experiment {experiment.id} ended with exit code {code}.")
    return experiment


def say_submitted(experiment: Experiment) -> None:
    """Print which jobs there are, and the next commands to type."""
    shown = experiment.jobs
    if len(shown) > SCREENFUL:
        shown = shown[: SCREENFUL // 2]
    print_table([(job.name, job.handle, _format_dependencies(job)) for job in shown], ("job", "id", "after"))
    if left := len(experiment.jobs) - len(shown):
        sys.stdout.write(f"… and {left:,} more: ns status {experiment.name} --all\n")
    sys.stdout.write(
        f"\nexperiment {experiment.id} on {experiment.cluster.name}\n"
        f"  ns status {experiment.name}      ns logs {experiment.name} -f      ns cancel {experiment.name}\n"
    )
    sys.stdout.flush()


def _format_dependencies(job: JobRecord) -> str:
    names = job.depends_on
    if len(names) <= SCREENFUL:
        return " ".join(names)
    return f"{names[0]} … {names[-1]} ({len(names):,} jobs)"
