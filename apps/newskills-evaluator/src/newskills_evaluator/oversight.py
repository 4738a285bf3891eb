# SPDX-License-Identifier: Apache-2.0
"""Jobs of invocations: recorded in the launcher's store, listed, stopped, resumed under its ids.

Each is a job of an experiment of newskills, in its run directory, on this machine as on a cluster.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from newskills.base.callbacks import PrintLine
from newskills.base.errors import ConfigError, DataError
from newskills.base.plan import Job, Pipeline
from newskills.base.records import Row
from newskills.launch.clusters.names import looks_secret
from newskills.launch.experiments import PLAN, Experiment, ExperimentRecords
from newskills.launch.logs import follow_logs, read_logs
from newskills.launch.machines.shell import LocalMachine
from newskills.launch.machines.ssh import shell_of
from newskills.launch.package import PackageOptions
from newskills.launch.states import JobState, experiment_states
from newskills.launch.submit import SubmitOptions, executor_of, submit_pipeline
from newskills.pipelines.invocations import State
from newskills_evaluator.compile.dialects import KEY
from newskills_evaluator.config import CompiledConfig, EnvMap
from newskills_evaluator.export_results import FinishedJob
from newskills_evaluator.invocations import ENDED, InvocationJob, Store, folder_state, job_state
from newskills_evaluator.remote import fetch_run
from newskills_evaluator.tasks import benchmark_name, map_task

HOST = "host"
LOG = "client_stdout.lo"
"""The task's log without its last letter: what is no pattern of bash would be taken for there."""


class JobStatus(Struct, frozen=True):
    """A job, and how it is doing. `job` None: it is not newskills'."""

    entry: InvocationJob
    state: State
    code: int | None = None
    job: JobState | None = None


def record_jobs(
    experiment: Experiment, invocation: str, compiled: CompiledConfig, environ: Mapping[str, str]
) -> list[InvocationJob]:
    """Write the jobs that were submitted into the store, and return them. Raises StorageError."""
    entries = [
        InvocationJob(
            invocation_id=invocation,
            job_id=f"{invocation}.{at}",
            timestamp=time.time(),
            executor=compiled.execution.type,
            data=_job_data(experiment, at, compiled),
            config=without_secrets(compiled.config),
        )
        for at, _ in enumerate(compiled.tasks)
    ]
    Store(environ).add(entries)
    return entries


def job_statuses(entries: Iterable[InvocationJob], environ: Mapping[str, str]) -> list[JobStatus]:
    """Return how the jobs are doing. Raises RemoteError, and ConfigError for jobs of the launcher that are not
    on this machine."""
    states_by_experiment: dict[str, dict[str, JobState]] = {}
    statuses = []
    for entry in entries:
        if entry.own is None:
            if not entry.is_local:
                raise launcher_job_error(entry)
            statuses.append(JobStatus(entry, *folder_state(entry)))
            continue
        experiment = experiment_of(entry, environ)
        if experiment.id not in states_by_experiment:
            executor, shell = executor_of(experiment, environ), shell_of(experiment.cluster, environ)
            states_by_experiment[experiment.id] = {
                job_state.job.name: job_state for job_state in experiment_states(experiment, executor, shell)
            }
        job = states_by_experiment[experiment.id][str(entry.own["job"])]
        statuses.append(JobStatus(entry, _entry_state(entry, job), job.exit_code, job))
    return statuses


def experiment_of(entry: InvocationJob, environ: Mapping[str, str]) -> Experiment:
    """Return the experiment of the job. Raises UnknownNameError where its record is gone, ConfigError for a job of the
    launcher."""
    if entry.own is None:
        raise launcher_job_error(entry)
    return ExperimentRecords(environ).find(str(entry.own["experiment"]))


def stop_jobs(entries: Sequence[InvocationJob], environ: Mapping[str, str]) -> list[InvocationJob]:
    """Cancel the jobs that run or wait, and return them; results that they have are kept. Raises RemoteError,
    ConfigError."""
    if launched := [entry for entry in entries if entry.own is None]:
        raise launcher_job_error(launched[0])
    going = [
        status for status in job_statuses(entries, environ) if status.job is not None and not status.job.ended
    ]
    stopped = [
        msgspec.structs.replace(status.entry, data={**status.entry.data, "killed": True}) for status in going
    ]
    Store(environ).add(stopped)
    handles: dict[str, list[str]] = {}
    for status in going:
        assert status.job is not None
        handles.setdefault(experiment_of(status.entry, environ).id, []).append(status.job.job.handle)
    for name, some in handles.items():
        executor_of(ExperimentRecords(environ).find(name), environ).cancel(some)
    return stopped


