# SPDX-License-Identifier: Apache-2.0
"""Imports the images of a compiled configuration on a cluster, submits its jobs, and follows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import structs

from newskills.base.callbacks import PrintLine
from newskills.environments.engines.references import is_file
from newskills.launch.clusters.config import ClusterConfig
from newskills.launch.containers.squash import Squash, SquashPlace, import_images, plan_squash
from newskills.launch.experiments import Experiment
from newskills.launch.logs import follow_logs
from newskills.launch.machines.ssh import RemoteMachine, shell_of
from newskills.launch.package import PackageOptions
from newskills.launch.states import JobWatch
from newskills.launch.submit import SubmitOptions, executor_of, submit_pipeline
from newskills_evaluator.config import CompiledConfig, Image
from newskills_evaluator.deployments.place import client_image, cluster_of
from newskills_evaluator.deployments.plan import DeploymentPlan

FETCHED = ("+ */", "+ *.json", "+ *.yml", "- *")
"""Rules of rsync for artifacts: scores and what they are of, not the answers."""


def why_not_squash(compiled: CompiledConfig) -> str:
    """Return why no image is imported; empty: images are."""
    profile, execution = compiled.profile, compiled.execution
    if all(map(is_file, image_references(compiled))):
        return "no image needs an import"
    if compiled.is_local:
        return "images are not imported for a run on this machine; --run or --batch imports them"
    if profile is None or not profile.is_slurm or not execution.is_slurm:
        return "images are imported only for executor slurm"
    if profile.tunnel != "ssh":
        return f'images are imported over ssh, but profile [{profile.name}] has no tunnel = "ssh"'
    missing = [key for key in ("host", "remote_job_dir") if not getattr(profile, key)]
    if missing:
        return f"images are not imported: profile [{profile.name}] lacks {' and '.join(missing)}"
    return ""


def image_references(compiled: CompiledConfig) -> list[str]:
    """List the images of servers, proxy and tasks, and the one in which tasks without a container of their own
    run."""
    references = [image.reference for image in compiled.images()]
    if own := client_image(compiled):
        references.append(own)
    return list(dict.fromkeys(references))


def squash_plan(compiled: CompiledConfig, environ: Mapping[str, str], *, ask: bool = True) -> list[Squash]:
    """Return what becomes of each image; empty where `why_not_squash` says why. Raises ConfigError, RemoteError."""
    if why_not_squash(compiled):
        return []
    place, cluster = _squash_place(compiled), cluster_of(compiled)
    return plan_squash(
        image_references(compiled), place, shell_of(cluster, environ), force=compiled.force_squash, ask=ask
    )


def squash_images(compiled: CompiledConfig, environ: Mapping[str, str], say: PrintLine) -> CompiledConfig:
    """Import the images, and return the configuration with files in their place; where images are not imported, `say`
    gets the reason.

    Raises ConfigError, RemoteError.
    """
    if why := why_not_squash(compiled):
        if image_references(compiled):
            say(f"[info] {why}")
        return compiled
    plans = squash_plan(compiled, environ)
    shell = shell_of(cluster_of(compiled), environ)
    paths = import_images(plans, _squash_place(compiled), shell, force=compiled.force_squash, say=say)
    return with_paths(compiled, paths)


def with_paths(compiled: CompiledConfig, paths: Mapping[str, str]) -> CompiledConfig:
    """Return `compiled` with `paths` (image → path) in its typed sections and in `config`."""

    def imported_image(image: str | None) -> str | None:
        if image:
            return paths.get(image, image)
        return image

    profile = compiled.profile
    config: Any = compiled.config
    for image in compiled.images():
        config = _replace_image(config, image, paths.get(image.reference, image.reference))
    return structs.replace(
        compiled,
        config=config,
        deployment=structs.replace(compiled.deployment, image=imported_image(compiled.deployment.image)),
        execution=structs.replace(compiled.execution, proxy_image=imported_image(compiled.execution.proxy_image)),
        tasks=tuple(structs.replace(task, container=imported_image(task.container)) for task in compiled.tasks),
        profile=profile and structs.replace(profile, container_image=imported_image(profile.container_image)),
    )


def submit_invocation(planned: DeploymentPlan, say: PrintLine) -> Experiment:
    """Submit all jobs or none, and make their run directories. Raises NewskillsError."""
    return submit_pipeline(
        planned.pipeline,
        planned.cluster,
        planned.environ,
        SubmitOptions(
            job_folder=planned.folder,
            skip_hf_home_check=True,
            packaging=PackageOptions(allow_uncommitted=True),
        ),
        say=say,
    )


def follow_tasks(experiment: Experiment, environ: Mapping[str, str], say: PrintLine) -> None:
    """Forward the lines of all tasks' logs as they are written, until all jobs have ended. Raises RemoteError."""
    import shlex

    shell = shell_of(experiment.cluster, environ)
    watch = JobWatch(experiment.jobs, executor_of(experiment, environ), shell)
    several = len(experiment.jobs) > 1
    names = {"client": "client_stdout", "export": "export"}
    files = [
        (job.name if several else "", f"{shlex.quote(f'{job.logs}/{names[name]}.lo')}[g]")
        for job in experiment.jobs
        for name in job.commands
        if name in names
    ]
    for line in follow_logs(shell, files, watch.all_ended):
        say(line)


def fetch_run(cluster: ClusterConfig, folder: str, into: Path, environ: Mapping[str, str]) -> Path:
    """Copy the exported part of the run directory `folder` of a cluster behind ssh, and return its path on this
    machine.

    Without results there, an empty folder. Raises RemoteError, StorageError.
    """
    here = into / Path(folder).name
    here.mkdir(parents=True, exist_ok=True)
    shell = shell_of(cluster, environ)
    if isinstance(shell, RemoteMachine) and shell.exists([f"{folder}/artifacts"])[0]:
        shell.get_some(f"{folder}/artifacts", here / "artifacts", FETCHED)
        shell.get_some(f"{folder}/logs", here / "logs", ("+ *",))
    return here


def _squash_place(compiled: CompiledConfig) -> SquashPlace:
    profile = compiled.profile
    assert profile is not None
    if compiled.mode == "batch":
        partition = profile.batch_partition
    else:
        partition = profile.run_partition
    return SquashPlace(
        folder=str(profile.remote_job_dir).rstrip("/"),
        account=profile.account,
        partition=profile.build_partition or partition or profile.partition,
        time_limit=profile.build_time or profile.time,
        gpus=profile.build_gpus_per_node,
    )


def _replace_image(config: Any, image: Image, path: str) -> Any:
    """Return a copy of `config` with `path` at the place that `image` names."""

    def replace_at(node: Any, steps: Sequence[str]) -> Any:
        if not steps:
            return path
        step, *rest = steps
        if isinstance(node, list) and step.isdecimal() and int(step) < len(node):
            at = int(step)
            return [*node[:at], replace_at(node[at], rest), *node[at + 1 :]]
        if isinstance(node, dict) and step in node:
            return {**node, step: replace_at(node[step], rest)}
        return node

    return replace_at(config, image.path.split("."))
