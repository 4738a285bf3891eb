# SPDX-License-Identifier: Apache-2.0
"""A pipeline as data: Pipeline → Job → CommandGroup → Command → Script. No shell text, only argv lists.

A component refers to another by `Ref(component, attribute)`; the executor resolves it on the node when the job
starts (`Ref("server", "address")` → `http://n2:41873/v1`).
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from newskills.base.errors import ConfigError


class Ref(Struct, frozen=True):
    """`attribute` of another command of the same job: address, host or port."""

    component: str
    attribute: str = "address"


class HardwareConfig(Struct, frozen=True, kw_only=True):
    """What a group of commands needs; None = the cluster config's default."""

    num_nodes: int = 1
    num_gpus: int = 0
    num_tasks: int = 1
    partition: str | None = None
    time_limit: str | None = None
    exclusive: bool | None = None
    sbatch_kwargs: dict[str, str] = {}


class Script(Struct, frozen=True, kw_only=True):
    """What runs: `argv` (texts and Refs) and the environment variables that it needs by name."""

    argv: tuple[str | Ref, ...]
    env: dict[str, str] = {}
    secret_env: tuple[str, ...] = ()
    port: str | None = None


class Command(Struct, frozen=True, kw_only=True):
    """A script in a place. `role` client decides the job's exit code; a server is stopped when clients end."""

    name: str
    script: Script
    container: str | None = None
    role: str = "client"
    mounts: tuple[str, ...] = ()


class CommandGroup(Struct, frozen=True, kw_only=True):
    """Commands that share nodes."""

    name: str
    commands: tuple[Command, ...]
    hardware: HardwareConfig = HardwareConfig()


class Job(Struct, frozen=True, kw_only=True):
    """Groups that start together (a heterogeneous job where hardware differs), after `depends_on` jobs."""

    name: str
    groups: tuple[CommandGroup, ...]
    depends_on: tuple[str, ...] = ()
    run_after: tuple[str, ...] = ()


class Pipeline(Struct, frozen=True, kw_only=True):
    """Jobs with their dependencies."""

    name: str
    jobs: tuple[Job, ...]

    def order(self) -> tuple[Job, ...]:
        """Jobs, dependencies first, else in the order given.

        Raises ConfigError for a name used twice, an unknown dependency, a Ref to nothing, or a cycle.
        """
        by_name = _unique(self.jobs)
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


def _unique(jobs: Sequence[Job]) -> dict[str, Job]:
    by_name: dict[str, Job] = {}
    for job in jobs:
        if job.name in by_name:
            raise ConfigError(f"Two jobs are called '{job.name}'.")
        by_name[job.name] = job
    return by_name


def _check_refs(job: Job) -> None:
    commands = [command for group in job.groups for command in group.commands]
    names = [command.name for command in commands]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"Job '{job.name}' has two commands called '{name}'.")
    for command in commands:
        for word in command.script.argv:
            if isinstance(word, Ref) and word.component not in names:
                raise ConfigError(
                    f"Command '{command.name}' of job '{job.name}' refers to '{word.component}', which is missing."
                )
