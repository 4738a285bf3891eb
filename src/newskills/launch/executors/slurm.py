# SPDX-License-Identifier: Apache-2.0
"""Executor `slurm`: jobs on a cluster, submitted from here or through ssh; nothing but Slurm's own commands is needed.

The handle of a job is its Slurm id; of a job with copies, all ids of the chain (`101:102:103`). A copy depends on the
failure of those before it and is removed by Slurm when one of them has succeeded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from newskills.base.errors import ConfigError, NewskillsError, RemoteError
from newskills.base.plan import Job
from newskills.launch.executors.slurm_script import SlurmPlace, sbatch_lines
from newskills.launch.executors.slurm_status import (
    SQUEUE_SECONDS,
    WAITING_STATES,
    chain_state,
    marked_state,
    query_accounting,
    slurm_error,
    slurm_ids,
    slurm_records,
)
from newskills.launch.executors.slurm_submission import (
    ArrayBatch,
    SlurmSubmission,
    array_batches,
    array_size,
    array_text,
    group_alike_jobs,
)
from newskills.launch.executors.slurm_trial import Partition, partition_problem, read_partitions, try_scripts
from newskills.launch.job_script import read_bash_resource, render_scripts
from newskills.launch.machines.shell import ShellCall
from newskills.launch.machines.ssh import shell_of
from newskills.launch.place import JobFolder, Obstacle, PendingJob, Site

LAST_LINES = 2000
"""Of each log that `logs` yields."""

KEPT_VARIABLES = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "TERM"),
    *("LD_LIBRARY_PATH", "MODULEPATH", "MODULESHOME", "LOADEDMODULES", "LMOD_CMD", "SLURM_CONF"),
    *("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"),
)
"""Variables of the submitting shell that jobs get. All others stay behind: SLURM_* and SBATCH_* of an allocation in
which the user stands would change the job, and keys that nobody has named must not travel."""


def make(site: Site) -> Slurm:
    return Slurm(site)


class Slurm(SlurmPlace):
    """Executor and Place in one."""

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._site = site
        self._shell = shell_of(site.cluster, site.environ)

    def submit(self, job: Job, *, after: Sequence[str] = ()) -> str:
        """Submit the job; return its handle when Slurm has accepted it. Raises ConfigError, RemoteError,
        StorageError."""
        return self.submit_all([PendingJob(job, tuple(after))])[job.name]

    def submit_all(self, jobs: Sequence[PendingJob]) -> dict[str, str]:
        """Submit the jobs; return job name → handle. All scripts go over in one copy, all jobs in one trip; all
        are accepted or none.

        Raises ConfigError for a handle that Slurm does not know (it would start such jobs at once), RemoteError,
        StorageError.
        """
        if not jobs:
            return {}
        active = self._active_states(list(dict.fromkeys(handle for job in jobs for handle in job.after)))
        self._ask_limits()
        folders = [self._site.job_folder(job.job) for job in jobs]
        packed = self._pack_arrays(jobs, folders)
        files = {f"{job.job.name}/{name}": text for job in jobs for name, text in self._script_files(job.job)}
        for batch in (batch for batch in packed if batch.array >= 0):
            some, first = [jobs[number] for number in batch.jobs], batch.jobs[0]
            (options,) = self.requests(jobs[first].job, folders[first])
            files[f".arrays/{batch.array}/array.sh"] = array_text(options, some, self._site.folder, batch.array)
        self._shell.write(files, self._site.folder)
        secrets = dict(self.variables.secrets)
        for job in jobs:
            for name in (name for command in job.job.commands() for name in command.script.secrets):
                if name in self._site.environ:
                    secrets.setdefault(name, self._site.environ[name])
        submission = SlurmSubmission(
            jobs,
            packed,
            folders,
            dependency_type=self.cluster.dependency_type,
            active=active,
            kept=(*KEPT_VARIABLES, *secrets),
        )
        script = submission.text(self._site.folder)
        try:
            ran = self._shell.run(["bash", "-s"], stdin=script, secrets=secrets)
            if ran.code != 0:
                raise slurm_error("sbatch", ran, self._shell)
            handles = dict(line.split(" ", 1) for line in ran.out.splitlines() if line.startswith("="))
            return {job.job.name: handles[f"={number}"] for number, job in enumerate(jobs)}
        except BaseException as error:
            if not self._withdraw([job.job.name for job in jobs]) and isinstance(error, RemoteError):
                hint = f"Slurm may have accepted jobs before that; squeue --me on {self._shell.name} lists them."
                raise RemoteError(str(error), hint=hint) from error
            raise

    def find(self, names: Sequence[str]) -> dict[str, str]:
        """Return job name → handle, for jobs that were taken: by what the submission has noted, else by their
        folder."""
        limit = str(SQUEUE_SECONDS)
        ran = self._shell.run(
            ["bash", "-c", read_bash_resource("slurm_find"), "bash", self._site.folder, limit, *names]
        )
        if ran.code != 0:
            raise slurm_error("squeue", ran, self._shell)
        pairs = (line.partition(" ") for line in ran.out.splitlines())
        return {name: handle for name, _, handle in pairs}

    def state(self, handles: Sequence[str]) -> dict[str, str]:
        """Return handle → pending (reason), running, completed, failed, cancelled, timeout, preempted, requeued;
        unknown.

        One trip for what the controller knows and the jobs' own marks, another for what it has forgotten.
        """
        wanted = list(dict.fromkeys(slurm_id for handle in handles for slurm_id in slurm_ids(handle)))
        records_by_id, (look,) = slurm_records(self._shell, wanted, more=[self._look_call()])
        marks = _parse_marks(look.out)
        missing = [slurm_id for slurm_id in wanted if slurm_id not in records_by_id]
        if missing:
            records_by_id |= query_accounting(self._shell, missing)
        states = {}
        for handle in handles:
            mark = marks.get(handle, "")
            words = []
            for slurm_id in slurm_ids(handle):
                record = records_by_id.get(slurm_id)
                words.append("unknown" if record is None else record.word(mark))
            states[handle] = chain_state(words)
            if states[handle] == "unknown":
                states[handle] = marked_state(mark) or "unknown"
        return states

    def obstacles(self, jobs: Sequence[Job]) -> list[Obstacle]:
        """Return the obstacles to these jobs, by what Slurm says of its partitions and by `sbatch --test-only`.

        Two trips; jobs that ask for the same are asked about once. Raises ConfigError, RemoteError.
        """
        cluster_partitions = read_partitions(self._shell)
        self._keep_limits(cluster_partitions)
        wrong: dict[tuple[str, bool], list[str]] = {}
        texts: dict[str, list[str]] = {}
        for job in jobs:
            groups = self.requests(job, self._site.job_folder(job))
            if why := next(
                filter(None, (partition_problem(options, cluster_partitions) for options in groups)), ""
            ):
                wrong.setdefault((why, True), []).append(job.name)
                continue
            same = [
                {name: value for name, value in options.items() if name not in _OWN_OPTIONS} for options in groups
            ]
            texts.setdefault("\n".join(["#!/bin/bash", *sbatch_lines(same), "true\n"]), []).append(job.name)
        keep = f"{read_bash_resource('slurm_keep')}keep_only {' '.join(KEPT_VARIABLES)}"
        for names, (why, final) in zip(texts.values(), try_scripts(self._shell, list(texts), keep), strict=True):
            if why:
                wrong.setdefault((f"Slurm says: {why}", final), []).extend(names)
        return [Obstacle(tuple(names), why, final) for (why, final), names in wrong.items()]

    def logs(self, handle: str) -> Iterator[str]:
        """Yield the end of the job's own log, then of each command's, below lines with their paths. Raises
        ConfigError."""
        slurm_ids(handle)
        ran = self._shell.run(["bash", "-c", _LOGS, "bash", self._site.folder, handle, str(LAST_LINES)])
        if ran.code != 0:
            raise ConfigError(f"Experiment folder {self._site.folder} has no job '{handle}'.")
        yield from ran.out.splitlines()

    def cancel(self, handles: Sequence[str]) -> None:
        """Remove waiting jobs and tell running jobs to stop, which may save their work. Returns at once.

        The batch script gets TERM, then URG, which counts where a job that just begins missed the first.

        Asking twice makes `ns` give up requests in flight. Jobs that have ended are no error. Raises ConfigError.
        """
        ids = [slurm_id for handle in handles for slurm_id in slurm_ids(handle)]
        if not ids:
            return
        tasks = [slurm_id for slurm_id in ids if "_" in slurm_id]
        # Of an array with no task of its own record, `--state=PENDING` removes all tasks whichever is named; what is
        # held has one.
        calls = [
            ShellCall(argv=("scancel", "--quiet", "--state=PENDING", *ids)),
            ShellCall(argv=("scancel", "--quiet", "--batch", "--signal=TERM", *ids)),
            ShellCall(argv=("scancel", "--quiet", "--batch", "--signal=URG", *ids)),
        ]
        if tasks:
            hold = "".join(f"hold {slurm_id}\n" for slurm_id in tasks)
            calls.insert(0, ShellCall(argv=("scontrol",), stdin=hold))
        *_, waiting, running, _ = self._shell.run_all(calls)
        for ran in (waiting, running):
            if ran.code == 127 or "denied" in ran.err:
                raise slurm_error("scancel", ran, self._shell)

    def _active_states(self, handles: Sequence[str]) -> dict[str, str]:
        """Return handle → state of those that have not ended. Raises ConfigError for one that nobody knows."""
        if not handles:
            return {}
        states = self.state(handles)
        if unknown := [handle for handle, state in states.items() if state == "unknown"]:
            raise ConfigError(f"Slurm does not know job {', '.join(unknown)}, so no job can wait for it.")
        kind = self.cluster.dependency_type
        for handle, state in states.items():
            never = ("afternotok",) if state == "completed" else ("afterok", "aftercorr")
            if _has_ended(state) and kind in never:
                raise ConfigError(
                    f"Job {handle} is {state}: a job that depends on it by {kind} would never start."
                )
        return {handle: state for handle, state in states.items() if not _has_ended(state)}

    def _ask_limits(self) -> None:
        """Query the longest time limits of the partitions, since the config's default may be longer."""
        if not self.limits:
            self._keep_limits(read_partitions(self._shell))

    def _keep_limits(self, cluster_partitions: Mapping[str, Partition]) -> None:
        # not infinite, nor n/a
        self.limits.update(
            {
                name: partition.limit
                for name, partition in cluster_partitions.items()
                if partition.limit[:1].isdigit()
            }
        )

    def _pack_arrays(self, jobs: Sequence[PendingJob], folders: Sequence[JobFolder]) -> list[ArrayBatch]:
        """Group jobs that are alike into arrays, as large as the cluster takes them. Raises ConfigError,
        RemoteError."""
        requests = [self.requests(job.job, folder) for job, folder in zip(jobs, folders, strict=True)]
        groups = group_alike_jobs(jobs, requests, any_end=self.cluster.dependency_type == "afterany")
        several = any(len(group) > 1 for group in groups) and self.cluster.dependency_type != "aftercorr"
        most = array_size(self._shell) if several else 1
        return array_batches(groups, most)

    def _script_files(self, job: Job) -> Iterable[tuple[str, str]]:
        return render_scripts(job, self._site.job_folder(job), self).items()

    def _withdraw(self, names: Sequence[str]) -> bool:
        """Cancel what was submitted of these jobs, and tell processes that may still be submitting them to do the same;
        return whether that succeeded."""
        try:
            return self._shell.run(["bash", "-c", _WITHDRAW, "bash", self._site.folder, *names]).code == 0
        except NewskillsError:
            return False

    def _look_call(self) -> ShellCall:
        return ShellCall(argv=("bash", "-c", _LOOK, "bash", self._site.folder))


