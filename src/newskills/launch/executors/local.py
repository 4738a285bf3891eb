# SPDX-License-Identifier: Apache-2.0
"""Executor `local`: as `none`, with each command in a container of its own (docker or podman, host network).

Commands without a container are plain processes. Containers carry labels with the folder of their job. Whoever
supervises the job removes them at its end (`job.clean_up` in the folder); what is left where even the supervisor was
killed is removed when somebody asks for the job's state, stops it, or submits another one.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from newskills.base.errors import ConfigError
from newskills.base.plan import Command, Job
from newskills.environments.engines import JOB_ENGINES, installed_engines
from newskills.environments.engines.docker import mount_option
from newskills.environments.engines.job_engine import FOLDER, JOB, ContainerEngine, folder_label
from newskills.launch.clusters.config import ClusterConfig, environment_setting, image_of
from newskills.launch.clusters.mounts import CODE, Mount, is_inside, parse_mounts
from newskills.launch.executors.none import Processes, is_supervised
from newskills.launch.job_script import quote_for_bash, read_bash_resource
from newskills.launch.place import SIGNAL_GROUP, JobFolder, Site, Variable

CLEAN_UP, CLEANED = "job.clean_up", "job.cleaned"
PORT_LOCKS = "/tmp/newskills-ports-"  # noqa: S108 - of bash/port.sh, which checks whose it is
GPU_LOCK = "/tmp/newskills-gpus-"  # noqa: S108 - opened for a lock only


def make(site: Site) -> Containers:
    return Containers(site)


class Containers(Processes):
    """One machine; the engine is looked for when it is needed."""

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._works = False

    @cached_property
    def engine(self) -> ContainerEngine:
        """Return the engine; where none is installed, the one that scripts would name."""
        return find_engine(self.cluster, self._site.environ) or _make_engine(
            self.cluster.engine or JOB_ENGINES[0], self._site.environ
        )

    def prepare(self, job: Job) -> JobFolder:
        """Prepare the job as `Processes.prepare` does; pull or build missing images before.

        Raises ConfigError as well for a missing engine, image, mounted folder or GPU set-up.
        """
        containers = self._containers(job)
        if containers:
            self._check_engine()
            for group in job.groups:
                for command in group.commands:
                    if image := containers.get(command.name):
                        self.engine.ready(image, gpus=group.hardware.num_gpus > 0)
            for mount in (mount for command in job.commands() for mount in self._mounts(command, containers)):
                if not os.path.exists(mount.src):
                    raise ConfigError(
                        f"The mount '{mount}' of cluster '{self.cluster.name}': there is no {mount.src}."
                    )
        return super().prepare(job)

    def texts(self, job: Job, folder: JobFolder) -> dict[str, str]:
        """Return the files of the job's folder, with the script that ends containers. Raises ConfigError where the
        job has a file of that name."""
        texts = super().texts(job, folder)
        if self._containers(job):
            if CLEAN_UP in texts:
                raise ConfigError(
                    f"Job '{job.name}' already has a file with the name '{CLEAN_UP}': choose another name."
                )
            texts[CLEAN_UP] = self._clean_up(folder)
        return texts

    def state(self, handles: Sequence[str]) -> dict[str, str]:
        self._sweep(handles)
        return super().state(handles)

    def cancel(self, handles: Sequence[str]) -> None:
        super().cancel(handles)
        self._sweep(handles)

    def prologue(self, job: Job, folder: JobFolder) -> Sequence[str]:
        containers = self._containers(job)
        if not containers:
            return super().prologue(job, folder)
        lines = [f"mkdir -p -m 700 -- {PORT_LOCKS}{os.getuid()}"]
        lines += ["", *_CONTAINED.replace("ENGINE", self.engine.name).splitlines()]
        gpus = [group for group in job.groups if group.hardware.num_gpus > 0 and self.engine.gpus(True)]
        if gpus:
            lines += [
                "# Jobs with GPUs run one after the other: each sees all of them.",
                f'exec {{job_gpus}}>"{GPU_LOCK}{os.getuid()}" && flock "$job_gpus"',
            ]
        return lines

    def step(self, job: Job, group: int, command: Command, folder: JobFolder) -> Sequence[str | Variable]:
        image = image_of(self.cluster, command.container)
        if image is None:
            return super().step(job, group, command, folder)
        return [
            "contained",
            command.name,
            _container_name(folder, command),
            *self.engine.start_line(
                image,
                name=_container_name(folder, command),
                folder=folder.path,
                gpus=job.groups[group].hardware.num_gpus > 0,
                variables={*self._variables.secrets, *command.script.secrets},
                volumes=self._volumes(command, folder),
            ),
        ]

    def environment(self, command: Command) -> Mapping[str, str]:
        if image_of(self.cluster, command.container) is None:
            return super().environment(command)
        plain = dict(self._variables.plain)
        if self._site.code:
            plain["PYTHONPATH"] = ":".join(filter(None, [CODE, plain.get("PYTHONPATH")]))
        return plain

    def workdir(self, command: Command, folder: JobFolder) -> str:
        if image_of(self.cluster, command.container) is None:
            return super().workdir(command, folder)
        return command.workdir or (CODE if folder.code else "")

    def inside(self, command: Command, folder: JobFolder) -> Sequence[str]:
        if image_of(self.cluster, command.container) is None:
            return super().inside(command, folder)
        return (read_bash_resource("await_child") + _KEEPER).splitlines()

    def signal(self, job: Job, folder: JobFolder) -> Sequence[str]:
        named = {command.name: command for command in job.commands() if command.name in self._containers(job)}
        if not named:
            return super().signal(job, folder)
        rows = [f"{name}) container={_container_name(folder, command)} ;;" for name, command in named.items()]
        text = _SIGNAL.replace("ENGINE", self.engine.name)
        return (
            'local container=""',
            "case $2 in",
            *(f"    {row}" for row in rows),
            "esac",
            *text.splitlines(),
            *SIGNAL_GROUP,
        )

    def _containers(self, job: Job) -> dict[str, str]:
        """Return command → image, for commands that run in a container."""
        images = {command.name: image_of(self.cluster, command.container) for command in job.commands()}
        return {name: image for name, image in images.items() if image is not None}

    def _check_engine(self) -> None:
        """Check the container engine and remove containers of dead jobs, once for all jobs of a pipeline."""
        if self._works:
            return
        if find_engine(self.cluster, self._site.environ) is None:
            raise _no_engine(self.cluster)
        self.engine.check()
        for container, folder in self.engine.label_values(JOB, FOLDER).items():
            if _is_dead(Path(folder)):
                self.engine.remove(container)
        self._works = True

    def _mounts(self, command: Command, containers: Mapping[str, str]) -> Sequence[Mount]:
        if command.name not in containers:
            return ()
        return parse_mounts(self.cluster.mounts_of(command))

    def _volumes(self, command: Command, folder: JobFolder) -> list[str]:
        mounts = self._mounts(command, {command.name: ""})
        volumes = [mount_option(mount.src, mount.dst, read_only=mount.mode == "ro") for mount in mounts]
        volumes.append(mount_option(folder.path, folder.path))
        if not is_inside(folder.logs, folder.path):
            volumes.append(mount_option(folder.logs, folder.logs))
        if folder.code:
            # Other jobs run the same package.
            volumes.append(mount_option(folder.code, CODE, read_only=True))
        locks = f"{PORT_LOCKS}{os.getuid()}", f"{PORT_LOCKS}{self.engine.uid}"
        return [*volumes, mount_option(*locks)]

    def _clean_up(self, folder: JobFolder) -> str:
        engine = self.engine
        return _CLEAN_UP.format(
            engine=engine.name,
            label=f"{JOB}={folder_label(folder.path)}",
            remove=" ".join(["rm", *engine.lines.at_once]),
            cleaned=quote_for_bash(f"{folder.path}/{CLEANED}"),
        )

    def _sweep(self, handles: Iterable[str]) -> None:
        """Remove the containers of jobs whose supervisor was killed."""
        for handle in handles:
            folder = Path(handle)
            if (folder / CLEAN_UP).is_file() and not (folder / CLEANED).exists() and _is_dead(folder):
                subprocess.run(
                    ["bash", str(folder / CLEAN_UP)],
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    env=dict(self._site.environ),
                    check=False,
                )


def find_engine(cluster: ClusterConfig, environ: Mapping[str, str]) -> ContainerEngine | None:
    """Return the engine that the config names, or the first one that is here and answers; None: there is none."""
    names = [cluster.engine] if cluster.engine else JOB_ENGINES
    here = [_make_engine(name, environ) for name in installed_engines(names, environ)]
    if len(here) < 2:
        if here:
            return here[0]
        return None
    return next((engine for engine in here if engine.run("version").returncode == 0), here[0])


def _make_engine(name: str, environ: Mapping[str, str]) -> ContainerEngine:
    """Return the engine, with privileged containers where NEWSKILLS_PRIVILEGED_DOCKER=1 asks for them."""
    is_privileged = environment_setting("PRIVILEGED_DOCKER", environ).lower() not in ("", "0", "false", "no")
    return ContainerEngine(name, environ, is_privileged=is_privileged)


def _no_engine(cluster: ClusterConfig) -> ConfigError:
    """Return the error for the case that `find_engine` finds none."""
    verb = "is" if cluster.engine else "are"
    return ConfigError(
        f"Cluster '{cluster.name}' runs containers with {cluster.engine or ' or '.join(JOB_ENGINES)}, which "
        f"{verb} not installed here.",
        hint="Install one (apt install podman catatonit, or https://docs.docker.com/engine/install), "
        "or use --cluster=none.",
    )


def _is_dead(folder: Path) -> bool:
    """Return whether a job was in `folder` and nobody supervises it any more.

    A folder that is not there may be in another name space than ours: that job is not ours to judge.
    """
    try:
        return (folder / "supervisor").is_file() and not is_supervised(folder)
    except OSError:
        return False


def _container_name(folder: JobFolder, command: Command) -> str:
    plain = "".join(ch if ch.isalnum() else "-" for ch in command.name)
    return f"newskills-{plain}-{folder_label(f'{folder.path}/{command.name}')}"


_WATCH = """\
    job_child="" job_told=0 job_passed=0 job_seen=0
    pass_on() {
        while [[ -n $job_child && $job_passed -lt $job_told ]]; do
            job_passed=$((job_passed + 1))
            kill -s TERM -- "CHILD" 2>/dev/null
        done
    }
    trap 'job_told=$((job_told + 1)); pass_on' TERM
    exec {job_gate}<> <(:)
    START {job_gate}<&- &
    await_child "$!" "$job_gate"
    job_child=$!
    pass_on
    while wait "$job_child" 2>/dev/null; job_code=$?; [[ $job_seen -ne $job_told ]]; do job_seen=$job_told; done
