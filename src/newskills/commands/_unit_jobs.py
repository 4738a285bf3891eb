# SPDX-License-Identifier: Apache-2.0
"""Units of work → jobs: an even split, each job with a run.json, and its server and sandbox beside it."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError
from newskills.base.plan import Ref, Script, Word
from newskills.commands._cluster import Paths, hardware
from newskills.commands._cut_files import cut_files
from newskills.commands._model import ROLE, one_of
from newskills.commands._options import ModelOptions, PlacementOptions, WorkOptions
from newskills.commands._shipping import Shipment
from newskills.launch.clients import around
from newskills.launch.cluster import ClusterConfig
from newskills.launch.declarative import Command, CommandGroup, JobDict
from newskills.launch.scripts import (
    Context,
    JobScript,
    SandboxScript,
    ServerScript,
    sandbox_secrets,
    server_secrets,
)
from newskills.launch.shell import Shell
from newskills.launch.validate import ONE_MACHINE
from newskills.models.config import key_of
from newskills.models.serving import ServeSpec
from newskills.run.build import grades_by_running
from newskills.run.paths import done_path
from newskills.run.spec import RUN_FILE, RunSpec, Unit
from newskills.sandbox.config import HOST_VARIABLE, PORT_VARIABLE

MAIN, SERVER, SANDBOX = "main", "server", "sandbox"
"""Names of the commands of a job: those of its logs."""
OWN_CONTAINER = "nemo-skills"
_CONTAINERS = {"llamacpp": OWN_CONTAINER, "generic": OWN_CONTAINER}
"""Server types whose image is not called like them."""
_STRANGE = re.compile(r"[^A-Za-z0-9_.+=@]+")


@dataclass(eq=False)
class RunScript(JobScript):
    """`python -m newskills.run` over the run.json in the job's folder.

    server   of this job, for units that name none; None: all of them name one
    more     the same for further models, by role
    secrets  names of variables with keys that were given as values
    """

    _: KW_ONLY
    server: ServerScript | None = None
    more: Mapping[str, ServerScript] = field(default_factory=dict)
    sandbox: SandboxScript | None = None
    preprocess_cmd: str | None = None
    secrets: tuple[str, ...] = ()

    def build(self, context: Context) -> Script:
        words: list[Word] = [context.python, "-m", "newskills.run", Ref(context.own, "folder")]
        if self.server is not None:
            words += ["--server", context.ref(self.server)]
        for role, server in self.more.items():
            words += ["--server", msgspec.structs.replace(context.ref(server), before=f"{role}=")]
        servers = (self.server, *self.more.values())
        keys = (*self.secrets, *(name for server in servers for name in server_secrets(server, context)))
        secrets = (*dict.fromkeys(keys), *(sandbox_secrets(context) if self.sandbox else ()))
        env = sandbox_env(self.sandbox, context)
        return self._script(around(words, self.preprocess_cmd, None), context, env=env, secrets=secrets)


class Plan(Struct, kw_only=True):
    """Jobs in an order in which dependencies come first, and what the declarative API has no words for.

    extras     job name → further fields of `base.plan.Job`
    secrets    variables that the jobs need besides the shell's own
    prefix     of the names of jobs that are added from now on
    shipments  folder as clients see it → what is copied there before
    """

    jobs: list[JobDict] = []
    extras: dict[str, dict[str, Any]] = {}
    secrets: dict[str, str] = {}
    prefix: str = ""
    shipments: dict[str, Shipment] = {}

    def add(
        self, name: str, groups: Sequence[CommandGroup], needs: Sequence[JobDict] = (), **extra: Any
    ) -> JobDict:
        """`name` with a number behind it where it is taken."""
        name = f"{self.prefix}{name}"
        wanted, number = name, 2
        while name in self.extras:
            name, number = f"{wanted}-{number}", number + 1
        job = JobDict(name=name, groups=groups, dependencies=list(needs))
        self.jobs.append(job)
        self.extras[name] = extra
        return job


class UnitJobs(Struct, frozen=True, kw_only=True):
    """What all jobs of one generation share.

    spec    without units
    parts   1 = all units in one job, -1 = a job for each
    makers  input file → jobs of this pipeline that make it; None: inputs are there already
    """

    options: WorkOptions
    paths: Paths
    spec: RunSpec
    host: ServeSpec | None = None
    more: dict[str, ServeSpec] = {}
    parts: int = -1
    name: str = "run"
    preprocess_cmd: str | None = None
    makers: Mapping[Path, Sequence[JobDict]] | None = None

    def add(self, units: Sequence[Unit], plan: Plan) -> dict[Path, list[JobDict]]:
        """Adds the jobs; returns the output file (merged) → jobs that work on it. Raises ConfigError."""
        found: dict[Path, list[JobDict]] = {}
        shares = split(units, self.parts)
        for number, share in enumerate(shares):
            name = self.name if len(shares) == 1 else f"{self.name}-{number}"
            if len(share) == 1:
                name = job_name(share[0].label)
            job = self._job(name, share, plan)
            for unit in share:
                found.setdefault(unit.merged, []).append(job)
        return found

    def _job(self, name: str, units: Sequence[Unit], plan: Plan) -> JobDict:
        options = self.options
        mine = {str(unit.merged.parent) for unit in units}
        beside = {path: text for path, text in self.spec.beside.items() if str(Path(path).parent) in mine}
        inputs = dict.fromkeys(Path(unit.config.input_file) for unit in units)
        needs = () if self.makers is None else tuple(str(done_path(path)) for path in inputs)
        spec = msgspec.structs.replace(self.spec, units=tuple(units), beside=beside, needs=needs)
        spec, secrets = spec.sealed()
        text = msgspec.json.format(msgspec.json.encode(spec), indent=1).decode() + "\n"
        plan.secrets |= secrets
        clients = [one for unit in units for one in (unit.config.server, *unit.config.models.values())]
        named = {client.api_key_env_var for client in clients}
        keys = (*secrets, *sorted(name for name in named if name and name in os.environ))
        server = server_script(self.host, options) if self.host is not None else None
        own, _ = key_of(units[0].config.server, os.environ)
        if server is not None and server.key_variable and own:
            plan.secrets[server.key_variable] = own
        needed = any(unit.config.needs_sandbox or grades_by_running(unit.config) for unit in units)
        sandbox = sandbox_script(options) if options.with_sandbox and needed else None
        more = {role: server_script(host, options) for role, host in self.more.items()}
        client = RunScript(
            server=server,
            more=more,
            sandbox=sandbox,
            preprocess_cmd=self.preprocess_cmd,
            secrets=keys,
            installation_command=options.installation_command,
        )
        return plan.add(
            name,
            [*groups_of(client, options, server=server, sandbox=sandbox), *server_groups(more, options)],
            unique([job for path in inputs for job in (self.makers or {}).get(path, ())]),
            files={RUN_FILE: text},
            copies=options.dependent_jobs,
            outputs=tuple(dict.fromkeys([*sorted(mine), *map(str, inputs)])),
            makes=tuple(str(unit.paths.output) for unit in units),
        )


def unique(jobs: Sequence[JobDict]) -> list[JobDict]:
    """Each once."""
    return list({job["name"]: job for job in jobs}.values())


def split(units: Sequence[Unit], parts: int) -> list[Sequence[Unit]]:
    """Contiguous shares of nearly the same length; -1 = one each. Raises ConfigError."""
    if parts == 0 or parts < -1:
        raise ConfigError(f"--num_jobs={parts}: 1 or more, or -1 for one job per unit.")
    count = len(units) if parts == -1 else min(parts, len(units))
    bounds = [len(units) * number // count for number in range(count + 1)]
    return [units[begin:end] for begin, end in itertools.pairwise(bounds)]


def parts_of(options: WorkOptions, cluster: ClusterConfig) -> int:
    """`--num_jobs`, or what is usual there."""
    if options.num_jobs is not None:
        return options.num_jobs
    return 1 if cluster.executor in ONE_MACHINE else -1


def job_name(label: str) -> str:
    """`gsm8k-rs0 chunk 3` → `gsm8k-rs0-chunk-3`."""
    return _STRANGE.sub("-", label).strip("-.") or "run"


def groups_of(
    client: JobScript | Command,
    options: ModelOptions,
    *,
    server: ServerScript | None,
    sandbox: SandboxScript | None,
    **needs: Any,
) -> list[CommandGroup]:
    """Server, sandbox and client on the same nodes, or (`--heterogeneous`) the server on nodes of its own.

    needs  further settings of the client's hardware
    """
    if isinstance(client, JobScript):
        client = Command(client, container=main_container(options), name=MAIN)
    beside = [client]
    if sandbox is not None:
        mounts = [one.strip() for text in options.sandbox_mounts for one in text.split(",")] or None
        container = options.sandbox_container or "sandbox"
        beside.insert(0, Command(sandbox, container=container, name=SANDBOX, mounts=mounts))
    if server is None:
        return [CommandGroup(beside, hardware=hardware(options, **needs), name=MAIN)]
    served = Command(server, container=container_of(server, options), name=SERVER)
    needed = hardware(options, gpus=server.num_gpus, nodes=server.num_nodes)
    if options.heterogeneous:
        return [
            CommandGroup([served], hardware=needed, name=SERVER),
            CommandGroup(beside, hardware=hardware(options, **needs), name=MAIN),
        ]
    if needs:
        gpus, nodes = max(server.num_gpus, needs.pop("gpus", 0)), max(server.num_nodes, needs.pop("nodes", 1))
        needed = hardware(options, gpus=gpus, nodes=nodes, **needs)
    return [CommandGroup([served, *beside], hardware=needed, name=MAIN)]


def server_groups(servers: Mapping[str, ServerScript], options: ModelOptions) -> list[CommandGroup]:
    """Servers of further models, by role, each on nodes of its own."""
    groups = []
    for role, server in servers.items():
        container = container_of(server, one_of(options, int(role.removeprefix(ROLE))))
        name = f"{SERVER}-{role}"
        needed = hardware(options, gpus=server.num_gpus, nodes=server.num_nodes)
        groups.append(CommandGroup([Command(server, container=container, name=name)], hardware=needed, name=name))
    return groups


def job_group(script: JobScript, options: PlacementOptions, **needs: Any) -> CommandGroup:
    """One client alone; `needs`: settings of its hardware."""
    client = Command(script, container=main_container(options), name=MAIN)
    return CommandGroup([client], hardware=hardware(options, **needs), name=MAIN)


def container_of(server: ServerScript, options: ModelOptions) -> str:
    """The container of a server."""
    kind = server.server_type
    return (options.server_container or [_CONTAINERS.get(kind, kind)])[0]


def main_container(options: PlacementOptions) -> str:
    return options.main_container or OWN_CONTAINER


def server_script(spec: ServeSpec, options: ModelOptions) -> ServerScript:
    return ServerScript(
        server_type=spec.server_type,
        model_path=spec.model,
        num_gpus=spec.num_gpus,
        num_nodes=spec.num_nodes,
        server_args=spec.extra_args,
        server_entrypoint=spec.entrypoint,
        served_name=spec.served_name,
        port=spec.port or None,
        patience=options.server_timeout,
    )


def sandbox_script(options: ModelOptions) -> SandboxScript:
    """Clients find it by reference: an address in the overrides would be another one's."""
    overrides = [
        word
        for word in options.sandbox_env_overrides
        if word.partition("=")[0] not in (HOST_VARIABLE, PORT_VARIABLE)
    ]
    return SandboxScript(keep_mounts=options.keep_mounts_for_sandbox, env_overrides=overrides)