def _has_ended(state: str) -> bool:
    return not state.startswith((*WAITING_STATES, "running"))


def _parse_marks(text: str) -> dict[str, str]:
    """Parse lines into handle → text of job.exit."""
    pairs = (line.partition(" ") for line in text.splitlines())
    return {handle: mark for handle, _, mark in pairs}


_OWN_OPTIONS = ("job-name", "output", "open-mode")
"""Options that say nothing about whether a job can run."""

_WITHDRAW = """\
trap '' INT
cd -- "$1" || exit 1
ids=()
for job in "${@:2}"; do
    : >"$job/job.withdrawn" || exit 1  # before reading: a handle that comes later is seen by who writes it
    [[ ! -e $job/job.handle ]] || { read -r handle <"$job/job.handle" && ids+=(${handle//:/ }); }
done
[[ ${#ids[@]} -eq 0 ]] || scancel --quiet "${ids[@]}"
"""

_LOGS = """\
shopt -s nullglob
logs=""
for file in "$1"/*/job.handle; do
    { read -r handle && [[ $handle == "$2" ]] && IFS= read -r logs; } <"$file" && break
done
[[ -n $logs ]] || exit 1
declare -A seen
for file in "$logs"/*_sbatch.log "$logs"/*.log; do
    [[ -z ${seen[$file]:-} ]] || continue
    seen[$file]=yes
    echo "==> $file <=="
    tail -n "$3" -- "$file"
done
"""

_LOOK = """\
cd -- "$1" 2>/dev/null || exit 0
for file in */job.handle; do
    [[ -e $file ]] || continue
    read -r handle <"$file"
    mark=""
    [[ ! -e ${file%/*}/job.exit ]] || read -r mark <"${file%/*}/job.exit"
    printf '%s %s\\n' "$handle" "$mark"
done
"""
