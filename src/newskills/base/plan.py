# SPDX-License-Identifier: Apache-2.0
"""A pipeline as data: Pipeline → Job → CommandGroup → Command → Script. No shell text, only argv lists.

A component refers to another by `Ref(component, attribute)`; the executor resolves it on the node when the job
starts (`Ref("server", "address")` → `http://n2:41873/v1`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct

from newskills.base.errors import ConfigError


class Ref(Struct, frozen=True):
    """`attribute` of another command of the same job (or of the own one: its port), with text around it.

    address  http://host:port; host; port; node: the first host name of the group that the component runs in;
             rank: number of the node that this process runs on, 0 for that first one;
             meeting: host:port of rank 0, free when the job starts, for processes of one command that find each other
             there; meeting_port: the port alone; rank and both of these: of the own command only;
             folder: the job's own folder, with its `files`
    """

    component: str
    attribute: Literal["address", "host", "port", "node", "rank", "meeting", "meeting_port", "folder"] = "address"
    before: str = ""
    after: str = ""


Word = str | Ref


class HardwareConfig(Struct, frozen=True, kw_only=True):
    """What a group of commands needs; None = the cluster config's default. GPUs are per node.

    time_limit, time_min  D-HH:MM:SS
    sbatch_kwargs         further settings of sbatch; a value of true is a flag without a value
    """

    num_nodes: int = 1
    num_gpus: int = 0
    num_tasks: int = 1
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    time_limit: str | None = None
    time_min: str | None = None
    exclusive: bool | None = None
    sbatch_kwargs: dict[str, Any] = {}


class Ready(Struct, frozen=True, kw_only=True):
    """How others learn that a server answers: `path` gives 200 within `patience` seconds of its start.

    offset      it is asked at the port so many above the one of clients
    any_answer  any HTTP answer below 500 will do, for servers without a health route
    """

    path: str = "/health"
    patience: float = 1800.0
    offset: int = 0
    any_answer: bool = False


class Script(Struct, frozen=True, kw_only=True):
    """What runs, without any shell: `argv` and `env` are texts and Refs.

    secrets    names of variables whose values travel by the environment only
    port       None: it listens nowhere; 0: a free port chosen on its node when the job starts
    ready      for what others refer to; None: as soon as it has a port
    setup      shell text of the user's that runs once per node before (`--installation_command`)
    all_nodes  one process on each node of the group, instead of one on the first
    """

    argv: tuple[Word, ...]
    env: dict[str, Word] = {}
    secrets: tuple[str, ...] = ()
    port: int | None = None
    ready: Ready | None = None
    setup: str = ""
    all_nodes: bool = False
    tasks_per_node: int = 1


class Command(Struct, frozen=True, kw_only=True):
    """A script in a place. A client's exit code is the job's; servers are stopped when all clients have ended.

    container  name in the cluster config's `containers`, or an image; None: no container
    mounts     instead of the cluster config's; None: those
    workdir    None: the packaged code
    paths      absolute paths that it reads or writes: they must be reachable from where it runs
    """

    name: str
    script: Script
    container: str | None = None
    role: Literal["client", "server"] = "client"
    mounts: tuple[str, ...] | None = None
    workdir: str | None = None
    paths: tuple[str, ...] = ()


class CommandGroup(Struct, frozen=True, kw_only=True):
    """Commands that share nodes."""

    name: str
    commands: tuple[Command, ...]
    hardware: HardwareConfig = HardwareConfig()


class Job(Struct, frozen=True, kw_only=True):
    """Groups that start together (a heterogeneous job where there are several), after the jobs named in `depends_on`.

    run_after  experiments that must have finished first, by name or by the executor's handle
    outputs    paths that the job reads or writes: they must be reachable from where its clients run
    makes      what no other job may make at the same time: files, or folders as a whole, as its clients see them
    copies     further jobs in a chain that go on where the time limit has stopped this one
    files      name → text of what its commands find in the job's folder (`Ref(…, "folder")`); no secrets
    log_dir    folder of its logs; None: what the submission says
    """

    name: str
    groups: tuple[CommandGroup, ...]
    depends_on: tuple[str, ...] = ()
    run_after: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    makes: tuple[str, ...] = ()
    copies: int = 0
    files: dict[str, str] = {}
    log_dir: str | None = None

    def commands(self) -> list[Command]:
        return [command for group in self.groups for command in group.commands]


class Pipeline(Struct, frozen=True, kw_only=True):
    """Jobs with their dependencies."""

    name: str
    jobs: tuple[Job, ...]

    def order(self) -> tuple[Job, ...]:
        """Return the jobs, dependencies first, else in their own order.

        Raises ConfigError for a name used twice, an unknown dependency, a Ref to nothing, or a cycle.
        """
        by_name = _unique_jobs(self.jobs)
        for job in self.jobs:
            _check_refs(job)
            for need in job.depends_on:
                if need not in by_name:
                    raise ConfigError(f"Job '{job.name}' depends on '{need}', which this pipeline does not have.")
        ordered: dict[str, Job] = {}
        waiting = list(self.jobs)
        while waiting:
            ready = [job for job in waiting if all(need in ordered for need in job.depends_on)]
            if not ready:
                names = ", ".join(job.name for job in waiting)
                raise ConfigError(f"These jobs wait for each other in a circle: {names}.")
            ordered |= {job.name: job for job in ready}
            waiting = [job for job in waiting if job.name not in ordered]
        return tuple(ordered.values())


def _unique_jobs(jobs: Sequence[Job]) -> dict[str, Job]:
    by_name: dict[str, Job] = {}
    for job in jobs:
        if job.name in by_name:
            raise ConfigError(f"Two jobs have the name '{job.name}'.")
        by_name[job.name] = job
    return by_name


def _check_refs(job: Job) -> None:
    commands = job.commands()
    names = [command.name for command in commands]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"Job '{job.name}' has two commands with the name '{name}'.")
    for command in commands:
        for word in (*command.script.argv, *command.script.env.values()):
            if isinstance(word, Ref) and word.component not in names:
                raise ConfigError(
                    f"Command '{command.name}' of job '{job.name}' refers to '{word.component}', which is missing."
                )