def resubmit_jobs(
    entries: Sequence[InvocationJob], environ: Mapping[str, str], say: PrintLine
) -> tuple[Experiment, list[InvocationJob]]:
    """Submit the tasks again that failed or were cancelled; finished work is kept.

    Raises ConfigError where all ended well, a job still runs, or a variable is not set that the first run had.
    """
    looked = job_statuses(entries, environ)
    if running := [status.entry.job_id for status in looked if status.job is not None and not status.job.ended]:
        raise ConfigError(f"{', '.join(running)} has not ended yet.", hint=f"First: ns cancel {running[0]}")
    left = [status for status in looked if status.state != "success"]
    if not left:
        raise ConfigError(f"All jobs of {entries[0].invocation_id} have succeeded.")
    first = experiment_of(left[0].entry, environ)
    names = {str((status.entry.own or {})["job"]) for status in left}
    pipeline = _remaining_pipeline(_read_pipeline(first, environ), names)
    hosts = {name: host for status in left for name, host in ((status.entry.own or {}).get(HOST) or {}).items()}
    environ_of_jobs = {**environ, **{name: environ[host] for name, host in hosts.items() if host in environ}}
    _check_secrets(pipeline, environ_of_jobs)
    options = SubmitOptions(
        job_folder=first.folder, skip_hf_home_check=True, packaging=PackageOptions(allow_uncommitted=True)
    )
    experiment = submit_pipeline(pipeline, first.cluster, environ_of_jobs, options, say=say)
    again = [_resubmitted_entry(status.entry, experiment) for status in left]
    Store(environ).add(again)
    return experiment, again


