# SPDX-License-Identifier: Apache-2.0
"""The two layouts of task folders. Sources: packages `terminal-bench` 0.2.18 (`handlers/trial_handler.py`) and `harbor`
0.25.0 (`models/task/config.py`, `models/task/paths.py`).

What a task asks for and is not done here (several containers, a user of its own, tests in another container) leaves the
task out, with the reason.
"""

from __future__ import annotations

import posixpath
import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec
import yaml
from msgspec import Struct

from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.base.type_errors import type_fault

T = TypeVar("T")
TESTS = "/tests"
"""Where the tests are put in the container, in both layouts."""
_GIVEN = {
    "T_BENCH_TEST_DIR": TESTS,
    "T_BENCH_CONTAINER_LOGS_PATH": "/logs",
    "T_BENCH_CONTAINER_AGENT_LOGS_PATH": "/agent-logs",
}
"""What Terminal-Bench's harness puts for names in docker-compose.yaml."""
_NAME = re.compile(r"\$\{(\w+)\}|\$(\w+)")
_STAGE = re.compile(r"FROM\s", re.IGNORECASE)
_WORKDIR = re.compile(r"WORKDIR\s+(.+?)\s*\Z", re.IGNORECASE)
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([KMG])", re.IGNORECASE)
_MEGABYTES = {"K": 1 / 1024, "M": 1, "G": 1024}


class UnsupportedTaskError(Exception):
    """The task needs what containers of agents do not give here."""


class TaskFiles(dict[str, bytes]):
    """Name in the folder of a task → content."""

    def __init__(self, task: str, files: Mapping[str, bytes]) -> None:
        super().__init__(files)
        self.task = task

    def text(self, name: str) -> str:
        """Return the text of the task's file `name`. Raises DataError."""
        try:
            return self[name].decode()
        except KeyError:
            raise DataError(f"Task {self.task} has no {name}.") from None
        except UnicodeDecodeError as error:
            raise DataError(f"{self.task}/{name} is not UTF-8 text: {error.reason}.") from error


class TaskSettings(Struct, frozen=True, kw_only=True):
    """How a task is run. Times in seconds; `container_repo_dir` '' = the image's own folder."""

    container_repo_dir: str = ""
    variables: dict[str, str] = {}
    test_variables: dict[str, str] = {}
    solution_variables: dict[str, str] = {}
    agent_timeout: float = 0.0
    test_timeout: float = 0.0
    memory_mb: int = 0
    offline: bool = False
    category: str = ""
    tags: list[str] = []


class ReadTask(Struct, frozen=True, kw_only=True):
    """`image`: one that is there already; `build`: the folder with its Dockerfile, below the task's."""

    instruction: str
    settings: TaskSettings
    image: str = ""
    build: str = ""
    difficulty: str = ""


class TaskFormat(Struct, frozen=True, kw_only=True):
    """`read` raises DataError for a file that makes no sense, UnsupportedTaskError."""

    name: str
    task_file: str
    test_script: str
    read: Callable[[TaskFiles], ReadTask]


class _TerminalBenchTask(Struct, frozen=True, kw_only=True):
    instruction: str
    difficulty: str = "unknown"
    category: str = ""
    tags: list[str] = []
    parser_name: str = "pytest"
    max_agent_timeout_sec: float = 360.0
    max_test_timeout_sec: float = 60.0


def read_terminal_bench(files: TaskFiles) -> ReadTask:
    """Read `task.yaml`. Raises DataError, UnsupportedTaskError."""
    task = _parsed(files, "task.yaml", yaml.safe_load, _TerminalBenchTask)
    files.text("run-tests.sh")
    if task.parser_name != "pytest":
        raise UnsupportedTaskError(f"the log of its tests is that of {task.parser_name}, not of pytest")
    service = _service(files)
    context, dockerfile = _built_of(service)
    name = posixpath.join(context, dockerfile) if context != "." else dockerfile
    if posixpath.basename(name) != "Dockerfile" or name not in files:
        raise UnsupportedTaskError("it has no Dockerfile of that name")
    return ReadTask(
        instruction=task.instruction.strip(),
        build=context,
        difficulty=task.difficulty,
        settings=TaskSettings(
            container_repo_dir=_workdir(files.text(name)),
            variables={"TEST_DIR": TESTS, **_variables(service.get("environment") or {})},
            agent_timeout=task.max_agent_timeout_sec,
            test_timeout=task.max_test_timeout_sec,
            offline=service.get("network_mode") == "none",
            category=task.category,
            tags=task.tags,
        ),
    )


