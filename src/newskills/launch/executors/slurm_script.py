# SPDX-License-Identifier: Apache-2.0
"""Slurm's part of the job script: `#SBATCH` lines, the names of nodes, and `srun` in front of each command.

Containers are started by Pyxis. Facts of Slurm that this is built on are in the tests, which run on a real cluster.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from newskills.base.errors import ConfigError
from newskills.base.plan import Command, CommandGroup, Job
from newskills.environments.engines import pyxis
from newskills.launch.clusters.config import image_of
from newskills.launch.clusters.mounts import CODE, parse_mounts
from newskills.launch.clusters.names import MAX_NAME_CHARS
from newskills.launch.clusters.times import seconds_of
from newskills.launch.clusters.variables import job_variables
from newskills.launch.job_script import quote_for_bash
from newskills.launch.place import JobFolder, Site, Variable

WARNING_SECONDS = 120
"""Seconds before the time limit at which job.sh is told, for limits of ten minutes and more. Slurm may be a minute
early; clients then have the 60 s of job.sh to save their work."""
CONTROLLER_TROUBLE = (
    "[Tt]imed out|[Uu]nable to contact slurm controller|[Zz]ero [Bb]ytes were|[Cc]ommunication (connection|shutdown)|"
    "[Mm]essage (receive|send) failure|[Rr]esource temporarily unavailable|"
    "Connection (refused|reset)|Transport endpoint|controller in standby|[Pp]rotocol authentication error"
)
"""Extended regular expression: what Slurm's commands say when the controller is slow or away."""
STEP_PATIENCE = 600
"""Seconds for which srun is called again where the controller does not answer."""
TASK_PATIENCE = 60
"""Seconds that other tasks of a step may go on when one has ended well."""

OWN_OPTIONS = (
    "array",
    "chdir",
    "dependency",
    "error",
    "export",
    "hetjob",
    "open-mode",
    "output",
    "parsable",
    "wrap",
)
"""Options that sbatch_kwargs cannot change, as the job script relies on them."""
JOB_OPTIONS = ("output", "open-mode", "requeue", "signal", "mail-type", "mail-user")
"""Options of the whole job, which stand above its first group only."""

Options = dict[str, str]
"""Option of sbatch without its dashes → value; empty: a flag."""


