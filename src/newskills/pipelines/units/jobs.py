# SPDX-License-Identifier: Apache-2.0
"""Units of work → jobs: an even split, each job with a run.json, and its server and sandbox beside it."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError
from newskills.base.plan import Ref, Script, Word
from newskills.launch.clusters.config import ClusterConfig
from newskills.launch.declarative import JobDict
from newskills.launch.machines.shell import Shell
from newskills.launch.scripts.clients import wrap_command
from newskills.launch.scripts.script import (
    Context,
    JobScript,
    SandboxScript,
    ServerScript,
    sandbox_secrets,
    server_secrets,
)
from newskills.models.config import key_of
from newskills.models.serving import ServeSpec
from newskills.pipelines.options import WorkOptions
from newskills.pipelines.placement.cluster import ClusterPaths
from newskills.pipelines.submission.groups import (
    groups_of,
    sandbox_env,
    sandbox_script,
    server_groups,
    server_script,
)
from newskills.pipelines.submission.plan import Plan, job_name, unique_jobs
from newskills.pipelines.units.cut_files import cut_files
from newskills.run.engine.build import grades_by_running
from newskills.run.planning.queue import queue_of
from newskills.run.planning.spec import RUN_FILE, RunSpec, Unit
from newskills.run.records.paths import done_path


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
        secrets = (*dict.fromkeys(keys), *sandbox_secrets(self.sandbox, context))
        env = sandbox_env(self.sandbox, context)
        return self._script(wrap_command(words, self.preprocess_cmd, None), context, env=env, secrets=secrets)


class UnitJobs(Struct, frozen=True, kw_only=True):
    """What all jobs of one generation share.

    spec    without units
    parts   1 = all units in one job, -1 = a job for each
    makers  input file → jobs of this pipeline that make it; None: inputs are there already
    """

    options: WorkOptions
    paths: ClusterPaths
    spec: RunSpec
    host: ServeSpec | None = None
    more: dict[str, ServeSpec] = {}
    parts: int = -1
    name: str = "run"
    preprocess_cmd: str | None = None
    makers: Mapping[Path, Sequence[JobDict]] | None = None

    def add(self, units: Sequence[Unit], plan: Plan) -> dict[Path, list[JobDict]]:
        """Add the jobs; return the output file (merged) → jobs that work on it. Raises ConfigError."""
        if self.options.work_queue:
            return self._add_queue(units, plan)
        jobs_by_folder: dict[Path, list[JobDict]] = {}
        shares = split_units(units, self.parts)
        for number, share in enumerate(shares):
            name = self._name(number, len(shares))
            if len(share) == 1:
                name = job_name(share[0].label)
            spec = msgspec.structs.replace(self.spec, units=tuple(share))
            job = self._job(name, spec, plan, tuple(str(unit.paths.output) for unit in share))
            for unit in share:
                jobs_by_folder.setdefault(unit.merged, []).append(job)
        return jobs_by_folder

    def _add_queue(self, units: Sequence[Unit], plan: Plan) -> dict[Path, list[JobDict]]:
        """Add jobs that share all units and begin at different ones. What a job makes is its place at the queue,
        so that the same command with more jobs adds only those."""
        few, chunks = queue_of(units)
        count = min(self.parts, len(units))
        files = list(dict.fromkeys(unit.merged for unit in units))
        spec = msgspec.structs.replace(self.spec, units=few, chunks=chunks, shared=True)
        jobs = []
        for number in range(count):
            name = self._name(number, count)
            makes = tuple(f"{path} (job {number} of a queue)" for path in files)
            mine = msgspec.structs.replace(spec, first=first_place(len(units), count, number))
            jobs.append(self._job(name, mine, plan, makes))
        return {path: list(jobs) for path in files}

    def _name(self, number: int, count: int) -> str:
        """Return the name of the job `number` of `count`."""
        if count == 1:
            return self.name
        return f"{self.name}-{number}"

    def _job(self, name: str, spec: RunSpec, plan: Plan, makes: tuple[str, ...]) -> JobDict:
        options, units = self.options, spec.units
        mine = {str(unit.merged.parent) for unit in units}
        beside = {path: text for path, text in self.spec.beside.items() if str(Path(path).parent) in mine}
        inputs = dict.fromkeys(Path(unit.config.input_file) for unit in units)
        needs = []
        if self.makers is not None:
            needs = [str(done_path(path)) for path in inputs]
        spec, secrets = msgspec.structs.replace(spec, beside=beside, needs=tuple(needs)).without_secrets()
        text = msgspec.json.format(msgspec.json.encode(spec), indent=1).decode() + "\n"
        plan.secrets |= secrets
        clients = [server for unit in units for server in (unit.config.server, *unit.config.models.values())]
        named = {client.api_key_env_var for client in clients}
        keys = (*secrets, *sorted(name for name in named if name and name in os.environ))
        server = sandbox = None
        own, _ = key_of(units[0].config.server, os.environ)
        if self.host is not None:
            server = server_script(self.host, options)
            if server.key_variable and own:
                plan.secrets[server.key_variable] = own
        if any(unit.config.needs_sandbox or grades_by_running(unit.config) for unit in units):
            sandbox = sandbox_script(options)
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
            unique_jobs([job for path in inputs for job in (self.makers or {}).get(path, ())]),
            files={RUN_FILE: text},
            copies=options.dependent_jobs,
            outputs=tuple(dict.fromkeys([*sorted(mine), *map(str, inputs)])),
            makes=makes,
        )


def split_units(units: Sequence[Unit], parts: int) -> list[Sequence[Unit]]:
    """Split units into contiguous shares of nearly the same length; -1 means one each. Raises ConfigError."""
    if parts == 0 or parts < -1:
        raise ConfigError(f"--num_jobs={parts}: expected 1 or more, or -1 for one job per unit.")
    count = len(units) if parts == -1 else min(parts, len(units))
    bounds = [len(units) * number // count for number in range(count + 1)]
    return [units[begin:end] for begin, end in itertools.pairwise(bounds)]


def first_place(units: int, jobs: int, number: int) -> int:
    """Return at which of the units, which all jobs share, the job `number` begins."""
    return units * number // jobs


def parts_of(options: WorkOptions, cluster: ClusterConfig) -> int:
    """Return `--num_jobs`, or the cluster's default."""
    if options.num_jobs is not None:
        return options.num_jobs
    if cluster.properties.this_machine:
        return 1
    return -1


def unfinished_units(units: Sequence[Unit], paths: ClusterPaths, shell: Shell) -> list[Unit]:
    """Return units without their `.done`, or whose file was cut since, and those to be begun anew, in a few trips.

    The merged file will do for a chunk.
    """
    marks: dict[str, None] = {}
    for unit in units:
        marks |= dict.fromkeys((*_done_marks(unit, paths, chunk=False), *_done_marks(unit, paths, chunk=True)))
    exists: Mapping[str, bool] = dict(zip(marks, shell.exists(list(marks)), strict=True))

    def finished(unit: Unit) -> bool:
        return any(all(exists[path] for path in _done_marks(unit, paths, chunk=chunk)) for chunk in (False, True))

    cut = cut_files([unit for unit in units if finished(unit)], paths, shell)
    return [u for u in units if not u.config.skip_filled or not finished(u) or u.merged in cut]


def _done_marks(unit: Unit, paths: ClusterPaths, *, chunk: bool) -> tuple[str, str]:
    output = unit.paths.output if chunk else unit.merged
    return paths.host_path(str(output)), paths.host_path(f"{output}.done")
