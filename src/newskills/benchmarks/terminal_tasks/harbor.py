# SPDX-License-Identifier: Apache-2.0
"""Harbor's tasks, schema 1.4. Source: package `harbor` 0.26.0 (`models/task/config.py`, `verifier_mode.py`).

Every field is read. One that is not understood, and what is not done here, leaves the task out by its name.
"""

from __future__ import annotations

import contextlib
import ipaddress
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar

from msgspec import Struct, structs

from newskills.base.environment import HealthCheck, ImageBuild, McpServer, TaskService
from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.benchmarks.terminal_tasks.compose import OWN, read_main
from newskills.benchmarks.terminal_tasks.files import (
    ReadTask,
    TaskFiles,
    TaskSettings,
    UnsupportedTaskError,
    image_name,
    last_workdir,
    parse_file,
    parse_megabytes,
)
from newskills.graders.software.phases import (
    ARTIFACTS,
    PHASES,
    Artifact,
    CollectCommand,
    PhaseName,
    TaskPhases,
    TaskStep,
    TestContainer,
)

T = TypeVar("T")
SCHEMA = (1, 4)
MAIN = "main"
"""The service in which the agent acts."""
COMPOSE = "environment/docker-compose.yaml"
LOG_FOLDERS = {"VERIFIER_LOGS": "verifier", "AGENT_LOGS": "agent", "ARTIFACTS": "artifacts"}
NetworkMode = Literal["no-network", "public", "allowlist"]
_CANARY = re.compile(r"<!--.*canary.*-->|#.*canary.*", re.IGNORECASE)
_STEP_NAME = re.compile(r"[^<>:\"/\\|?*\x00-\x1f\x7f]*[^<>:\"/\\|?*\x00-\x1f\x7f. ]")
_DEVICE = re.compile(r"(?:CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(?:COM|LPT)[1-9¹²³]) *(?:\..*)?", re.IGNORECASE)
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_VARIABLE = re.compile(r"\$\{[^}:]*(?::-([^}]*))?\}")