class SlurmPlace:
    """Place of jobs of one experiment on a Slurm cluster."""

    def __init__(self, site: Site) -> None:
        self.cluster = site.cluster
        self.variables = job_variables(site.cluster, site.environ)
        self.limits: dict[str, str] = {}
        """Partition → its longest time limit, where the cluster has been asked; "" is the default partition."""
        self._code = site.code
        self._experiment = site.experiment or PurePosixPath(site.folder).name

    def header(self, job: Job, folder: JobFolder) -> Sequence[str]:
        return sbatch_lines(self.requests(job, folder))

    def requests(self, job: Job, folder: JobFolder) -> list[Options]:
        """Return the options of each group. Raises ConfigError."""
        limit = min((self._limit(group) for group in job.groups), key=seconds_of)  # the first to end ends them all
        return [self._options(job, group, folder, limit) for group in job.groups]

    def prologue(self, job: Job, folder: JobFolder) -> Sequence[str]:
        lines = [*_STRAY.splitlines(), "", "# The first node of each group, under names that programs expect."]
        if len(job.groups) == 1:
            lines += _master_lines("SLURM_MASTER_NODE", "SLURM_JOB_NODELIST")
        else:
            for number in range(len(job.groups)):
                lines += _master_lines(
                    f"SLURM_MASTER_NODE_HET_GROUP_{number}", f"SLURM_JOB_NODELIST_HET_GROUP_{number}"
                )
            lines.append("export SLURM_MASTER_NODE=$SLURM_MASTER_NODE_HET_GROUP_0")
        if any(_wants_mpi(group, command) for group in job.groups for command in group.commands):
            lines += ["", *_MPI.splitlines()]
        lines += ["", *_MAKE_ROOM.splitlines(), "", *_run_step()]
        if job.copies:
            lines += ["", *_ONLY_AFTER_LIMIT.splitlines()]
        return lines

    def step(self, job: Job, group: int, command: Command, folder: JobFolder) -> Sequence[str | Variable]:
        hardware, script = job.groups[group].hardware, command.script
        nodes = hardware.num_nodes if script.all_nodes else 1
        words: list[str | Variable] = ["run_step", command.name, "srun", f"--job-name={command.name}"]
        words += ["--overlap", "--export=ALL"]
        if len(job.groups) > 1:
            words.append(f"--het-group={group}")
        words += [
            f"--nodes={nodes}",
            f"--ntasks={nodes * script.tasks_per_node}",
            f"--ntasks-per-node={script.tasks_per_node}",
        ]
        if hardware.num_nodes > nodes:
            words.append(Variable(self.first_node(job, group).name, "--nodelist="))
        if _wants_mpi(job.groups[group], command):
            words.append(Variable("job_mpi", "--mpi="))
        else:
            words.append("--mpi=none")
        if nodes * script.tasks_per_node > 1:
            words += ["--kill-on-bad-exit=1", f"--wait={TASK_PATIENCE}"]
        if image := image_of(self.cluster, command.container):
            words += self._container(command, image, folder, first=[node.name for node in self._first_nodes(job)])
        return words

    def environment(self, command: Command) -> Mapping[str, str]:
        plain = dict(self.variables.plain)
        if self._code:
            code = CODE if image_of(self.cluster, command.container) else self._code
            plain["PYTHONPATH"] = ":".join(filter(None, [code, plain.get("PYTHONPATH", "")]))
        return plain

    def workdir(self, command: Command, folder: JobFolder) -> str:
        if command.workdir:
            return command.workdir
        if image_of(self.cluster, command.container):
            if folder.code:
                return CODE
            return ""
        if folder.code or self.cluster.ssh_tunnel:
            return folder.code
        return os.getcwd()

    def host(self, job: Job, group: int) -> Variable:
        return Variable("SLURMD_NODENAME")

    def first_node(self, job: Job, group: int) -> Variable:
        return self._first_nodes(job)[group]

    def inside(self, command: Command, folder: JobFolder) -> Sequence[str]:
        return (': >"$job_folder/$job_command.step" # the step was created',)

    def signal(self, job: Job, folder: JobFolder) -> Sequence[str]:
        return _SIGNAL.splitlines()

    def out_of_time(self, job: Job, folder: JobFolder) -> Sequence[str]:
        if job.copies:
            return ('say "its next copy in the queue goes on from here, if there is one left"',)
        return ('say "run the same command again to go on from here (or give --dependent_jobs=N next time)"',)

    def _first_nodes(self, job: Job) -> list[Variable]:
        if len(job.groups) == 1:
            return [Variable("SLURM_MASTER_NODE")]
        return [Variable(f"SLURM_MASTER_NODE_HET_GROUP_{number}") for number in range(len(job.groups))]

    def _options(self, job: Job, group: CommandGroup, folder: JobFolder, limit: str) -> Options:
        """Return all options of one group, in the order of the lines."""
        hardware, cluster = group.hardware, self.cluster
        partition = self._partition(group)
        exclusive = hardware.exclusive
        if exclusive is None:
            exclusive = not hardware.num_gpus and partition is not None and partition == cluster.cpu_partition
        tasks = max([hardware.num_tasks, *(command.script.tasks_per_node for command in group.commands)])
        gpus = None
        if hardware.num_gpus and not cluster.disable_gpus_per_node:
            gpus = str(hardware.num_gpus)
        fields = {
            "job-name": f"{cluster.job_name_prefix}{self._experiment}-{job.name}"[:MAX_NAME_CHARS],
            "partition": partition,
            "account": hardware.account or cluster.account,
            "qos": hardware.qos or cluster.qos,
            "time": limit,
            "time-min": hardware.time_min,
            "nodes": str(hardware.num_nodes),
            "ntasks-per-node": str(tasks),
            "gpus-per-node": gpus,
            "exclusive": "" if exclusive else None,
            "mail-type": cluster.mail_type,
            "mail-user": cluster.mail_user,
            "output": log_pattern(f"{folder.logs}/{job.name}") + "_%j_sbatch.log",
            "open-mode": "append",
            "requeue": "",
            "signal": f"B:USR1@{min(WARNING_SECONDS, max(1, seconds_of(limit) // 5))}",
        }
        options = {name: value for name, value in fields.items() if value is not None}
        return _override_options(options, hardware.sbatch_kwargs, f"Group '{group.name}' of job '{job.name}'")

    def _partition(self, group: CommandGroup) -> str | None:
        if group.hardware.partition:
            return group.hardware.partition
        if not group.hardware.num_gpus and self.cluster.cpu_partition:
            return self.cluster.cpu_partition
        return self.cluster.partition

    def _limit(self, group: CommandGroup) -> str:
        """Return the user's time limit, or the config's: that of the partition, else its default, cut to what the
        partition allows.

        A job that asks for more than its partition allows would wait for ever.
        """
        partition = self._partition(group) or ""
        if limit := group.hardware.time_limit or self.cluster.timeouts.get(partition):
            return limit
        wanted, longest = self.cluster.default_timeout, self.limits.get(partition)
        if longest and seconds_of(longest) < seconds_of(wanted):
            return longest
        return wanted

    def _container(self, command: Command, image: str, folder: JobFolder, *, first: Sequence[str]) -> list[str]:
        mounts = [*map(str, parse_mounts(self.cluster.mounts_of(command)))]
        mounts.append(pyxis.format_mount(folder.path, folder.path))
        if not PurePosixPath(folder.logs).is_relative_to(folder.path):
            mounts.append(pyxis.format_mount(folder.logs, folder.logs))
        if folder.code:
            mounts.append(pyxis.format_mount(folder.code, CODE))
        names = {*self.variables.secrets, *command.script.secrets, "SLURM_MASTER_NODE", *first}
        return pyxis.srun_options(image, mounts=mounts, workdir=self.workdir(command, folder), variables=names)