def sandbox_env(sandbox: SandboxScript | None, context: Context) -> dict[str, Word]:
    """How clients are told where the sandbox is."""
    if sandbox is None:
        return {}
    return {HOST_VARIABLE: context.ref(sandbox, "host"), PORT_VARIABLE: context.ref(sandbox, "port")}


def unfinished(units: Sequence[Unit], paths: Paths, shell: Shell) -> list[Unit]:
    """Units without their `.done`, or whose file was cut since, and those to be begun anew, in a few trips.

    The merged file will do for a chunk.
    """
    asked: dict[str, None] = {}
    for unit in units:
        asked |= dict.fromkeys((*_marks(unit, paths, chunk=False), *_marks(unit, paths, chunk=True)))
    found: Mapping[str, bool] = dict(zip(asked, shell.exists(list(asked)), strict=True))

    def finished(unit: Unit) -> bool:
        return any(all(found[path] for path in _marks(unit, paths, chunk=chunk)) for chunk in (False, True))

    cut = cut_files([unit for unit in units if finished(unit)], paths, shell)
    return [u for u in units if not u.config.skip_filled or not finished(u) or u.merged in cut]


def _marks(unit: Unit, paths: Paths, *, chunk: bool) -> tuple[str, str]:
    output = unit.paths.output if chunk else unit.merged
    return paths.host(str(output)), paths.host(f"{output}.done")
