# SPDX-License-Identifier: Apache-2.0
"""Pipelines as Python objects, with the names of NeMo-Skills: Pipeline → jobs → CommandGroup → Command.

    server = ServerScript(server_type="vllm", model_path="/models/small", num_gpus=1)
    client = GenerationClientScript(output_dir="/out", input_file="/in.jsonl", servers=[server])
    group = CommandGroup([Command(server, container="vllm", name="server"), Command(client, name="main")])
    Pipeline(name="gen", cluster_config="slurm", jobs=[{"name": "generate", "group": group}]).run()

They are descriptions: `compiled` makes a `base.plan.Pipeline` of them, as often as one likes, and changes nothing.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

import msgspec
from msgspec import Struct

from newskills.base import plan
from newskills.base.errors import ConfigError, NewskillsError, suggest
from newskills.base.plan import HardwareConfig
from newskills.launch.clusters.config import ClusterConfig, image_of, load_cluster
from newskills.launch.clusters.names import looks_secret
from newskills.launch.experiments import Experiment
from newskills.launch.place import AttendedExecutor
from newskills.launch.scripts.script import Context, JobScript, SandboxScript, ServerScript, ray_words
from newskills_sandbox.variables import TOKEN_VARIABLE

__all__ = ["Command", "CommandGroup", "HardwareConfig", "JobDict", "Pipeline", "Submission", "Submit"]

JOB_KEYS = ("name", "group", "groups", "dependencies")


class Submission(Struct, frozen=True, kw_only=True):
    """What `Pipeline.run` hands to whoever submits.

    environ             of the submitting process, with secrets of this submission
    skip_hf_home_check  None: what the cluster config says
    """

    pipeline: plan.Pipeline
    cluster: ClusterConfig
    environ: dict[str, str]
    log_dir: str | None = None
    dry_run: bool = False
    reuse_code_exp: str | None = None
    skip_hf_home_check: bool | None = None

    def __repr__(self) -> str:
        return f"Submission(pipeline={self.pipeline!r}, cluster={self.cluster.name!r}, dry_run={self.dry_run})"


Submit = Callable[[Submission], Any]


class JobDict(TypedDict, total=False):
    """One job: either `group`, or `groups` that start together. It waits for the ends of its `dependencies`: jobs
    listed before it, or experiments by name or handle."""

    name: str
    group: CommandGroup
    groups: Sequence[CommandGroup]
    dependencies: Any


@dataclass(eq=False)
class Command:
    """A script in a container.

    mounts               instead of the cluster's
    workdir              None: the packaged code
    avoid_nemo_run_code  start outside the packaged code
    role                 None: servers and sandboxes are servers, all else clients, whose exit code is the job's
    """

    script: JobScript
    container: str | None = "nemo-skills"
    name: str = "command"
    mounts: Sequence[str] | None = None
    environment: Mapping[str, str] | None = None
    workdir: str | None = None
    avoid_nemo_run_code: bool = False
    force_nemo_run_code: bool = False
    role: Literal["client", "server"] | None = None


@dataclass(eq=False)
class CommandGroup:
    """Commands that share nodes. `hardware` None: what the servers in it ask for."""

    commands: Sequence[Command]
    hardware: HardwareConfig | None = None
    name: str | None = None
    log_dir: str | None = None


@dataclass(eq=False)
class Pipeline:
    """Jobs on a cluster.

    cluster_config  name, path, keys, or None: as `--cluster`
    jobs            in an order in which dependencies come first
    reuse_code      accepted as in NeMo-Skills; a package that is there already is never copied again
    with_ray        a Ray cluster over the nodes of each group, around its clients
    run_after       experiments that must have finished before any job starts, by name or handle
    """

    name: str
    cluster_config: str | Mapping[str, Any] | ClusterConfig | None
    jobs: Sequence[JobDict | Mapping[str, Any]]
    reuse_code: bool = True
    reuse_code_exp: Any = None
    skip_hf_home_check: bool | None = None
    with_ray: bool = False
    run_after: Any = None

    def run(
        self,
        dry_run: bool = False,
        log_dir: str | None = None,
        sequential: bool = False,
        *,
        submit: Submit | None = None,
    ) -> Any:
        """Check everything, then submit; return the experiment, for `dependencies` and `run_after` of others.

        `sequential`: one job after another. Executors none and local: returns when all jobs have ended. `submit` is
        for those who place work themselves. Raises NewskillsError, also where a job of this machine fails.
        """
        submission = self.submission(dry_run=dry_run, log_dir=log_dir, sequential=sequential)
        return (submit or _submit_and_wait)(submission)

    def submission(
        self, *, dry_run: bool = False, log_dir: str | None = None, sequential: bool = False
    ) -> Submission:
        """Return what would be submitted. Callable scripts are called once. Raises NewskillsError."""
        cluster = load_cluster(self.cluster_config, None, os.environ)
        environ = dict(os.environ)
        for name in _key_variables([command for job in self.jobs for command in _job_commands(job)]):
            environ.setdefault(name, secrets.token_hex(16))
        exp = self.reuse_code_exp
        reuse_code_exp = None if exp is None else _experiment_name(exp)
        return Submission(
            pipeline=_Compiler(self, cluster, environ).pipeline(sequential),
            cluster=cluster,
            environ=environ,
            log_dir=log_dir,
            dry_run=dry_run,
            reuse_code_exp=reuse_code_exp,
            skip_hf_home_check=self.skip_hf_home_check,
        )


def _submit_and_wait(submission: Submission) -> Experiment:
    """Submit, and wait for the jobs where they run on this machine. Raises NewskillsError, also where one of those jobs
    fails."""
    from newskills.launch.submit import SubmitOptions, executor_of, submit_pipeline

    options = SubmitOptions(
        log_dir=submission.log_dir,
        dry_run=submission.dry_run,
        reuse_code_exp=submission.reuse_code_exp,
        skip_hf_home_check=submission.skip_hf_home_check,
    )
    environ = submission.environ
    experiment = submit_pipeline(submission.pipeline, submission.cluster, environ, options, say=_print_note)
    executor = executor_of(experiment, environ)
    if isinstance(executor, AttendedExecutor) and not submission.dry_run:
        states = executor.wait(list(experiment.handles))
        bad = [
            f"'{job.name}' {states[job.handle]}" for job in experiment.jobs if states[job.handle] != "completed"
        ]
        if bad:
            raise NewskillsError(
                f"Some jobs of {experiment.id} failed: {', '.join(bad)}.",
                hint=f"See: ns logs {experiment.id}",
            )
    return experiment


def _print_note(text: str) -> None:
    sys.stderr.write(f"note: {text}\n")


class _Compiler:
    """One submission. `environ` gains the values of secrets that stand in `environment` of commands."""

    def __init__(self, source: Pipeline, cluster: ClusterConfig, environ: dict[str, str]) -> None:
        self.source, self.cluster, self.environ = source, cluster, environ
        self.results: dict[int, Any] = {}
        self.before: dict[str, Mapping[str, Any]] = {}

    def pipeline(self, sequential: bool) -> plan.Pipeline:
        jobs: list[plan.Job] = []
        for job in self.source.jobs:
            made = self.job(job)
            if sequential and jobs:
                needs = dict.fromkeys([*made.depends_on, jobs[-1].name])
                made = msgspec.structs.replace(made, depends_on=tuple(needs))
            jobs.append(made)
            self.before[made.name] = job
        return plan.Pipeline(name=self.source.name, jobs=tuple(jobs))

    def job(self, job: Mapping[str, Any]) -> plan.Job:
        name, groups = _job_name(job), _job_groups(job)
        if name in self.before:
            raise ConfigError(f"Two jobs have the name '{name}'.")
        listeners = _components_by_serial(groups, name)
        depends_on, run_after = self.dependencies(job, name)
        folders = dict.fromkeys(group.log_dir for group in groups if group.log_dir is not None)
        if len(folders) > 1:
            raise ConfigError(f"The groups of job '{name}' have different log_dir: {', '.join(folders)}.")
        log_dir = f"{next(iter(folders))}/{name}" if folders else None
        return plan.Job(
            name=name,
            groups=tuple(self.group(group, number, listeners, name) for number, group in enumerate(groups)),
            depends_on=tuple(depends_on),
            run_after=tuple(run_after),
            log_dir=log_dir,
        )

    def dependencies(self, job: Mapping[str, Any], name: str) -> tuple[list[str], list[str]]:
        """Return (jobs of this pipeline, experiments) that a job depends on."""
        inside: list[str] = []
        outside = [_experiment_name(dependency) for dependency in _as_list(self.source.run_after)]
        for need in _as_list(job.get("dependencies")):
            if isinstance(need, Mapping):
                if self.before.get(_job_name(need)) is not need:
                    raise ConfigError(
                        f"Job '{name}' depends on job '{_job_name(need)}', which is not listed before it."
                    )
                inside.append(_job_name(need))
            elif isinstance(need, str) and need in self.before:
                inside.append(need)
            else:
                outside.append(_experiment_name(need))
        return list(dict.fromkeys(inside)), list(dict.fromkeys(outside))

    def group(
        self, group: CommandGroup, number: int, listeners: Mapping[int, tuple[str, bool]], job: str
    ) -> plan.CommandGroup:
        if not group.commands:
            raise ConfigError(f"A group of job '{job}' has no commands.")
        for command in group.commands:
            index = command.script.het_group_index
            if index not in (None, number):
                raise ConfigError(
                    f"Command '{command.name}' of job '{job}' has het_group_index={index}, but is in group "
                    f"{number}."
                )
        hardware = group.hardware or _group_hardware(group)
        return plan.CommandGroup(
            name=group.name or f"group{number}",
            commands=tuple(self.command(command, hardware, listeners) for command in group.commands),
            hardware=hardware,
        )

    def command(
        self, command: Command, hardware: HardwareConfig, listeners: Mapping[int, tuple[str, bool]]
    ) -> plan.Command:
        script = command.script
        context = Context(
            cluster=self.cluster,
            own=command.name,
            image=image_of(self.cluster, command.container),
            components=listeners,
            environ=self.environ,
            results=self.results,
        )
        built = self.with_environment(script.build(context), command.environment or {})
        role = command.role or script.role
        if self.source.with_ray and role == "client":
            built = with_ray(built, hardware.num_nodes, context)
        mounts = None if command.mounts is None else tuple(command.mounts)
        if isinstance(script, SandboxScript) and not script.keep_mounts and mounts is None:
            mounts = ()
        return plan.Command(
            name=command.name,
            script=built,
            container=command.container,
            role=role,
            mounts=mounts,
            workdir=_command_workdir(command),
            paths=script.paths,
        )

    def with_environment(self, script: plan.Script, more: Mapping[str, str]) -> plan.Script:
        """Return `script` with the variables `more`; those of the script itself take precedence. Keys and tokens are
        passed by name."""
        hidden = {name: value for name, value in {**more, **script.env}.items() if looks_secret(name)}
        plain = {name: value for name, value in {**more, **script.env}.items() if name not in hidden}
        for name, value in hidden.items():
            if self.environ.setdefault(name, str(value)) != value:
                raise ConfigError(
                    f"{name} has one value in the environment of a command, and another value elsewhere."
                )
        return msgspec.structs.replace(script, env=plain, secrets=tuple(dict.fromkeys([*script.secrets, *hidden])))


def with_ray(script: plan.Script, nodes: int, context: Context) -> plan.Script:
    """Run `script` on the first of `nodes`, inside a Ray cluster over all of them."""
    port = 0 if script.port is None else script.port
    argv = (*ray_words(nodes, context), *script.argv)
    return msgspec.structs.replace(script, argv=argv, port=port, all_nodes=nodes > 1)


def _command_workdir(command: Command) -> str | None:
    if command.avoid_nemo_run_code and command.force_nemo_run_code:
        raise ConfigError(f"Command '{command.name}' cannot both avoid and force the packaged code.")
    if command.force_nemo_run_code:
        return None
    if not command.workdir and command.avoid_nemo_run_code:
        return "/"
    return command.workdir or None


def _group_hardware(group: CommandGroup) -> HardwareConfig:
    servers = [command.script for command in group.commands if isinstance(command.script, ServerScript)]
    return HardwareConfig(
        num_gpus=sum(server.num_gpus for server in servers),
        num_nodes=max((server.num_nodes for server in servers), default=1),
    )


def _components_by_serial(groups: Sequence[CommandGroup], job: str) -> dict[int, tuple[str, bool]]:
    components: dict[int, tuple[str, bool]] = {}
    names: set[str] = set()
    for group in groups:
        for command in group.commands:
            if command.name in names:
                raise ConfigError(f"Two commands of job '{job}' have the name '{command.name}'.")
            names.add(command.name)
            _check_script(command.name, command.script)
            other = components.setdefault(command.script.serial, (command.name, command.script.listens))
            if other[0] != command.name and command.script.listens:
                raise ConfigError(
                    f"Commands '{other[0]}' and '{command.name}' of job '{job}' run the same server script.",
                    hint="Make one script object for each.",
                )
    return components


def _check_script(name: str, script: object) -> None:
    if not isinstance(script, JobScript):
        raise ConfigError(
            f"The script of command '{name}' is of type {type(script).__name__}, not a script object.",
            hint="For your own command: BaseJobScript(inline='echo hello').",
        )


def _job_groups(job: Mapping[str, Any]) -> list[CommandGroup]:
    name = _job_name(job)
    for key in job:
        if key not in JOB_KEYS:
            raise ConfigError(f"Job '{name}' has the unknown key '{key}'{suggest(str(key), JOB_KEYS)}")
    if "group" in job and "groups" in job:
        raise ConfigError(f"Job '{name}' has both 'group' and 'groups'; give one of them.")
    if "groups" in job:
        groups = list(job["groups"])
    elif "group" in job:
        groups = [job["group"]]
    else:
        groups = []
    if not groups or any(not isinstance(group, CommandGroup) for group in groups):
        raise ConfigError(f"Job '{name}' needs a CommandGroup: {{'name': '{name}', 'group': CommandGroup(…)}}.")
    return groups


def _job_name(job: Mapping[str, Any]) -> str:
    name = job.get("name")
    if not isinstance(name, str) or not name:
        raise ConfigError("A job has no name: {'name': …, 'group': CommandGroup(…)}.")
    return name


def _job_commands(job: Mapping[str, Any]) -> list[Command]:
    return [command for group in _job_groups(job) for command in group.commands]


def _key_variables(commands: Iterable[Command]) -> set[str]:
    """Return the variables with the keys of what the jobs start for themselves; a server that is the work itself
    has none."""
    scripts = [command.script for command in commands if command.role in (None, "server")]
    variables = {script.key_variable for script in scripts if isinstance(script, ServerScript)}
    return {*variables - {""}, *(TOKEN_VARIABLE for script in scripts if isinstance(script, SandboxScript))}


def _as_list(value: Any) -> list[Any]:
    """Return a value or several as a list, without None, which an earlier call returns where nothing was left to
    do."""
    if isinstance(value, str | Mapping | int) or not isinstance(value, Sequence):
        values = [value]
    else:
        values = list(value)
    return [value for value in values if value is not None]


def _experiment_name(what: object) -> str:
    """Return the name or id from a name, an executor's id, or what an earlier submission returned (it has one of both).
    Raises ConfigError."""
    if isinstance(what, str | int) and not isinstance(what, bool):
        return str(what)
    name = getattr(what, "id", None) or getattr(what, "name", None)
    if not isinstance(name, str):
        raise ConfigError(f"{what!r} is not a job, the name of an experiment or the handle of one.")
    return name