def sbatch_lines(groups: Sequence[Options]) -> list[str]:
    """Return the `#SBATCH …` lines for the options of `requests`."""
    lines: list[str] = []
    for number, options in enumerate(groups):
        if number:
            lines.append("#SBATCH hetjob")
            options = {name: value for name, value in options.items() if name not in JOB_OPTIONS}
        for name, value in options.items():
            line = f"#SBATCH --{name}"
            if value:
                line += f"={_quote_for_sbatch(value)}"
            lines.append(line)
    return lines


def _override_options(options: Options, kwargs: Mapping[str, object], what: str) -> Options:
    """Override `options` by the user's: true is a flag, false or null takes an option away."""
    options = dict(options)
    for key, value in kwargs.items():
        name = key.replace("_", "-").removeprefix("--")
        if name in OWN_OPTIONS:
            raise ConfigError(f"{what}: sbatch_kwargs cannot set {key}, which the job script sets itself.")
        if value is None or value is False:
            options.pop(name, None)
        else:
            options[name] = "" if value is True else str(value)
    if "no-requeue" in options:
        options.pop("requeue", None)
    return options


def _wants_mpi(group: CommandGroup, command: Command) -> bool:
    """Return whether the command needs MPI: engines import it even where they run alone; nothing without GPUs
    does."""
    return command.script.tasks_per_node > 1 or (group.hardware.num_gpus > 0 and command.container is not None)


def _run_step() -> list[str]:
    return (
        _RUN_STEP.replace("TROUBLE", quote_for_bash(CONTROLLER_TROUBLE))
        .replace("PATIENCE", str(STEP_PATIENCE))
        .splitlines()
    )


def _master_lines(name: str, nodes: str) -> list[str]:
    return [f'{name}=$(scontrol show hostnames "${nodes}" | head -n 1)', f"export {name}"]


def log_pattern(path: str) -> str:
    """Escape `path` for a file name in which sbatch replaces % by something.

    Raises ConfigError for a backslash in it.
    """
    if "\\" in path:
        raise ConfigError(f"Slurm cannot write logs to '{path}': its path has a backslash in it.")
    return path.replace("%", "%%")


def _quote_for_sbatch(text: str) -> str:
    """Quote `text` as sbatch reads it from a script: quotes as in a shell, but backslashes escape inside of them
    too."""
    return shlex.quote(text).replace("\\", "\\\\")


_SIGNAL = """\
# srun kills its tasks when it gets TERM itself, so signals go to the step, which has the command's name.
local id name group ids=$SLURM_JOB_ID
for ((group = 1; group < ${SLURM_HET_SIZE:-1}; group++)); do
    name=SLURM_JOB_ID_HET_GROUP_$group
    ids+=,${!name}
done
if [[ $1 != TERM || -e $job_folder/$2.step ]]; then # else Slurm may know the step before there is a task to get it
    while read -r id name; do
        if [[ $name == "$2" ]] && scancel --signal="$1" "$id"; then return 0; fi
    done < <(squeue --steps --noheader --jobs="$ids" --format='%i %j')
fi
kill -s "$1" -- "$3" 2>/dev/null # there is no step yet, or no answer
"""

_MPI = """\
# How tasks find each other, for programs with MPI inside: by PMIx where this cluster has it.
job_mpi=none
if srun --overlap --nodes=1 --ntasks=1 --mpi=pmix true </dev/null >/dev/null 2>&1; then job_mpi=pmix; fi
"""

