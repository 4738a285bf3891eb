# SPDX-License-Identifier: Apache-2.0
"""The last step of every command that submits: show the plan, or submit it and say how to look after it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from newskills.base.errors import NewskillsError
from newskills.commands._cluster import make_mount_sources
from newskills.commands._columns import print_table
from newskills.commands._options import PlacementOptions
from newskills.commands._shipping import Shipment, ship, with_mount
from newskills.commands._submitted import SCREENFUL
from newskills.commands._unit_jobs import Plan
from newskills.commands._work import notice
from newskills.launch.cluster import ClusterConfig, image_of
from newskills.launch.declarative import Pipeline, Submission
from newskills.launch.experiments import Experiment, JobRecord
from newskills.launch.mounts import parse_mounts, to_host
from newskills.launch.package import PackageOptions
from newskills.launch.ssh import shell_of
from newskills.launch.submit import SubmitOptions, submit
from newskills.launch.validate import ONE_MACHINE, check


class Prepared(Struct, frozen=True, kw_only=True):
    """All that is needed to submit, and for a person to see what that would do.

    shown      title → value: the resolved settings, for `--dry_run`
    shipments  what is copied before: folder as clients see it → what it is
    """

    submission: Submission
    options: PlacementOptions
    shown: Mapping[str, Any] = {}
    shipments: Mapping[str, Shipment] = {}


def prepared(
    name: str, plan: Plan, cluster: ClusterConfig, options: PlacementOptions, shown: Mapping[str, Any]
) -> Prepared:
    """`plan` as one pipeline. Raises ConfigError."""
    cluster = with_mount(cluster, plan.shipments.values())
    pipeline = Pipeline(
        name=name,
        cluster_config=cluster,
        jobs=plan.jobs,
        reuse_code=options.reuse_code,
        reuse_code_exp=options.reuse_code_exp,
        skip_hf_home_check=options.skip_hf_home_check,
        run_after=[name.strip() for text in options.run_after for name in text.split(",")],
    )
    submission = pipeline.submission(dry_run=options.dry_run, log_dir=_log_dir(options, cluster))
    jobs = tuple(msgspec.structs.replace(job, **plan.extras[job.name]) for job in submission.pipeline.jobs)
    submission = msgspec.structs.replace(
        submission,
        pipeline=msgspec.structs.replace(submission.pipeline, jobs=jobs),
        environ={**submission.environ, **plan.secrets},
    )
    _say_idle(submission, options)
    return Prepared(submission=submission, options=options, shown=shown, shipments=plan.shipments)


def _log_dir(options: PlacementOptions, cluster: ClusterConfig) -> str | None:
    """`--log_dir` as the scheduler knows it, which writes the logs: the user may have said it as containers see it."""
    path = options.log_dir
    if path is None or not path.startswith("/") or not cluster.containers or cluster.executor == "none":
        return path
    return to_host(path, parse_mounts(cluster.mounts)) or path


def _say_idle(submission: Submission, options: PlacementOptions) -> None:
    """A note where the user asked for containers or mounts, and the cluster runs plain processes."""
    cluster, pipeline = submission.cluster, submission.pipeline
    images = {image_of(cluster, command.container) for job in pipeline.jobs for command in job.commands()}
    if images != {None}:
        return
    usual = {field.name: field.default for field in msgspec.structs.fields(options)}
    names = ("container", "main_container", "server_container", "sandbox_container", "mount_paths")
    given = [f"--{name}" for name in names if getattr(options, name, None) not in (None, [], usual.get(name))]
    if given:
        notice(f"no effect of {', '.join(given)}: on cluster '{cluster.name}' no command runs in a container")


def submitted(ready: Prepared) -> Experiment | None:
    """Submits; a dry run shows everything instead, and returns None. Raises NewskillsError."""
    submission, options = ready.submission, ready.options
    settings = SubmitOptions(
        log_dir=submission.log_dir,
        dry_run=options.dry_run,
        reuse_code_exp=submission.reuse_code_exp,
        skip_hf_home_check=submission.skip_hf_home_check,
        allow_missing_dependency=options.allow_missing_dependency,
        packaging=PackageOptions(allow_uncommitted=options.allow_uncommitted),
    )
    if options.check_mounted_paths and not options.dry_run:
        make_mount_sources(submission.cluster, submission.environ)
    if ready.shipments and not options.dry_run:
        hf_home = submission.skip_hf_home_check
        check(submission.pipeline, submission.cluster, submission.environ, skip_hf_home_check=hf_home)
        ship(ready.shipments, shell_of(submission.cluster, submission.environ))
    experiment = submit(submission.pipeline, submission.cluster, submission.environ, settings, say=notice)
    if options.dry_run:
        from newskills.commands._plan_view import show_pipeline

        show_pipeline(ready, experiment)
        return None
    return experiment if experiment.jobs else None


def run_prepared(ready: Prepared, *, show: Sequence[str] = ()) -> int:
    """For the command line. On this machine the jobs are waited for; `show` names commands whose logs are printed."""
    if ready.submission.cluster.executor not in ONE_MACHINE:
        if (experiment := submitted(ready)) is not None:
            say_submitted(experiment)
        return 0
    from newskills.commands._following import follow  # now: there is nothing yet that Ctrl-C must stop

    experiment = submitted(ready)
    if experiment is None:
        return 0
    sys.stderr.write(f"experiment {experiment.id}: {len(experiment.jobs)} jobs in {experiment.folder}\n")
    return follow(experiment, show=show)


def finished(ready: Prepared) -> Experiment | None:
    """For Python: what was submitted; on this machine, once it has ended well. Raises NewskillsError."""
    experiment = submitted(ready)
    if experiment is not None and experiment.cluster.executor in ONE_MACHINE:
        from newskills.commands._following import follow

        if code := follow(experiment):
            raise NewskillsError(f"Experiment {experiment.id} ended with exit code {code}.")
    return experiment


def say_submitted(experiment: Experiment) -> None:
    """Which jobs there are, and the next commands to type."""
    shown = experiment.jobs if len(experiment.jobs) <= SCREENFUL else experiment.jobs[: SCREENFUL // 2]
    print_table([("job", "id", "after"), *((job.name, job.handle, _after(job)) for job in shown)])
    if left := len(experiment.jobs) - len(shown):
        sys.stdout.write(f"… and {left:,} more: ns status {experiment.name} --all\n")
    sys.stdout.write(
        f"\nexperiment {experiment.id} on {experiment.cluster.name}\n"
        f"  ns status {experiment.name}      ns logs {experiment.name} -f      ns cancel {experiment.name}\n"
    )
    sys.stdout.flush()


def _after(job: JobRecord) -> str:
    names = job.depends_on
    return " ".join(names) if len(names) <= SCREENFUL else f"{names[0]} … {names[-1]} ({len(names):,} jobs)"
