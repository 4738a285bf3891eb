# SPDX-License-Identifier: Apache-2.0
"""Tries what a cluster config promises: the machine that submits, its scheduler or container engine, its folders."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Literal

from msgspec import Struct

from newskills.base.errors import ConfigError, NewskillsError, RemoteError
from newskills.base.plan import Command, Pipeline
from newskills.base.registry import load_function
from newskills.environments.engines import JOB_ENGINES, program_of
from newskills.launch.clusters.config import ClusterConfig, image_of, python_of
from newskills.launch.clusters.mounts import parse_mounts
from newskills.launch.clusters.variables import JobVariables, job_variables, missing_variables
from newskills.launch.machines.shell import CommandResult, Shell, ShellCall
from newskills.launch.machines.ssh import RemoteMachine, shell_of
from newskills.launch.machines.ssh_errors import QUIET_HINT
from newskills.launch.ray.api import RayApi

MIN_BASH_VERSION = (5, 1)
MIN_PYTHON_VERSION = (3, 11)
_OURS = r"newskills(\.[\w.]+)?"
"""A module that Python is to run."""
LOOK_FOR = """\
import sys
from importlib import metadata
print(*sys.version_info[:3])
for name in sys.argv[1:]:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        print(name)
"""


class ClusterTrial(Struct, frozen=True):
    """One thing that was looked at, and what came of it. note: nothing is wrong, and a person should know it."""

    what: str
    ok: bool
    text: str
    note: bool = False

    @property
    def state(self) -> Literal["ok", "note", "wrong"]:
        if not self.ok:
            return "wrong"
        if self.note:
            return "note"
        return "ok"


def try_cluster(cluster: ClusterConfig, environ: Mapping[str, str]) -> list[ClusterTrial]:
    """Test the cluster by reading only: nothing is created or written, on the cluster or here."""
    shell = shell_of(cluster, environ)
    trials: list[ClusterTrial] = []
    try:
        if cluster.ssh_tunnel is not None:
            shell.run(["true"])
            trials.append(ClusterTrial("ssh", True, f"{shell.name} answers"))
            trials += _test_copying(shell)
        trials.append(_test_bash(shell))
        if cluster.ssh_tunnel is not None and not cluster.containers:
            trials.append(_test_python(shell, cluster, environ))
        if place := cluster.properties.trial:
            trials += load_function(place)(shell, cluster, environ)
        trials += _test_folders(shell, cluster)
    except RemoteError as error:
        trials.append(ClusterTrial("ssh", False, str(error)))
    return trials


def check_python(pipeline: Pipeline, cluster: ClusterConfig, environ: Mapping[str, str], shell: Shell) -> None:
    """Raise ConfigError where jobs without containers would find that Python there lacks what newskills needs.

    Jobs of this machine, and of a cluster that shares its disks, run its own Python. A job that installs something
    first, or runs only programs of the user's, is left alone.
    """
    if cluster.ssh_tunnel is None or not cluster.properties.shares_disks:
        return
    ours = [
        command
        for job in pipeline.jobs
        for command in job.commands()
        if image_of(cluster, command.container) is None and not command.script.setup and _runs_newskills(command)
    ]
    if not ours:
        return
    trial = _test_python(shell, cluster, environ)
    if not trial.ok:
        raise ConfigError(f"Jobs would fail: {trial.text}.")


def _runs_newskills(command: Command) -> bool:
    return any(isinstance(word, str) and re.fullmatch(_OURS, word) for word in command.script.argv)


def engine_of(shell: Shell, cluster: ClusterConfig) -> str | None:
    """Return the container engine that answers: the one that the config names, or the first that answers; None: there
    is none."""
    engines = [program_of(name) for name in ([cluster.engine] if cluster.engine else JOB_ENGINES)]
    ran = shell.run_all([ShellCall(argv=(engine, "info")) for engine in engines])
    return next((engine for engine, done in zip(engines, ran, strict=True) if done.code == 0), None)


def _test_bash(shell: Shell) -> ClusterTrial:
    done = shell.run(["bash", "-c", "echo ${BASH_VERSINFO[0]} ${BASH_VERSINFO[1]}"])
    numbers = tuple(int(part) for part in done.out.split() if part.isdigit())
    least = ".".join(map(str, MIN_BASH_VERSION))
    if numbers >= MIN_BASH_VERSION:
        return ClusterTrial("bash", True, ".".join(map(str, numbers)))
    return ClusterTrial(
        "bash", False, f"version {least} or later is needed; version here: {'.'.join(map(str, numbers)) or 'none'}"
    )


def _test_python(shell: Shell, cluster: ClusterConfig, environ: Mapping[str, str]) -> ClusterTrial:
    """Test the interpreter of jobs without containers: it needs the packages that newskills needs, not newskills.

    It gets the variables that jobs get: one of them may be a PYTHONPATH.
    """
    python = python_of(cluster, None)
    variables = JobVariables()
    if not missing_variables(cluster, environ):
        variables = job_variables(cluster, environ)
    settings = [f"{name}={value}" for name, value in variables.plain.items()]
    done = shell.run(
        ["env", *settings, python, "-c", LOOK_FOR, *_required_distributions()], secrets=variables.secrets
    )
    if done.code != 0:
        return ClusterTrial("python", False, f"there is no {python} on {shell.name}: {_first_line(done)}")
    version, *missing = done.out.splitlines()
    numbers, where = version.split(), f"{python} on {shell.name}, {version.replace(' ', '.')}"
    remedy = "a virtual environment there, activated by the pre_command of ssh_tunnel"
    if tuple(map(int, numbers)) < MIN_PYTHON_VERSION:
        return ClusterTrial(
            "python", False, f"{where}: jobs need {'.'.join(map(str, MIN_PYTHON_VERSION))} or later; make {remedy}"
        )
    if missing:
        lacks = f"{where}, lacks {', '.join(missing)}"
        install = f"{python} -m pip install {' '.join(missing)}"
        return ClusterTrial("python", False, f"{lacks}: run {install} there, or in {remedy}")
    return ClusterTrial("python", True, where)


def _required_distributions() -> list[str]:
    """Return the distributions that every installation of newskills has."""
    names = (re.match(r"[\w.-]+", need) for need in metadata.requires("newskills") or () if "extra ==" not in need)
    return [match[0] for match in names if match]


def try_slurm(shell: Shell, cluster: ClusterConfig, environ: Mapping[str, str]) -> list[ClusterTrial]:
    """Test that sbatch is there and knows the partitions of the config."""
    version, partitions = shell.run_all(
        [ShellCall(argv=("sbatch", "--version")), ShellCall(argv=("sinfo", "--noheader", "--format=%R"))]
    )
    if version.code != 0:
        return [ClusterTrial("sbatch", False, f"not installed on {shell.name}: {_first_line(version)}")]
    trials = [ClusterTrial("sbatch", True, version.out.strip())]
    if partitions.code != 0:
        return [*trials, ClusterTrial("partitions", False, f"sinfo failed: {_first_line(partitions)}")]
    partition_names = sorted(set(partitions.out.split()))
    wanted = [name for name in (cluster.partition, cluster.cpu_partition) if name]
    unknown = [part for name in wanted for part in name.split(",") if part not in partition_names]
    if unknown:
        return [
            *trials,
            ClusterTrial(
                "partitions", False, f"{', '.join(unknown)} unknown; the choices are {', '.join(partition_names)}"
            ),
        ]
    return [*trials, ClusterTrial("partitions", True, ", ".join(partition_names))]


def try_ray(shell: Shell, cluster: ClusterConfig, environ: Mapping[str, str]) -> list[ClusterTrial]:
    """Test that Ray answers; tell its version, and what its nodes have together."""
    try:
        api = RayApi(cluster.ray.address, environ, shell)
        version, nodes = api.version(), api.nodes()
    except NewskillsError as error:
        return [ClusterTrial("ray", False, str(error))]
    totals = {
        name: sum(node.resources.get(name, 0) for node in nodes)
        for name in sorted({name for node in nodes for name in node.resources})
        if not name.startswith(("node:", "object_store_memory", "accelerator_type:"))
    }
    amounts = ", ".join(f"{name}: {amount:g}" for name, amount in totals.items())
    few = not nodes and not cluster.ray.autoscaling
    figures = "none is alive"
    if nodes:
        figures = f"{len(nodes)} with {_printable_line(amounts)}"
    return [
        ClusterTrial("ray", True, f"{version} answers at {cluster.ray.address}"),
        ClusterTrial("nodes", not few, figures),
    ]


def try_engine(shell: Shell, cluster: ClusterConfig, environ: Mapping[str, str]) -> list[ClusterTrial]:
    """Test that a container engine answers."""
    engine = engine_of(shell, cluster)
    if engine is None:
        names = cluster.engine or " or ".join(JOB_ENGINES)
        return [
            ClusterTrial(
                "containers",
                False,
                f"{names} does not answer on {shell.name}; try: {cluster.engine or JOB_ENGINES[0]} info",
            )
        ]
    return [ClusterTrial("containers", True, f"{engine} answers")]


def _test_copying(shell: Shell) -> list[ClusterTrial]:
    """Check that rsync can work: it is installed on both sides, and the remote login shell prints nothing of its
    own."""
    trials = []
    if isinstance(shell, RemoteMachine) and (greeting := shell.login_greeting()):
        trials.append(
            ClusterTrial(
                "login shell", False, f"prints '{_printable_line(greeting)}' on {shell.name}. {QUIET_HINT}"
            )
        )
    lacking = []
    if shutil.which("rsync") is None:
        lacking.append("this machine")
    if shell.run(["bash", "-c", "command -v rsync"]).code != 0:
        lacking.append(shell.name)
    if lacking:
        where = " and ".join(lacking)
        trials.append(ClusterTrial("rsync", False, f"not installed on {where}; code and data are copied with it"))
    return trials


def _test_folders(shell: Shell, cluster: ClusterConfig) -> list[ClusterTrial]:
    trials: list[ClusterTrial] = []
    if cluster.job_dir:
        trials.append(_job_dir(shell, cluster.job_dir))
    mounts = parse_mounts(cluster.mounts)
    missing = _missing_paths([mount.src for mount in mounts], shell)
    if missing:
        trials.append(ClusterTrial("mounts", False, f"{', '.join(missing)} missing on {shell.name}"))
    elif mounts:
        trials.append(ClusterTrial("mounts", True, f"{len(mounts)} sources exist"))
    return trials


def _job_dir(shell: Shell, folder: str) -> ClusterTrial:
    """Check that jobs can be written to the folder, or that it can be made; the first submission makes it."""
    done = shell.run(["bash", "-c", _LOOK_SCRIPT, "bash", folder])
    kind, may, there = (*done.out.rstrip("\n").split(" ", 2), "", "")[:3]
    if done.code != 0 or kind not in ("folder", "file"):
        return ClusterTrial("job_dir", False, f"cannot read {folder}: {_first_line(done)}")
    if kind == "file":
        return ClusterTrial("job_dir", False, f"{folder}: {there} is not a folder")
    if there == folder:
        detail = folder if may == "yes" else f"cannot write {folder}"
        return ClusterTrial("job_dir", may == "yes", detail)
    if there == "/":
        top = "/".join(folder.split("/")[:2])
        return ClusterTrial(
            "job_dir", False, f"{folder}: there is no {top} on {shell.name}; is its file system mounted?"
        )
    if may != "yes":
        return ClusterTrial(
            "job_dir", False, f"{folder} does not exist, and cannot be created: {there} is not writable"
        )
    return ClusterTrial(
        "job_dir", True, f"{folder} does not exist yet; the first submission creates it", note=True
    )


def _missing_paths(paths: Sequence[str], shell: Shell) -> list[str]:
    return [path for path, there in zip(paths, shell.exists(paths), strict=True) if not there]


def _first_line(done: CommandResult) -> str:
    lines = [line for line in (done.err or done.out).splitlines() if line.strip()]
    if lines:
        return _printable_line(lines[0])
    return f"exit code {done.code}"


def _printable_line(line: str) -> str:
    return re.sub(r"[^\x20-\x7e]", " ", line)[:200]


_LOOK_SCRIPT = """\
# What kind of thing is at $1, or at the nearest folder above it that is there; whether it is writable; its path.
there=$1
until [[ -e $there || $there == / ]]; do
    there=${there%/*}
    there=${there:-/}
done
kind=file may=no
[[ -d $there ]] && kind=folder
[[ -w $there && -x $there ]] && may=yes
printf '%s %s %s\\n' "$kind" "$may" "$there"
"""