def log_lines(entries: Sequence[InvocationJob], environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines that the tasks have printed, one task after the other, each line with its job where there are
    several.

    Raises RemoteError, ConfigError.
    """
    groups: dict[str, list[InvocationJob]] = {}
    for entry in entries:
        if entry.own is None and not entry.is_local:
            raise launcher_job_error(entry)
        groups.setdefault("" if entry.own is None else experiment_of(entry, environ).id, []).append(entry)
    for name, some in groups.items():
        if name:
            shell = shell_of(ExperimentRecords(environ).find(name).cluster, environ)
        else:
            shell = LocalMachine()
        yield from read_logs(shell, _log_files(some, several=len(entries) > 1))


def follow_launched(entries: Sequence[InvocationJob], say: PrintLine) -> list[JobStatus]:
    """Forward the lines that jobs of the launcher on this machine print to `say`, until the jobs have ended,
    and return their states."""

    def all_ended() -> bool:
        return all(folder_state(entry)[0] in ENDED for entry in entries)

    for line in follow_logs(LocalMachine(), _log_files(entries, several=len(entries) > 1), all_ended):
        say(line)
    return [JobStatus(entry, *folder_state(entry)) for entry in entries]


def _log_files(entries: Sequence[InvocationJob], *, several: bool) -> list[tuple[str, str]]:
    return [
        (entry.folder.name if several else "", f"{shlex.quote(str(entry.folder / 'logs' / LOG))}[g]")
        for entry in entries
    ]


def collect_finished(entry: InvocationJob, environ: Mapping[str, str], into: Path) -> FinishedJob:
    """Return a job in the form that exporters take; files behind ssh are fetched into the folder `into`.

    Raises RemoteError, UnknownNameError where the record of its submission is gone.
    """
    folder = entry.folder
    if entry.own is not None and (cluster := experiment_of(entry, environ).cluster).ssh_tunnel is not None:
        folder = fetch_run(cluster, str(folder), into, environ)
    config = entry.config or {}
    endpoint = (config.get("target") or {}).get("api_endpoint") or {}
    model = endpoint.get("model_id") or (config.get("deployment") or {}).get("served_model_name") or ""
    benchmark = entry.task
    if mapped := map_task(entry.task):
        benchmark = benchmark_name(mapped.benchmark)
    return FinishedJob(
        id=entry.job_id,
        task=entry.task,
        benchmark=benchmark,
        folder=str(folder),
        container=str(entry.data.get("eval_image", "")),
        model=str(model),
    )


def launcher_job_error(entry: InvocationJob) -> ConfigError:
    """Explain that NeMo Evaluator's launcher looks after the job."""
    return ConfigError(
        f"{entry.job_id} was submitted by nemo-evaluator-launcher ({entry.executor}).",
        hint=f"For its state: nemo-evaluator-launcher status {entry.job_id}",
    )


def without_secrets(config: Row) -> Row:
    """Return `config` as it may be kept: values of keys that stand in its env_vars are replaced."""
    done: Row = _mask_env_vars(config, inside=False)
    return done


def _mask_env_vars(node: Any, *, inside: bool) -> Any:
    if isinstance(node, dict):
        return {key: _mask_env_value(key, value, inside=inside) for key, value in node.items()}
    if isinstance(node, list):
        return [_mask_env_vars(item, inside=inside) for item in node]
    return node


def _mask_env_value(key: str, value: Any, *, inside: bool) -> Any:
    if inside and isinstance(value, str) and value.startswith("lit:") and looks_secret(key):
        return "lit:***"
    return _mask_env_vars(value, inside=inside or key == KEY)


def _job_data(experiment: Experiment, at: int, compiled: CompiledConfig) -> Row:
    """Return the data that the launcher keeps of a job, together with those of newskills."""
    task = compiled.tasks[at]
    job = next(job for job in experiment.jobs if job.name == task.folder)
    env = _task_env(compiled, at)
    hosts = {name: value.value for name, value in env.items() if value.kind == "host" and name != value.value}
    own = {"experiment": experiment.id, "job": job.name, HOST: hosts}
    image = task.container or "newskills"
    if not compiled.execution.is_slurm:
        return {
            "output_dir": job.folder,
            "container": f"client-{task.name}",
            "eval_image": image,
            "newskills": own,
        }
    tunnel = experiment.cluster.ssh_tunnel
    hostname, username = compiled.execution.hostname, compiled.execution.username
    if tunnel:
        hostname, username = tunnel.host, tunnel.user or username
    return {
        "slurm_job_id": job.handle,
        "remote_rundir_path": job.folder,
        "hostname": hostname,
        "username": username,
        "eval_image": image,
        "newskills": own,
    }


def _task_env(compiled: CompiledConfig, at: int) -> EnvMap:
    return {**compiled.export_env, **compiled.deployment.env, **compiled.tasks[at].env}


def _resubmitted_entry(entry: InvocationJob, experiment: Experiment) -> InvocationJob:
    """Return `entry` as a job of the new submission."""
    own = {**(entry.own or {}), "experiment": experiment.id}
    data = {key: value for key, value in entry.data.items() if key != "killed"}
    data |= {"newskills": own, "resumed_at": time.time()}
    if "slurm_job_id" in data:
        data["slurm_job_id"] = next(job.handle for job in experiment.jobs if job.name == own["job"])
    return msgspec.structs.replace(entry, data=data)


def _entry_state(entry: InvocationJob, job: JobState) -> State:
    if job.ended and job.state != "completed" and entry.data.get("killed"):
        return "killed"
    return job_state(job.state)


def _read_pipeline(experiment: Experiment, environ: Mapping[str, str]) -> Pipeline:
    path = ExperimentRecords(environ).folder / experiment.name / experiment.stamp / PLAN
    try:
        return msgspec.json.decode(path.read_bytes(), type=Pipeline)
    except (OSError, msgspec.DecodeError, msgspec.ValidationError) as error:
        raise DataError(f"{path}, the plan of {experiment.id}, cannot be read: {error}.") from error


def _remaining_pipeline(pipeline: Pipeline, names: set[str]) -> Pipeline:
    """Return the pipeline with the jobs in `names` and the exports that come after them, without dependencies on other
    jobs, which have ended."""
    kept: dict[str, Job] = {}
    for job in pipeline.order():
        after = tuple(need for need in job.depends_on if need in kept)
        if job.name in names or (after and job.name not in names and _is_export_job(job)):
            kept[job.name] = msgspec.structs.replace(job, depends_on=after)
    return msgspec.structs.replace(pipeline, jobs=tuple(kept.values()))


def _is_export_job(job: Job) -> bool:
    return any(command.name == "export" for command in job.commands())


def _check_secrets(pipeline: Pipeline, environ: Mapping[str, str]) -> None:
    wanted = {name for job in pipeline.jobs for command in job.commands() for name in command.script.secrets}
    if missing := sorted(name for name in wanted if not environ.get(name)):
        raise ConfigError(
            f"The first run had {', '.join(missing)}, which is not set here now.", hint="Export it, and try again."
        )
