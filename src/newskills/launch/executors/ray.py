# SPDX-License-Identifier: Apache-2.0
"""Executor `ray`: jobs on a running Ray cluster, submitted through its Jobs API; nothing of Ray is needed here.

An experiment is one Ray job, a supervisor that takes no resources (`launch/ray/supervisor.py`). It places the jobs,
each on one node or on several, and keeps their states in their folders, on a file system that all nodes see. The
handle of a job is `<submission id>/<name>`. Values of secrets go through a file that others cannot read and that the
supervisor deletes as it begins: what a runtime environment holds, Ray shows to everybody who may look.
"""

from __future__ import annotations

import json
import secrets
import shlex
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import PurePosixPath
from typing import Any

import msgspec

from newskills.base.errors import ConfigError, LockedError, UnknownNameError
from newskills.base.plan import Command, HardwareConfig, Job
from newskills.base.terminal import counted, printable
from newskills.launch.clusters.config import ClusterConfig
from newskills.launch.clusters.mounts import Mount, is_inside, parse_mounts
from newskills.launch.clusters.names import MAX_NAME_CHARS
from newskills.launch.clusters.times import seconds_of
from newskills.launch.clusters.variables import job_variables
from newskills.launch.executors.none import HERE
from newskills.launch.job_script import quote_for_bash, render_scripts
from newskills.launch.machines.ssh import shell_of
from newskills.launch.place import SIGNAL_GROUP, JobFolder, Obstacle, PendingJob, Site, Variable
from newskills.launch.ray.api import RayApi, RayNode
from newskills.launch.ray.files import (
    CANCELLED,
    FIRST_NODE,
    PLAN,
    PRIVATE_FOLDER,
    SECRETS,
    STATE,
    SUBMISSION,
    has_ended,
    node_folder,
)

LIVE_STATES = ("PENDING", "RUNNING")
"""States of a Ray job that has not ended."""
LAST_LINES = 2000
"""Of each log that `logs` yields."""
WARNING_SECONDS = 120
"""Seconds before the time limit at which job.sh is told, for limits of ten minutes and more."""
STOP_SECONDS = 90
"""Which `ray job stop` leaves to jobs: clients have the 60 s of job.sh to save their work."""


def make(site: Site) -> RayJobs:
    return RayJobs(site)