"""
"""Runs START, passes each TERM on, and knows how it ended."""

_KEEPER = f"""\
# The container ends with its first process, so that one stays until all that were told to stop have saved their work:
# it runs this script once more, in a process group of its own, and writes down how it ended.
if [[ -z ${{job_kept:-}} ]]; then
    set -m
{_WATCH.replace("CHILD", "-$job_child").replace("START", 'job_kept=yes bash "$job_folder/$job_command.sh"')}\
    while [[ $job_told -gt 0 ]] && kill -0 -- "-$job_child" 2>/dev/null; do sleep 0.1; done
    echo "$job_code" >"$job_folder/.$job_command.step"
    mv -f -- "$job_folder/.$job_command.step" "$job_folder/$job_command.step"
    exit "$job_code"
fi
unset job_kept
"""

_CONTAINED = f"""\
# contained NAME WORD...: runs a container, and ends as the command in it did. What the engine's client says is not
# enough: it has been seen to end before its container, and with 0 when that was killed (podman 4.3).
contained() {{
    local job_name=$1 job_container=$2 job_child job_told job_passed job_seen job_code job_gate
    shift 2
{_WATCH.replace("CHILD", "$job_child").replace("START", '"$@"')}\
    while [[ $(ENGINE inspect --format='{{{{.State.Running}}}}' "$job_container" 2>/dev/null) == true ]]; do
        sleep 0.2
    done
    if [[ -e $job_folder/$job_name.step ]]; then exit "$(<"$job_folder/$job_name.step")"; fi
    exit "$((job_code == 0 ? 137 : job_code))"
}}
"""

_SIGNAL = """\
if [[ $container && $1 == KILL ]]; then timeout 20 ENGINE kill "$container" >/dev/null 2>&1 && return; fi
"""

_CLEAN_UP = """\
#!/bin/bash
# Removes what is left of this job's containers, when the job has ended. Three tries: podman refuses to remove one that
# is just ending.
for pause in 0.5 1 0; do
    left=$(timeout 60 {engine} ps --all --quiet --filter label={label}) || exit 1
    if [[ -z $left ]] || timeout 60 {engine} {remove} $left >/dev/null; then
        : >{cleaned}
        exit
    fi
    sleep "$pause"
done
exit 1
"""
