# SPDX-License-Identifier: Apache-2.0
"""A plan with all that is needed to submit it, or to show it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from newskills.launch.clusters.config import ClusterConfig, image_of
from newskills.launch.clusters.mounts import parse_mounts, to_host
from newskills.launch.declarative import Pipeline, Submission
from newskills.pipelines.notices import print_note
from newskills.pipelines.options import PlacementOptions
from newskills.pipelines.placement.shipments import Shipment, with_mount
from newskills.pipelines.submission.plan import Plan


class PreparedSubmission(Struct, frozen=True, kw_only=True):
    """All that is needed to submit, and for a person to see what that would do.

    shown      title → value: the resolved settings, for `--dry_run`
    shipments  what is copied before: folder as clients see it → what it is
    """

    submission: Submission
    options: PlacementOptions
    shown: Mapping[str, Any] = {}
    shipments: Mapping[str, Shipment] = {}


def prepare_submission(
    name: str, plan: Plan, cluster: ClusterConfig, options: PlacementOptions, shown: Mapping[str, Any]
) -> PreparedSubmission:
    """Make one pipeline of `plan`. Raises ConfigError."""
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
    return PreparedSubmission(submission=submission, options=options, shown=shown, shipments=plan.shipments)


def _log_dir(options: PlacementOptions, cluster: ClusterConfig) -> str | None:
    """Return `--log_dir` as the scheduler, which writes the logs, knows it: the user may have named it as
    containers see it."""
    path = options.log_dir
    if cluster.properties.containers != "command":
        return path
    if path is None or not path.startswith("/") or not cluster.containers:
        return path
    return to_host(path, parse_mounts(cluster.mounts)) or path


def _say_idle(submission: Submission, options: PlacementOptions) -> None:
    """Print a note where the user asked for containers or mounts, and the cluster runs plain processes."""
    cluster, pipeline = submission.cluster, submission.pipeline
    images = {image_of(cluster, command.container) for job in pipeline.jobs for command in job.commands()}
    if images != {None}:
        return
    usual = {field.name: field.default for field in msgspec.structs.fields(options)}
    names = ("container", "main_container", "server_container", "sandbox_container", "mount_paths")
    idle = [f"--{name}" for name in names if getattr(options, name, None) not in (None, [], usual.get(name))]
    if idle:
        print_note(
            f"{', '.join(idle)}: no effect, because on cluster '{cluster.name}' no command runs in a container"
        )