def _service(files: TaskFiles) -> Row:
    """Return the container of the agent in docker-compose.yaml; {} without it. Raises UnsupportedTaskError,
    DataError."""
    if "docker-compose.yaml" not in files:
        return {}
    try:
        services = yaml.safe_load(files.text("docker-compose.yaml"))["services"]
        if set(services) != {"client"}:
            raise UnsupportedTaskError("it needs several containers")
        service: Row = services["client"]
        if any(service.get(key) for key in ("privileged", "cap_add", "devices")):
            raise UnsupportedTaskError("its container needs rights of the machine")
        if any(not str(volume).startswith("${T_BENCH_") for volume in service.get("volumes") or ()):
            raise UnsupportedTaskError("it mounts folders of the machine")
    except (yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{files.task}/docker-compose.yaml cannot be read: {error}.") from error
    return service


def _built_of(service: Row) -> tuple[str, str]:
    """Return (context, Dockerfile) of a service."""
    build = service.get("build") or {}
    if isinstance(build, str):
        build = {"context": build}
    return posixpath.normpath(build.get("context") or "."), build.get("dockerfile") or "Dockerfile"


def _variables(written: Any) -> dict[str, str]:
    """Read the variables of a service: a mapping, or a list of `NAME=value`. Raises UnsupportedTaskError."""
    pairs = written.items() if isinstance(written, dict) else (str(item).partition("=")[::2] for item in written)
    return {str(name): _substituted("" if value is None else str(value)) for name, value in pairs}


def _substituted(value: str) -> str:
    def known(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name not in _GIVEN:
            raise UnsupportedTaskError("it needs variables of the machine")
        return _GIVEN[name]

    return _NAME.sub(known, value)


class _HarborEnvironment(Struct, frozen=True, kw_only=True):
    docker_image: str | None = None
    memory: str | None = None
    memory_mb: int | None = None
    gpus: int | None = None
    os: str = "linux"
    allow_internet: bool | None = None
    network_mode: str = "public"
    workdir: str | None = None
    env: dict[str, str] = {}
    mcp_servers: list[Any] = []
    healthcheck: Row | None = None


class _HarborAgent(Struct, frozen=True, kw_only=True):
    timeout_sec: float | None = None
    user: str | int | None = None


class _HarborVerifier(Struct, frozen=True, kw_only=True):
    timeout_sec: float = 600.0
    env: dict[str, str] = {}
    user: str | int | None = None
    environment_mode: str | None = None
    environment: Row | None = None


class _HarborSolution(Struct, frozen=True, kw_only=True):
    env: dict[str, str] = {}


class _HarborMetadata(Struct, frozen=True, kw_only=True):
    difficulty: str = ""
    category: str = ""
    tags: list[str] = []


class _HarborTask(Struct, frozen=True, kw_only=True):
    metadata: _HarborMetadata = _HarborMetadata()
    environment: _HarborEnvironment = _HarborEnvironment()
    agent: _HarborAgent = _HarborAgent()
    verifier: _HarborVerifier = _HarborVerifier()
    solution: _HarborSolution = _HarborSolution()
    steps: list[Any] = []


def read_harbor(files: TaskFiles) -> ReadTask:
    """Read `task.toml`. Raises DataError, UnsupportedTaskError."""
    task = _parsed(files, "task.toml", tomllib.loads, _HarborTask)
    for needed, why in (
        (bool(task.steps), "it has several steps"),
        (task.environment.os.lower() != "linux", "its container is not Linux"),
        (bool(task.environment.gpus), "it needs GPUs"),
        (bool(task.environment.mcp_servers), "it needs MCP servers"),
        (task.environment.healthcheck is not None, "its container has a health check"),
        ("environment/docker-compose.yaml" in files, "it needs several containers"),
        (task.environment.network_mode == "allowlist", "it allows the network in part"),
        (task.agent.user is not None or task.verifier.user is not None, "it needs users in the container"),
        (
            task.verifier.environment is not None or task.verifier.environment_mode == "separate",
            "its tests run in another container",
        ),
    ):
        if needed:
            raise UnsupportedTaskError(why)
    files.text("tests/test.sh")
    dockerfile = files.text("environment/Dockerfile") if "environment/Dockerfile" in files else ""
    if not task.environment.docker_image and not dockerfile:
        raise UnsupportedTaskError("it has neither an image nor a Dockerfile")
    return ReadTask(
        instruction=files.text("instruction.md").strip(),
        image=task.environment.docker_image or "",
        build="" if task.environment.docker_image else "environment",
        difficulty=task.metadata.difficulty,
        settings=TaskSettings(
            container_repo_dir=task.environment.workdir or _workdir(dockerfile),
            variables=_literal(task.environment.env),
            test_variables=_literal(task.verifier.env),
            solution_variables=_literal(task.solution.env),
            agent_timeout=task.agent.timeout_sec or 0.0,
            test_timeout=task.verifier.timeout_sec,
            memory_mb=task.environment.memory_mb or _megabytes(task.environment.memory or ""),
            offline=task.environment.network_mode == "no-network" or task.environment.allow_internet is False,
            category=task.metadata.category,
            tags=task.metadata.tags,
        ),
    )


def _literal(variables: dict[str, str]) -> dict[str, str]:
    if any("${" in value for value in variables.values()):
        raise UnsupportedTaskError("it needs variables of the machine")
    return variables


def _megabytes(size: str) -> int:
    """Return megabytes; 0 where nothing is said."""
    match = _SIZE.fullmatch(size.strip())
    return int(float(match[1]) * _MEGABYTES[match[2].upper()]) if match else 0


def _workdir(dockerfile: str) -> str:
    """Return the folder in which the last stage works; '' where the base image, or a variable, decides."""
    workdir = ""
    for line in dockerfile.splitlines():
        if _STAGE.match(line.strip()):
            workdir = ""
        elif match := _WORKDIR.match(line.strip()):
            workdir = posixpath.join(workdir, match[1].strip("\"'"))
    return workdir if workdir.startswith("/") and "$" not in workdir else ""


def _parsed(files: TaskFiles, name: str, parse: Callable[[str], Any], type_: type[T]) -> T:
    raw: Any = None
    try:
        raw = parse(files.text(name))
        return msgspec.convert(raw, type_)
    except (yaml.YAMLError, tomllib.TOMLDecodeError) as error:
        raise DataError(f"{files.task}/{name} cannot be read: {error}.") from error
    except msgspec.ValidationError as error:
        raise DataError(f"{files.task}/{name}: {type_fault(error, raw)}.") from error


FORMATS = (
    TaskFormat(name="harbor", task_file="task.toml", test_script="tests/test.sh", read=read_harbor),
    TaskFormat(name="terminal-bench", task_file="task.yaml", test_script="run-tests.sh", read=read_terminal_bench),
)