class _Section(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of `task.toml`."""


class _Phase(_Section, frozen=True, kw_only=True):
    network_mode: NetworkMode | None = None
    allowed_hosts: list[str] | None = None
    user: str | int | None = None


class _McpServer(_Section, frozen=True, kw_only=True):
    name: str
    transport: Literal["stdio", "sse", "streamable-http", "http"] = "sse"
    url: str | None = None
    command: str | None = None
    args: list[str] = []
    headers: dict[str, str] = {}


class _Environment(_Section, frozen=True, kw_only=True):
    network_mode: NetworkMode | None = None
    allowed_hosts: list[str] | None = None
    allow_internet: bool | None = None
    build_timeout_sec: float = 600.0
    docker_image: str | None = None
    os: str = "linux"
    cpus: float | None = None
    memory_mb: int | None = None
    memory: str | None = None
    storage_mb: int | None = None
    storage: str | None = None
    gpus: int | None = None
    gpu_types: list[str] | None = None
    tpu: Row | None = None
    mcp_servers: list[_McpServer] = []
    env: dict[str, str] = {}
    skills_dir: str | None = None
    healthcheck: HealthCheck | None = None
    workdir: str | None = None


class _Agent(_Phase, frozen=True, kw_only=True):
    timeout_sec: float | None = None


class _Collect(_Section, frozen=True, kw_only=True):
    command: str
    service: str = MAIN
    timeout_sec: float = 60.0
    user: str | int | None = None


class _Verifier(_Phase, frozen=True, kw_only=True):
    timeout_sec: float = 600.0
    env: dict[str, str] = {}
    environment_mode: Literal["shared", "separate"] | None = None
    environment: _Environment | None = None
    collect: list[_Collect] = []


class _Solution(_Section, frozen=True, kw_only=True):
    env: dict[str, str] = {}


class _Artifact(_Section, frozen=True, kw_only=True):
    source: str
    destination: str | None = None
    exclude: list[str] = []
    service: str | None = None


class _HarborStep(_Section, frozen=True, kw_only=True):
    name: str
    agent: _Agent = _Agent()
    verifier: _Verifier = _Verifier()
    min_reward: float | dict[str, float] | None = None
    healthcheck: HealthCheck | None = None
    artifacts: list[Any] = []


class _Task(_Section, frozen=True, kw_only=True):
    schema_version: str | float | None = None
    version: str | float | None = None
    task: Row | None = None
    metadata: Row = {}
    environment: _Environment = _Environment()
    agent: _Agent = _Agent()
    verifier: _Verifier = _Verifier()
    solution: _Solution = _Solution()
    source: str | None = None
    steps: list[_HarborStep] = []
    multi_step_reward_strategy: Literal["mean", "final"] | None = None
    artifacts: list[str | _Artifact] = []


def read_harbor(files: TaskFiles) -> ReadTask:
    """Read `task.toml`. Raises DataError, UnsupportedTaskError."""
    _check_version(files)
    task = parse_file(files, "task.toml", tomllib.loads, _Task)
    environment, own = task.environment, _own_container(task, files)
    _check_environment(environment, "environment")
    main, group = read_main(files, COMPOSE, _usual_main(files, environment), _compose_variables(environment))
    if group is not None and own is not None:
        raise UnsupportedTaskError("its tests have a container of their own beside several of the agent's")
    steps = [_task_step(files, task, step, own) for step in task.steps]
    if not steps and (own is None or not own.bundled):
        files.text("tests/test.sh")
    if len({step.name.casefold() for step in steps}) < len(steps):
        raise DataError(f"{files.task}/task.toml: two of its steps have one name.")
    policies = _phase_policies(task)
    allowed = _allowed_hosts(policies)
    if own is not None and "tests" in allowed:
        raise UnsupportedTaskError("its tests, in a container of their own, have the network in part")
    agents = [policies[phase] for phase in PHASES if own is None or phase != "tests"]
    offline = not steps and all(hosts == [] for hosts in agents)
    metadata = task.metadata
    return ReadTask(
        instruction=steps[0].instruction if steps else _read_instruction(files, "instruction.md"),
        image=main.image,
        build=main.build.folder if main.build else "",
        difficulty=str(metadata.get("difficulty") or ""),
        settings=TaskSettings(
            container_repo_dir=environment.workdir or main.workdir,
            variables=main.variables,
            test_variables=_resolve_variables(task.verifier.env, "verifier.env"),
            solution_variables=_resolve_variables(task.solution.env, "solution.env"),
            agent_timeout=task.agent.timeout_sec or 0.0,
            test_timeout=task.verifier.timeout_sec,
            memory_mb=environment.memory_mb or parse_megabytes(environment.memory),
            disk_mb=environment.storage_mb or parse_megabytes(environment.storage),
            cpus=environment.cpus or 0.0,
            build_timeout=environment.build_timeout_sec,
            offline=offline,
            phases=TaskPhases(
                agent_user=_user_name(task.agent.user),
                test_user=_user_name(task.verifier.user),
                closed=[] if offline else _closed_phases(policies),
                allowed=allowed,
                health=environment.healthcheck,
                collect=[_collect_command(hook) for hook in task.verifier.collect],
                artifacts=[] if own is None else list(_collected_artifacts(task.artifacts)),
                container=own,
            ),
            group=group,
            mcp_servers=[_mcp_server(files, server) for server in environment.mcp_servers],
            task_steps=steps,
            last_step_counts=task.multi_step_reward_strategy == "final",
            category=str(metadata.get("category") or ""),
            tags=[str(tag) for tag in metadata.get("tags") or ()],
        ),
    )


def _read_instruction(files: TaskFiles, name: str) -> str:
    return _without_canary(files.text(name)).strip()


def _task_step(files: TaskFiles, task: _Task, step: _HarborStep, own: TestContainer | None) -> TaskStep:
    """Return a step, with what it takes of the task where it does not say otherwise (`trial/multi_step.py`). Raises
    DataError, UnsupportedTaskError."""
    if own is not None or step.verifier.environment is not None or step.verifier.environment_mode == "separate":
        raise UnsupportedTaskError(f"its step {step.name} has tests in a container of their own")
    folder = f"steps/{step.name}"
    if not _STEP_NAME.fullmatch(step.name) or _DEVICE.fullmatch(step.name):
        raise DataError(f"{files.task}/task.toml: '{step.name}' is no name of a folder for a step.")
    if "tests/test.sh" not in files:
        files.text(f"{folder}/tests/test.sh")
    agent, verifier = task.agent, task.verifier
    for phase, place in ((step.agent, "agent"), (step.verifier, "verifier")):
        _section_policy(phase, f"steps.{step.name}.{place}")
    policy = structs.replace(
        task,
        agent=step.agent if step.agent.network_mode else agent,
        verifier=step.verifier if step.verifier.network_mode else verifier,
    )
    policies = _phase_policies(policy)
    return TaskStep(
        name=step.name,
        instruction=_read_instruction(files, f"{folder}/instruction.md"),
        agent_timeout=_step_or_task(step.agent.timeout_sec, agent.timeout_sec) or 0.0,
        test_timeout=step.verifier.timeout_sec,
        test_variables=_resolve_variables(step.verifier.env, f"steps.{step.name}.verifier.env"),
        agent_user=_user_name(_step_or_task(step.agent.user, agent.user)),
        test_user=_user_name(_step_or_task(step.verifier.user, verifier.user)),
        closed=_closed_phases(policies),
        allowed=_allowed_hosts(policies),
        health=step.healthcheck,
        collect=[_collect_command(hook) for hook in (*verifier.collect, *step.verifier.collect)],
        min_reward=_least_rewards(step.min_reward),
    )


def _step_or_task(of_step: T, of_task: T) -> T:
    """Return what a step says, or what the task says where the step does not."""
    if of_step is None:
        return of_task
    return of_step


def _least_rewards(least: float | dict[str, float] | None) -> dict[str, float]:
    """Return the least reward by name; a single number is that of `reward`."""
    if least is None:
        return {}
    if isinstance(least, dict):
        return least
    return {"reward": least}


def _mcp_server(files: TaskFiles, server: _McpServer) -> McpServer:
    """Return a server of tools. Raises DataError for one without the address, or the command, of its transport."""
    field, address = "url", server.url
    if server.transport == "stdio":
        field, address = "command", server.command
    if not address:
        raise DataError(
            f"{files.task}/task.toml: the MCP server {server.name} of transport {server.transport} has no {field}."
        )
    return McpServer(
        name=server.name,
        transport="streamable-http" if server.transport == "http" else server.transport,
        url=server.url or "",
        command=server.command or "",
        args=server.args,
    )


def _usual_main(files: TaskFiles, environment: _Environment) -> TaskService:
    """Return the agent's container as it is where docker-compose.yaml does not change it."""
    image, build, workdir = environment.docker_image or "", None, ""
    if not image and "environment/Dockerfile" in files:
        image, build = image_name(files, "environment"), ImageBuild(folder="environment")
        workdir = last_workdir(files.text("environment/Dockerfile"))
    return TaskService(
        name=MAIN,
        image=image,
        build=build,
        workdir=workdir,
        variables=_resolve_variables(environment.env, "environment.env"),
    )


def _compose_variables(environment: _Environment) -> dict[str, str]:
    """Return what Harbor gives to docker-compose.yaml (`environments/docker/compose_env.py`)."""
    variables = {**_resolve_variables(environment.env, "environment.env"), "CONTEXT_DIR": "."}
    for name, folder in LOG_FOLDERS.items():
        variables |= {f"HOST_{name}_PATH": f"{OWN}{folder}", f"ENV_{name}_PATH": f"/logs/{folder}"}
    return variables


def _check_version(files: TaskFiles) -> None:
    """Refuse tasks of a newer schema before their fields are read. Raises DataError, UnsupportedTaskError."""
    raw = parse_file(files, "task.toml", tomllib.loads, Row)
    version = str(raw.get("schema_version") or raw.get("version") or "1.0")
    numbers = tuple(int(part) for part in re.findall(r"\d+", version))
    if numbers[: len(SCHEMA)] > SCHEMA:
        newest = ".".join(map(str, SCHEMA))
        raise UnsupportedTaskError(f"its schema is {version}, and newskills reads those up to {newest}")


def _check_environment(environment: _Environment, section: str) -> None:
    """Raise UnsupportedTaskError for what an environment asks for and cannot have here."""
    for is_needed, why in (
        (environment.os.lower() != "linux", f"its container is not Linux (`{section}.os`)"),
        (bool(environment.gpus), f"it needs GPUs (`{section}.gpus`)"),
        (environment.tpu is not None, f"it needs TPUs (`{section}.tpu`)"),
        (
            any(server.headers for server in environment.mcp_servers),
            f"its MCP servers need headers (`{section}.mcp_servers.headers`)",
        ),
        (bool(environment.skills_dir), f"it brings skills for agents (`{section}.skills_dir`)"),
    ):
        if is_needed:
            raise UnsupportedTaskError(why)


def _own_container(task: _Task, files: TaskFiles) -> TestContainer | None:
    """Return the container of the tests where they have one of their own: an image or a Dockerfile that brings them,
    else a new one like the agent's. Raises UnsupportedTaskError."""
    verifier = task.verifier
    if verifier.environment_mode == "shared" and verifier.environment is not None:
        raise UnsupportedTaskError("`verifier.environment` contradicts `verifier.environment_mode`")
    if verifier.environment is None and verifier.environment_mode != "separate":
        return None
    environment = verifier.environment or task.environment
    _check_environment(environment, "verifier.environment")
    image, build, bundled = task.environment.docker_image or "", "", False
    dockerfile = "environment/Dockerfile"
    if verifier.environment is not None and verifier.environment.docker_image:
        image, bundled = verifier.environment.docker_image, True
    elif "tests/docker-compose.yaml" in files:
        raise UnsupportedTaskError("it needs several containers (tests/docker-compose.yaml)")
    elif "tests/Dockerfile" in files:
        image, build, bundled = image_name(files, "tests"), "tests", True
        dockerfile = "tests/Dockerfile"
    elif not image:
        image, build = image_name(files, "environment"), "environment"
    workdir = last_workdir(files.text(dockerfile)) if build else ""
    return TestContainer(
        image=image,
        build=build,
        bundled=bundled,
        workdir=environment.workdir or workdir,
        variables=_resolve_variables(environment.env, "verifier.environment.env"),
        memory_mb=environment.memory_mb or parse_megabytes(environment.memory),
        cpus=environment.cpus or 0.0,
        disk_mb=environment.storage_mb or parse_megabytes(environment.storage),
        build_timeout=environment.build_timeout_sec,
        closed=_phase_policies(task)["tests"] is not None,
    )


Policy = list[str] | None
"""Hosts that may be reached; None: all."""


def _phase_policies(task: _Task) -> dict[PhaseName, Policy]:
    """Return the network of each phase (`trial/network_policy.py`). Raises UnsupportedTaskError."""
    baseline = _section_policy(task.environment, "environment")
    tests_baseline = baseline
    if task.verifier.environment is not None:
        tests_baseline = _section_policy(task.verifier.environment, "verifier.environment")
    agent, tests = _section_policy(task.agent, "agent"), _section_policy(task.verifier, "verifier")
    policies: dict[PhaseName, Policy] = {"start": baseline, "agent": baseline, "tests": tests_baseline}
    if task.agent.network_mode is not None:
        policies["agent"] = agent
    if task.verifier.network_mode is not None:
        policies["tests"] = tests
    return policies


def _section_policy(section: _Phase | _Environment, name: str) -> Policy:
    """Return the network of a section. Raises UnsupportedTaskError for hosts that are none."""
    if section.network_mode == "allowlist":
        return [_normalize_host(host, name) for host in section.allowed_hosts or ()]
    is_phase = isinstance(section, _Phase) and section.network_mode is None
    if section.allowed_hosts or (is_phase and section.allowed_hosts is not None):
        raise UnsupportedTaskError(f'`{name}.allowed_hosts` needs `{name}.network_mode` = "allowlist"')
    if section.network_mode is None and isinstance(section, _Environment) and section.allow_internet is False:
        return []
    if section.network_mode == "no-network":
        return []
    return None


def _normalize_host(written: str, name: str) -> str:
    """Return an entry of allowed hosts as Harbor normalises it. Raises UnsupportedTaskError for an address with a port
    or a path."""
    host = written.strip().lower().rstrip(".")
    with contextlib.suppress(ValueError):
        if "/" in host:
            return ipaddress.ip_network(host).compressed
        return ipaddress.ip_address(host).compressed
    labels = host.removeprefix("*.").split(".")
    if host.startswith("*.") and _is_address(host[2:]):
        labels = [""]
    if not all(_LABEL.fullmatch(label) for label in labels):
        raise UnsupportedTaskError(f"`{name}.allowed_hosts` has `{written}`, which is no host")
    return host


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _closed_phases(policies: Mapping[PhaseName, Policy]) -> list[PhaseName]:
    return [phase for phase in PHASES if policies[phase] is not None]


def _allowed_hosts(policies: Mapping[PhaseName, Policy]) -> dict[PhaseName, list[str]]:
    return {phase: hosts for phase, hosts in policies.items() if hosts}


def _collect_command(hook: _Collect) -> CollectCommand:
    if hook.service != MAIN:
        raise UnsupportedTaskError(f"it needs several containers (`verifier.collect.service` is {hook.service})")
    return CollectCommand(command=hook.command, timeout=hook.timeout_sec, user=_user_name(hook.user))


def _collected_artifacts(written: Sequence[str | _Artifact]) -> Iterable[Artifact]:
    """Return what the tests see of the agent's container: the folder for artifacts, and what the task names. Raises
    UnsupportedTaskError."""
    entries = [_Artifact(source=entry) if isinstance(entry, str) else entry for entry in written]
    if not any(entry.source.rstrip("/") == ARTIFACTS for entry in entries):
        yield Artifact(source=ARTIFACTS)
    for entry in entries:
        if entry.service not in (None, MAIN):
            raise UnsupportedTaskError(f"it needs several containers (`artifacts.service` is {entry.service})")
        if not entry.source.startswith("/") or ".." in entry.source.split("/"):
            raise UnsupportedTaskError(f"`artifacts` names {entry.source}, which is no absolute path")
        yield Artifact(source=entry.source, exclude=entry.exclude)


def _resolve_variables(variables: dict[str, str], section: str) -> dict[str, str]:
    """Return variables with the defaults of those of the machine, which tasks do not see here. Raises
    UnsupportedTaskError where one has none."""
    resolved = {}
    for name, value in variables.items():
        template = _VARIABLE.fullmatch(value)
        if template is not None and template[1] is None:
            raise UnsupportedTaskError(f"it needs variables of the machine (`{section}.{name}`)")
        resolved[name] = value if template is None else template[1]
    return resolved


def _without_canary(text: str) -> str:
    """Return an instruction without the lines in front that mark it for those who collect training data."""
    lines = text.split("\n")
    while lines and (_CANARY.fullmatch(lines[0].strip()) or (not lines[0].strip() and len(lines) > 1)):
        lines.pop(0)
    return "\n".join(lines)


def _user_name(user: str | int | None) -> str:
    if user is None:
        return ""
    return str(user)
