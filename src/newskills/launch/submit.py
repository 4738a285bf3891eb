# SPDX-License-Identifier: Apache-2.0
"""From a pipeline to jobs that run: check, package, write, submit in order, record."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from msgspec import Struct, structs

from newskills.base.callbacks import PrintLine
from newskills.base.errors import ConfigError, UnknownNameError
from newskills.base.plan import Job, Pipeline
from newskills.base.protocols import Executor
from newskills.launch.clusters.config import ClusterConfig
from newskills.launch.clusters.variables import job_variables
from newskills.launch.executors import make_executor
from newskills.launch.experiments import Experiment, ExperimentRecords, JobRecord, has_ended, job_root, new_stamp
from newskills.launch.machines.ssh import Shell, shell_of
from newskills.launch.output_claims import OutputClaims, RemainingJobs, remaining_jobs
from newskills.launch.package import Package, PackageOptions, check_named, in_place, make_package
from newskills.launch.place import JobFinder, PendingJob, PipelineSubmitter, Site
from newskills.launch.validate import check_pipeline


class SubmitOptions(Struct, frozen=True, kw_only=True):
    """Where a job writes, and what it waits for.

    log_dir                   folder of logs, one folder in it for each job; None: in the jobs' own folders
    job_folder                of the jobs; None: a new one below the job folder of the cluster
    reuse_code_exp            the package of that experiment, instead of the current commit
    skip_hf_home_check        None: what the cluster config says
    allow_missing_dependency  go without waiting for an experiment that nobody knows
    packaging                 what goes into the package
    """

    log_dir: str | None = None
    job_folder: str | None = None
    dry_run: bool = False
    reuse_code_exp: str | None = None
    skip_hf_home_check: bool | None = None
    allow_missing_dependency: bool = False
    packaging: PackageOptions = PackageOptions()


class _SubmissionContext(Struct, frozen=True):
    """Where one submission is dealt with."""

    cluster: ClusterConfig
    environ: Mapping[str, str]
    options: SubmitOptions
    say: PrintLine
    shell: Shell
    records: ExperimentRecords
    root: str


def submit_pipeline(
    pipeline: Pipeline,
    cluster: ClusterConfig,
    environ: Mapping[str, str],
    options: SubmitOptions = SubmitOptions(),  # noqa: B008 - frozen
    *,
    say: PrintLine = lambda text: None,
) -> Experiment:
    """Submit all jobs, or none: what was submitted before something failed is cancelled.

    Jobs whose files are being made by others that wait or run are left out; without jobs, nothing is recorded.

    `environ` is that of the submitting process: secrets get their values from it. With `dry_run` the same experiment
    comes back, with jobs that have no handles; nothing is written, copied or started, here or elsewhere.
    Raises NewskillsError.
    """
    check_pipeline(pipeline, cluster, environ, skip_hf_home_check=options.skip_hf_home_check)
    job_variables(cluster, environ, say=say)
    root = job_root(cluster, environ)
    context = _SubmissionContext(
        cluster, environ, options, say, shell_of(cluster, environ), ExperimentRecords(environ), root
    )
    code, files = _shipped_code(context)
    if files:
        check_named(pipeline, code, files)
    stamp = new_stamp()
    folder = options.job_folder or f"{root}/{pipeline.name}/{stamp}"
    site = site_of(cluster, environ, name=pipeline.name, folder=folder, code=code.path, log_dir=options.log_dir)
    executor = make_executor(site)
    outputs = OutputClaims(context.records, pipeline, read_only=options.dry_run)
    with outputs.lock_folders():
        left = _not_at_work(pipeline, outputs, context)
        experiment = _planned_experiment(
            left, site, code, _outside_handles(left.pipeline, context, executor), stamp
        )
        if options.dry_run or not experiment.jobs:
            return experiment
        context.records.create(experiment, left.pipeline, files)
        outputs.add(experiment.id)
        return _submit_jobs(experiment, left.pipeline, executor, context.records)


def _not_at_work(pipeline: Pipeline, outputs: OutputClaims, context: _SubmissionContext) -> RemainingJobs:
    """Return the jobs whose work no waiting or running job does already. Reports what is left out."""

    def look(experiment: Experiment) -> tuple[Experiment, Mapping[str, str]]:
        if _machine_identity(experiment.cluster) != _machine_identity(context.cluster):
            return experiment, {}
        latest = with_handles(experiment, context.environ)
        return latest, executor_of(latest, context.environ).state(list(latest.handles))

    busy = outputs.busy_files(look)
    left = remaining_jobs(pipeline, busy)
    if gone := len(pipeline.jobs) - len(left.pipeline.jobs):
        names = sorted({output.experiment for output in busy.values()})
        if not left.pipeline.jobs:
            done = "nothing is submitted"
        else:
            done = f"{len(left.pipeline.jobs)} are submitted"
        context.say(
            f"{gone} of {len(pipeline.jobs)} jobs already wait or run, in {', '.join(names)}: {done}. Look: "
            f"ns status {names[0]}  Cancel: ns cancel {names[0]}"
        )
    return left


def unmet_dependencies(
    pipeline: Pipeline, cluster: ClusterConfig, environ: Mapping[str, str], options: SubmitOptions
) -> list[str]:
    """Return the errors of `submit_pipeline` for experiments that jobs run after and that cannot be waited for. Raises
    RemoteError."""
    root = job_root(cluster, environ)
    context = _SubmissionContext(
        cluster, environ, options, lambda text: None, shell_of(cluster, environ), ExperimentRecords(environ), root
    )
    executor = make_executor(_submitted_site(cluster, root, environ))
    unmet_names = []
    for name in dict.fromkeys(name for job in pipeline.jobs for name in job.run_after):
        try:
            _alive_or_missing(name, context, executor)
        except (ConfigError, UnknownNameError) as error:
            unmet_names.append(str(error))
    return unmet_names


def executor_of(experiment: Experiment, environ: Mapping[str, str]) -> Executor:
    """Return the executor that looks at submitted jobs, stops them or reads their logs."""
    return make_executor(_submitted_site(experiment.cluster, experiment.folder, environ))


def with_handles(experiment: Experiment, environ: Mapping[str, str]) -> Experiment:
    """Return `experiment` with the handles of jobs that were taken although their submission could not say so.

    The record keeps them. Raises NewskillsError.
    """
    names = [job.name for job in experiment.jobs if not job.handle]
    executor = executor_of(experiment, environ)
    if names and isinstance(executor, JobFinder):
        handles_by_name = executor.find(names)
    else:
        handles_by_name = {}
    if not handles_by_name:
        return experiment
    experiment = _with_handles(
        experiment, {**{job.name: job.handle for job in experiment.jobs}, **handles_by_name}
    )
    ExperimentRecords(environ).update(experiment)
    return experiment


def _submitted_site(cluster: ClusterConfig, folder: str, environ: Mapping[str, str]) -> Site:
    """Return the site of submitted jobs, whose variables do not matter any more, even where this shell lacks
    them."""
    return Site(
        cluster=structs.replace(cluster, env_vars=[], required_env_vars=[]), folder=folder, environ=environ
    )


def _shipped_code(context: _SubmissionContext) -> tuple[Package, Sequence[str]]:
    """Return the package, and the files in it as far as they are known."""
    options, cluster = context.options, context.cluster
    if options.reuse_code_exp is not None and not in_place(cluster):
        other = context.records.find(options.reuse_code_exp)
        if (
            _machine_identity(other.cluster) != _machine_identity(cluster)
            or not context.shell.exists([other.package.path])[0]
        ):
            raise ConfigError(f"The code package of '{other.id}' is not on cluster '{cluster.name}'.")
        return structs.replace(other.package, copied=0), ()
    packaging = structs.replace(options.packaging, dry_run=options.dry_run)
    made, content = make_package(cluster, context.shell, context.root, context.environ, packaging, context.say)
    return made, list(content.files())


def site_of(
    cluster: ClusterConfig, environ: Mapping[str, str], *, name: str, folder: str, code: str, log_dir: str | None
) -> Site:
    """Return the site of experiment `name` with its `folder`, for submitting it and for showing what that would
    do."""
    if log_dir and not cluster.ssh_tunnel:
        log_dir = os.path.abspath(os.path.expanduser(log_dir))
    return Site(cluster=cluster, folder=folder, code=code, log_dir=log_dir or "", environ=environ, experiment=name)


def _machine_identity(cluster: ClusterConfig) -> tuple[str, str, str]:
    """Return what two cluster configs share when handles and files of one are known to the other: the executor, and its
    host or address."""
    host = cluster.ssh_tunnel.host if cluster.ssh_tunnel else ""
    address = cluster.ray.address if cluster.properties.uses_ray else ""
    return cluster.executor, host, address


def _outside_handles(
    pipeline: Pipeline, context: _SubmissionContext, executor: Executor
) -> dict[str, tuple[str, ...]]:
    """Return experiment → handles of its jobs that have not ended yet. Raises UnknownNameError, ConfigError."""
    names = dict.fromkeys(name for job in pipeline.jobs for name in job.run_after)
    return {name: _alive_or_missing(name, context, executor) for name in names}


def _alive_or_missing(name: str, context: _SubmissionContext, executor: Executor) -> tuple[str, ...]:
    try:
        return _unfinished_handles(name, context, executor)
    except UnknownNameError:
        if not context.options.allow_missing_dependency:
            raise
        context.say(f"there is no experiment '{name}': jobs do not wait for it")
        return ()


def _unfinished_handles(name: str, context: _SubmissionContext, executor: Executor) -> tuple[str, ...]:
    """Return the handles of unfinished jobs of all experiments of that name, else of the one with that id, else
    the bare handle."""
    meant = _named_experiments(name, context)
    experiments = [experiment for experiment in meant if experiment.handles]
    if not experiments:
        if _is_handle(name, executor):
            return (name,)
        known_names: Sequence[str] = []
        hint = "--allow_missing_dependency submits anyway."
        if meant:
            hint = f"None of its jobs was submitted. {hint}"
        else:
            known_names = context.records.names()
        raise UnknownNameError("experiment to run after", name, known_names, hint=hint)
    elsewhere = [
        experiment
        for experiment in experiments
        if _machine_identity(experiment.cluster) != _machine_identity(context.cluster)
    ]
    if len(elsewhere) == len(experiments):
        raise ConfigError(
            f"'{name}' was submitted to cluster '{elsewhere[0].cluster.name}': jobs of '{context.cluster.name}' "
            "cannot wait for it.",
            hint=f"ns status {name} shows when it has ended.",
        )
    jobs = {
        job.handle: job.name
        for experiment in experiments
        if experiment not in elsewhere
        for job in experiment.jobs
        if job.handle
    }
    states = executor.state(list(jobs))
    if context.cluster.dependency_type in ("afterok", "aftercorr"):
        newest = next(experiment for experiment in experiments if experiment not in elsewhere)
        for job in newest.jobs:
            if states.get(job.handle, "").partition(" (")[0] in ("failed", "cancelled", "timeout"):
                raise ConfigError(
                    f"Job '{job.name}' of '{name}' has ended as {states[job.handle]}: a job that depends on "
                    f"it (dependency_type {context.cluster.dependency_type}) would never start."
                )
    return tuple(handle for handle, state in states.items() if not has_ended(state))


def _named_experiments(name: str, context: _SubmissionContext) -> list[Experiment]:
    """Return the experiments of exactly that name, or the one of that id; a beginning of a name is not enough to
    wait for."""
    if "/" not in name:
        return context.records.all_of(name)
    return [experiment for experiment in context.records.all_of(name.partition("/")[0]) if experiment.id == name]


def _is_handle(name: str, executor: Executor) -> bool:
    try:
        return executor.state([name]).get(name, "unknown") != "unknown"
    except ConfigError:  # it does not look like one
        return False


def _planned_experiment(
    left: RemainingJobs, site: Site, code: Package, outside: Mapping[str, tuple[str, ...]], stamp: str
) -> Experiment:
    import datetime

    jobs = []
    for job in left.pipeline.order():
        folder = site.job_folder(job)
        after = [*(handle for name in job.run_after for handle in outside[name]), *left.after[job.name]]
        jobs.append(
            JobRecord(
                name=job.name,
                folder=folder.path,
                logs=folder.logs,
                depends_on=job.depends_on,
                after=tuple(dict.fromkeys(after)),
                commands={command.name: command.role for command in job.commands()},
                makes=job.makes,
            )
        )
    return Experiment(
        name=left.pipeline.name,
        stamp=stamp,
        submitted_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        cluster=site.cluster,
        folder=site.folder,
        package=code,
        jobs=tuple(jobs),
    )


def _submit_jobs(
    experiment: Experiment, pipeline: Pipeline, executor: Executor, records: ExperimentRecords
) -> Experiment:
    """Submit the jobs; return `experiment` with their handles. Cancels what was submitted when something fails."""
    plans: dict[str, Job] = {job.name: job for job in pipeline.jobs}
    handles: dict[str, str] = {}
    try:
        waiting = [PendingJob(plans[job.name], job.after, job.depends_on) for job in experiment.jobs]
        if isinstance(executor, PipelineSubmitter):
            handles.update(executor.submit_all(waiting))
        else:
            for waiting_job in waiting:
                after = [*waiting_job.after, *(handles[name] for name in waiting_job.needs)]
                handles[waiting_job.job.name] = executor.submit(waiting_job.job, after=list(dict.fromkeys(after)))
        done = _with_handles(experiment, handles)
        records.update(done)
    except BaseException:
        try:
            executor.cancel(list(handles.values()))
        finally:
            records.update(_with_handles(experiment, handles))
        raise
    return done


def _with_handles(experiment: Experiment, handles: Mapping[str, str]) -> Experiment:
    jobs = tuple(structs.replace(job, handle=handles.get(job.name, "")) for job in experiment.jobs)
    return structs.replace(experiment, jobs=jobs)