_MAKE_ROOM = """\
# Preemption sends TERM to all steps and kills the job some time later; Slurm queues it again only if it is still there.
make_room() {
    local shown began preempted
    shown=$(scontrol show job "$SLURM_JOB_ID" 2>/dev/null) || return
    [[ $shown =~ StartTime=([0-9T:-]+) ]] && began=${BASH_REMATCH[1]} || return
    [[ $shown =~ PreemptTime=([0-9T:-]+) ]] && preempted=${BASH_REMATCH[1]} || return
    [[ ! $preempted < $began ]] || return # that was an earlier life
    say "this job makes room for another one: waiting for its end, to be queued again"
    sleep 3600
}
"""

_STRAY = """\
# The controller may have taken a job although it was too slow to say so to who submitted it. Such a job is none of ours
# where its submission was given up, or where another one was submitted in its place.
if [[ -n ${NEWSKILLS_COPY:-} ]]; then
    job_own=$SLURM_JOB_ID
    [[ -z ${SLURM_ARRAY_JOB_ID:-} ]] || job_own=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
    for job_look in 1 2 3; do # a file system may show what has been there before
        job_handle=""
        [[ ! -e $job_folder/job.handle ]] || read -r job_handle <"$job_folder/job.handle"
        if [[ ! -e $job_folder/job.withdrawn && :${job_handle:-$job_own}: == *:$job_own:* ]]; then break; fi
        if [[ $job_look -eq 3 ]]; then
            echo "Nobody waits for job $job_own: its submission was given up, or repeated. It does nothing."
            exit 1
        fi
        sleep 2
    done
fi
"""

_RUN_STEP = """\
# run_step NAME SRUN...: runs a step. srun is called again where it could not create the step because the controller was
# slow or away; after PATIENCE seconds of that the job ends with 75, so that a copy, or a later submission, goes on.
# When a task fails, srun ends the others and takes the highest code of all, often their 143: the first code counts.
run_step() {
    local job_name=$1 job_child="" job_told="" job_code job_size job_first job_until=$((SECONDS + PATIENCE)) job_gate
    shift
    exec {job_gate}<> <(:)
    trap 'job_told=yes; [[ -z $job_child ]] || end_step "$job_child"' TERM
    while [[ -z $job_told ]]; do
        job_size=$(stat -c %s -- "$job_logs/$job_name.log")
        job_child=""
        "$@" {job_gate}<&- &
        await_child "$!" "$job_gate"
        job_child=$!
        [[ -z $job_told ]] || end_step "$job_child"
        until wait "$job_child"; job_code=$?; ! kill -0 "$job_child" 2>/dev/null; do :; done
        if [[ $job_code -gt 128 && -z $job_told ]]; then
            job_first=$(tail -c "+$((job_size + 1))" -- "$job_logs/$job_name.log" |
                grep -Eam 1 '^srun: error: [^ ]+: tasks? [0-9,-]+: ')
            if [[ $job_first == *": Exited with exit code "* ]]; then job_code=${job_first##* }; fi
        fi
        if [[ $job_code -eq 0 || -n $job_told || -e $job_folder/$job_name.step ]] ||
            ! tail -c "+$((job_size + 1))" -- "$job_logs/$job_name.log" | grep -Eq TROUBLE; then
            exit "$job_code"
        fi
        if ((SECONDS >= job_until)); then
            say "the controller did not create the step of '$job_name'"
            exit 75
        fi
        say "srun could not create the step of '$job_name': the controller does not answer; trying again"
        sleep 5 &
        job_child=$!
        wait "$job_child"
    done
    exit 143
}

# end_step PID: srun, which forgets a signal that comes while it starts its tasks.
end_step() { while kill -s TERM "$1" && sleep 1; do :; done 2>/dev/null & }
"""

_ONLY_AFTER_LIMIT = """\
# A copy in a chain goes on where the time limit, a signal or a lost node stopped the one before. What ended with an
# exit code of its own would do so again, and what completed is done.
if [[ ${NEWSKILLS_COPY:-0} -gt 0 && ${SLURM_RESTART_COUNT:-0} -eq 0 && -e $job_folder/job.exit ]]; then
    read -r job_code job_why <"$job_folder/job.exit"
    if [[ $job_why == completed* || ($job_why == failed* && $job_code -lt 128) ]]; then
        echo "The copy before this one: $job_why. Not starting again."
        exit "$job_code"
    fi
fi
"""