class RayJobs:
    """Executor and Place in one: jobs without containers of their own. Their groups share the first node."""

    def __init__(self, site: Site) -> None:
        self.cluster = site.cluster
        self.variables = job_variables(site.cluster, site.environ)
        self._site = site
        self._shell = shell_of(site.cluster, site.environ)
        self._api = RayApi(site.cluster.ray.address, site.environ, self._shell)
        self._prefix = submission_prefix(site.folder)
        self._folders: dict[str, str] = {}

    def submit(self, job: Job, *, after: Sequence[str] = ()) -> str:
        """Submit the job; return its handle when Ray has accepted it. Raises what `submit_all` raises."""
        return self.submit_all([PendingJob(job, tuple(after))])[job.name]

    def submit_all(self, jobs: Sequence[PendingJob]) -> dict[str, str]:
        """Submit the jobs; return job name → handle. All are accepted or none.

        Raises ConfigError for what no node of the cluster has and for an unknown handle, RemoteError, LockedError where
        jobs of that folder still run, StorageError.
        """
        if not jobs:
            return {}
        folder, submission = self._site.folder, f"{self._prefix}-{secrets.token_hex(3)}"
        if obstacles := [obstacle for obstacle in self.obstacles([job.job for job in jobs]) if obstacle.final]:
            raise ConfigError(
                " ".join(f"{_format_jobs(obstacle.jobs)}: {obstacle.text}" for obstacle in obstacles)
            )
        texts: dict[str, str] = {f"{PRIVATE_FOLDER}/{PLAN}": self._plan(jobs), f"{PRIVATE_FOLDER}/{CANCELLED}": ""}
        texts[f"{PRIVATE_FOLDER}/{SUBMISSION}"] = f"{submission}\n"
        for pending in jobs:
            name = pending.job.name
            files = {**render_scripts(pending.job, self._site.job_folder(pending.job), self), STATE: "pending\n"}
            texts.update({f"{name}/{file}": text for file, text in files.items()})
            for rank in range(1, _node_count(pending.job)):
                text = _node_text(pending.job, self._site.job_folder(pending.job), rank)
                texts[f"{node_folder(name, rank)}/job.sh"] = text
        self._check_free(jobs)
        self._shell.write({f"{PRIVATE_FOLDER}/{SECRETS}": json.dumps(self._secrets(jobs)), **texts}, folder)
        request = {
            "entrypoint": f"exec python3 -m newskills.launch.ray.supervisor {shlex.quote(folder)}",
            "submission_id": submission,
            "runtime_env": runtime_env(self.cluster, self._site.code),
            "metadata": {"folder": folder, "experiment": self._site.experiment, "jobs": str(len(jobs))},
        }
        try:
            self._api.submit(request)
        except BaseException:
            self._shell.run(["rm", "-f", "--", f"{folder}/{PRIVATE_FOLDER}/{SECRETS}"])
            raise
        return {pending.job.name: f"{submission}/{pending.job.name}" for pending in jobs}

    def find(self, names: Sequence[str]) -> dict[str, str]:
        """Return job name → handle, for jobs that were taken although their submission could not say so."""
        (text,) = self._shell.read([f"{self._site.folder}/{PRIVATE_FOLDER}/{SUBMISSION}"])
        submission = (text or "").strip()
        taken = bool(submission) and self._api.job(submission) is not None
        if taken:
            return {name: f"{submission}/{name}" for name in names}
        return {}

    def state(self, handles: Sequence[str]) -> dict[str, str]:
        """Return handle → pending (why), running, requeued (why), completed, failed, cancelled, timeout; unknown.

        Ray is asked only about jobs that have not ended. Raises ConfigError for what is no handle, RemoteError.
        """
        ours = [handle for handle in handles if self._folder(handle)]
        states = dict.fromkeys(handles, "unknown") | self._states(ours)
        waiting = [handle for handle in ours if not has_ended(states[handle])]
        details = {submission: self._api.job(submission) for submission in _submission_ids(waiting)}
        lost = [
            handle
            for handle in waiting
            if (details[_submission_id(handle)] or {}).get("status") not in LIVE_STATES
        ]
        for handle, state in self._states(lost).items():  # it may have come to its end meanwhile
            if not has_ended(state) and state != "unknown":
                state = _lost_state(details[_submission_id(handle)])
            states[handle] = state
        return states

    def obstacles(self, jobs: Sequence[Job]) -> list[Obstacle]:
        """Return what the jobs ask for that no node has. Raises ConfigError, RemoteError."""
        nodes = self._api.nodes()
        obstacles: dict[str, list[str]] = {}
        for job in jobs:
            if text := placement_problem(self._resources(job), nodes) or _too_few(self._further(job), nodes):
                obstacles.setdefault(text, []).append(job.name)
        final = not self.cluster.ray.autoscaling
        return [Obstacle(tuple(names), text, final) for text, names in obstacles.items()]

    def logs(self, handle: str) -> Iterator[str]:
        """Yield the end of the job's own log, then of each command's, below lines with their paths. Raises
        ConfigError."""
        folder = self._folder(handle)
        ran = self._shell.run(["bash", "-c", _LOGS, "bash", folder, str(LAST_LINES)])
        if not folder or ran.code != 0:
            raise ConfigError(f"There is no job '{handle}'.")
        yield from ran.out.splitlines()

    def cancel(self, handles: Sequence[str]) -> None:
        """Remove waiting jobs and tell running jobs to stop, which may save their work. Returns at once.

        Asking twice makes `ns` give up requests in flight. Jobs that have ended are no error. Raises ConfigError.
        """
        for submission in _submission_ids(handles):
            names = [_job_name(handle) for handle in handles if _submission_id(handle) == submission]
            if not (folder := self._experiment(submission)):
                raise ConfigError(f"Ray does not know the job '{submission}'.")
            path = f"{folder}/{PRIVATE_FOLDER}/{CANCELLED}"
            self._shell.run(["bash", "-c", 'printf "%s\\n" "${@:2}" >>"$1"', "bash", path, *names])

    def header(self, job: Job, folder: JobFolder) -> Sequence[str]:
        return ()

    def prologue(self, job: Job, folder: JobFolder) -> Sequence[str]:
        """Return lines that divide the GPUs among groups, where there are several."""
        if len(job.groups) == 1:
            return ()
        lines = ['IFS=, read -r -a job_gpus <<<"${CUDA_VISIBLE_DEVICES:-}"']
        first = 0
        for number, group in enumerate(job.groups):
            count = group.hardware.num_gpus
            lines.append(f'job_gpus_{number}=$(IFS=,; echo "${{job_gpus[*]:{first}:{count}}}")')
            first += count
        return lines

    def step(self, job: Job, group: int, command: Command, folder: JobFolder) -> Sequence[str | Variable]:
        if len(job.groups) == 1:
            return ("setsid",)
        return ("setsid", "env", Variable(f"job_gpus_{group}", "CUDA_VISIBLE_DEVICES="))

    def environment(self, command: Command) -> Mapping[str, str]:
        plain = dict(self.variables.plain)
        if self._site.code:
            plain["PYTHONPATH"] = ":".join(filter(None, [self._site.code, plain.get("PYTHONPATH", "")]))
        return plain

    def workdir(self, command: Command, folder: JobFolder) -> str:
        return command.workdir or folder.code

    def host(self, job: Job, group: int) -> str | Variable:
        if job.groups[group].hardware.num_nodes > 1:
            return Variable(FIRST_NODE)
        return HERE

    def first_node(self, job: Job, group: int) -> str | Variable:
        return self.host(job, group)

    def inside(self, command: Command, folder: JobFolder) -> Sequence[str]:
        return ()

    def signal(self, job: Job, folder: JobFolder) -> Sequence[str]:
        return SIGNAL_GROUP

    def out_of_time(self, job: Job, folder: JobFolder) -> Sequence[str]:
        if job.copies:
            return ('say "it goes on from here, as long as it has follow-up jobs left"',)
        return ('say "run the same command again to go on from here (or give --dependent_jobs=N next time)"',)

    def _check_free(self, jobs: Sequence[PendingJob]) -> None:
        """Raise LockedError where jobs that were submitted before still use the same folder."""
        folder = self._site.folder
        (earlier,) = self._shell.read([f"{folder}/{PRIVATE_FOLDER}/{SUBMISSION}"])
        if earlier is None or (self._api.job(earlier.strip()) or {}).get("status") not in LIVE_STATES:
            return
        states = self._states([f"{self._prefix}/{pending.job.name}" for pending in jobs])
        if not all(map(has_ended, states.values())):
            raise LockedError(
                f"Jobs in {folder} are still running.", hint=f"ray job stop {earlier.strip()} ends them."
            )

    def _plan(self, jobs: Sequence[PendingJob]) -> str:
        """Return the content of jobs.json. Raises ConfigError for a handle that nobody knows."""
        rows: list[dict[str, Any]] = []
        for pending in jobs:
            job, folder = pending.job, self._site.job_folder(pending.job)
            if unknown := [handle for handle in pending.after if not self._folder(handle)]:
                raise ConfigError(f"Ray does not know job {', '.join(unknown)}, so no job can wait for it.")
            seconds = seconds_of(self._limit(job))
            rows.append(
                {
                    "name": job.name,
                    "folder": folder.path,
                    "logs": folder.logs,
                    "resources": self._resources(job),
                    "more": self._further(job),
                    "needs": list(pending.needs),
                    "after": [self._folder(handle) for handle in pending.after],
                    "seconds": seconds,
                    "warning": min(WARNING_SECONDS, max(1, seconds // 5)),
                    "copies": job.copies,
                }
            )
        plan = {
            "dependency_type": self.cluster.dependency_type,
            "lost_nodes": self.cluster.ray.lost_nodes,
            "jobs": rows,
        }
        return msgspec.json.format(msgspec.json.encode(plan), indent=2).decode() + "\n"

    def _secrets(self, jobs: Sequence[PendingJob]) -> dict[str, str]:
        names = [name for job in jobs for command in job.job.commands() for name in command.script.secrets]
        environ = self._site.environ
        return {**{name: environ[name] for name in names if name in environ}, **self.variables.secrets}

    def _resources(self, job: Job) -> dict[str, float]:
        """Return the resources that the first node of a job must have free. Raises ConfigError for an unknown
        partition."""
        options = self.cluster.ray
        resources: dict[str, float] = {"CPU": options.default_num_cpus, **options.resources}
        for group in job.groups:
            if (name := self._partition(job, group.hardware.partition)) is not None:
                resources.update(options.partitions[name])
        if gpus := sum(group.hardware.num_gpus for group in job.groups):
            resources["GPU"] = gpus
        return resources

    def _further(self, job: Job) -> list[dict[str, float]]:
        """Return the resources that each further node must have free. Raises ConfigError for an unknown partition."""
        for group in job.groups:
            if group.hardware.num_nodes > 1:
                alone = msgspec.structs.replace(job, groups=(group,))
                return [self._resources(alone)] * (group.hardware.num_nodes - 1)
        return []

    def _partition(self, job: Job, own: str | None) -> str | None:
        name = own or self.cluster.partition
        if name is not None and name not in self.cluster.ray.partitions:
            raise UnknownNameError(
                f"partition of job '{job.name}'",
                name,
                self.cluster.ray.partitions,
                hint=f"ray.partitions of cluster '{self.cluster.name}' says what resources a partition is.",
            )
        return name

    def _limit(self, job: Job) -> str:
        """Return the shortest time limit of the job's groups."""
        return min((_time_limit(self.cluster, group.hardware) for group in job.groups), key=seconds_of)

    def _folder(self, handle: str) -> str:
        """Return the folder of a job; empty for an unknown one. Raises ConfigError for what is no handle."""
        folder = self._experiment(_submission_id(handle))
        if folder:
            return f"{folder}/{_job_name(handle)}"
        return ""

    def _experiment(self, submission: str) -> str:
        """Return the folder of an experiment: this one's, else the one that Ray has recorded; empty: none."""
        if submission.startswith(self._prefix):
            return self._site.folder
        if submission not in self._folders:
            details = self._api.job(submission) or {}
            self._folders[submission] = str((details.get("metadata") or {}).get("folder", ""))
        return self._folders[submission]

    def _states(self, handles: Sequence[str]) -> dict[str, str]:
        """Return handle → the state that the supervisor has written; unknown where there is none."""
        texts = self._shell.read([f"{self._folder(handle)}/{STATE}" for handle in handles])
        return {handle: (text or "").strip() or "unknown" for handle, text in zip(handles, texts, strict=True)}


def runtime_env(cluster: ClusterConfig, code: str) -> dict[str, Any]:
    """Return the `runtime_env` of all jobs, supervisor included. Folders have the same paths in containers: the
    scripts of jobs name them.

    Raises ConfigError for a mount that has another path there.
    """
    own = cluster.ray.runtime_env
    variables = dict(own.get("env_vars", {}))
    if code:
        variables["PYTHONPATH"] = code
    environment = {**own, "env_vars": {**variables, "RAY_JOB_STOP_WAIT_TIME_S": str(STOP_SECONDS)}}
    if cluster.ray.image is None:
        return environment
    mounts = parse_mounts(cluster.mounts)
    if moved := next((mount for mount in mounts if mount.src != mount.dst), None):
        raise ConfigError(
            f"The mount '{moved}' moves its folder, which executor ray cannot do.",
            hint=f"Write {moved.src}:{moved.src}, and that path in your options.",
        )
    if not any(is_inside(cluster.job_dir, mount.dst) for mount in mounts):
        mounts = (*mounts, Mount(cluster.job_dir, cluster.job_dir))
    # Not image_uri: containers of that see none of the node's folders but Ray's own.
    options = [f"--volume={shlex.quote(str(mount))}" for mount in mounts]
    return {**environment, "container": {"image": cluster.ray.image, "run_options": options}}


def submission_prefix(folder: str) -> str:
    """Return the prefix of the ids of jobs submitted from `folder`: readable, and different for each folder."""
    path = PurePosixPath(folder)
    words = "-".join(path.parts[-2:]).strip("/")[: MAX_NAME_CHARS - 16]
    plain = "".join(ch if ch.isascii() and (ch.isalnum() or ch in "-_.") else "-" for ch in words)
    return f"{plain}-{blake2b(folder.encode('utf-8', 'surrogateescape'), digest_size=4).hexdigest()}"


def placement_problem(resources: Mapping[str, float], nodes: Sequence[RayNode]) -> str:
    """Return why no node can run what needs these resources; empty where one can."""
    if any(node.has(resources) for node in nodes):
        return ""
    wanted = ", ".join(f"{name}: {amount:g}" for name, amount in resources.items() if amount)
    if not nodes:
        return f"the cluster has no nodes; the job asks for {wanted}"
    lacking = [name for name, amount in resources.items() if not any(node.has({name: amount}) for node in nodes)]
    most = {name: max(node.resources.get(name, 0) for node in nodes) for name in lacking or resources}
    shown = ", ".join(f"{name}: {amount:g}" for name, amount in most.items())
    least = "nodes have these apart, at most"
    if lacking:
        least = "the most that a node has is"
    return f"no node has {wanted}; {least} {shown} ({counted(len(nodes), 'node')})"


def _too_few(further: Sequence[Mapping[str, float]], nodes: Sequence[RayNode]) -> str:
    """Return why there are too few nodes for the resources of each further one; empty where there are enough."""
    if not further:
        return ""
    fitting = sum(node.has(further[0]) for node in nodes)
    if fitting > len(further):
        return ""
    wanted = ", ".join(f"{name}: {amount:g}" for name, amount in further[0].items() if amount)
    return f"it needs {len(further) + 1} nodes with {wanted}; {fitting} of {len(nodes)} have that"


def _node_count(job: Job) -> int:
    return max(group.hardware.num_nodes for group in job.groups)


def _node_text(job: Job, folder: JobFolder, rank: int) -> str:
    """Return the job.sh of a further node: what runs on all of them. Its scripts know their rank as under
    Slurm."""
    names = [command.name for group in job.groups for command in group.commands if command.script.all_nodes]
    lines = [f"#!/bin/bash\n# Node {rank}: what runs on each node of the job.", "set -u"]
    lines += [f"job_folder={quote_for_bash(folder.path)}", f"job_logs={quote_for_bash(folder.logs)}"]
    lines += [f"export SLURM_PROCID={rank} SLURM_NODEID={rank}"]
    lines += [f'bash "$job_folder"/{name}.sh </dev/null >>"$job_logs/{name}-{rank}.log" 2>&1 &' for name in names]
    return "\n".join([*lines, "wait"]) + "\n"


def _time_limit(cluster: ClusterConfig, hardware: HardwareConfig) -> str:
    partition = hardware.partition or cluster.partition or ""
    own = hardware.time_limit or hardware.sbatch_kwargs.get("time")
    return str(own or cluster.timeouts.get(partition) or cluster.default_timeout)


def _lost_state(details: Mapping[str, Any] | None) -> str:
    """Return the state of a job whose supervisor has ended before it."""
    if details is None:
        return "failed (the Ray cluster does not know it any more)"
    if details.get("status") == "STOPPED":
        return "cancelled"
    lines = [line.strip() for line in str(details.get("message") or "").splitlines() if line.strip()]
    if lines:
        return f"failed (its supervisor has ended: {printable(lines[0])[:120]})"
    return "failed (its supervisor has ended)"


def _submission_id(handle: str) -> str:
    submission, slash, name = handle.partition("/")
    if not submission or not slash or not name or "/" in name:
        raise ConfigError(f"'{handle}' is not the handle of a job on Ray, <submission id>/<job>.")
    return submission


def _job_name(handle: str) -> str:
    return handle.partition("/")[2]


def _submission_ids(handles: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(map(_submission_id, handles)))


def _format_jobs(jobs: Sequence[str]) -> str:
    if len(jobs) > 1:
        return f"Job '{jobs[0]}' and {len(jobs) - 1} more"
    return f"Job '{jobs[0]}'"


_LOGS = """\
[[ -n $1 && -e $1/job.sh ]] || exit 1
source <(grep -m 1 '^job_logs=' "$1/job.sh")
shopt -s nullglob
for file in "$job_logs"/job.log "$job_logs"/*.log; do
    [[ -e $file && ($file != "$job_logs/job.log" || -z ${seen:-}) ]] || continue
    [[ $file != "$job_logs/job.log" ]] || seen=yes
    echo "==> $file <=="
    tail -n "$2" -- "$file"
done
"""
