# SPDX-License-Identifier: Apache-2.0
"""The two layouts of task folders, and Terminal-Bench's own. Source: package `terminal-bench` 0.2.18
(`handlers/trial_handler.py`).

What a task asks for and is not done here leaves the task out, with the reason.
"""

from __future__ import annotations

import posixpath
import re
from typing import Any

import yaml
from msgspec import Struct

from newskills.base.environment import ImageBuild, TaskService
from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.benchmarks.terminal_tasks.compose import OWN, read_main
from newskills.benchmarks.terminal_tasks.files import (
    ReadTask,
    TaskFiles,
    TaskFormat,
    TaskSettings,
    UnsupportedTaskError,
    last_workdir,
    parse_file,
)
from newskills.benchmarks.terminal_tasks.harbor import read_harbor

COMPOSE, CLIENT = "docker-compose.yaml", "client"
TESTS = "/tests"
"""Where the tests are put in the container, in both layouts."""
_GIVEN = {
    "T_BENCH_TEST_DIR": TESTS,
    "T_BENCH_CONTAINER_LOGS_PATH": "/logs",
    "T_BENCH_CONTAINER_AGENT_LOGS_PATH": "/agent-logs",
}
"""What Terminal-Bench's harness puts for names in docker-compose.yaml."""
_NAME = re.compile(r"\$\{(\w+)\}|\$(\w+)")


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
    task = parse_file(files, "task.yaml", yaml.safe_load, _TerminalBenchTask)
    files.text("run-tests.sh")
    if task.parser_name != "pytest":
        raise UnsupportedTaskError(f"the log of its tests is that of {task.parser_name}, not of pytest")
    service, group = _agent_service(files), None
    if service is None:
        logs = {f"T_BENCH_TASK_{name}PATH": OWN for name in ("LOGS_", "AGENT_LOGS_")}
        names = {f"T_BENCH_TASK_DOCKER_{name}": "client" for name in ("CLIENT_CONTAINER_NAME", "NAME_PREFIX")}
        known_names = {**_GIVEN, **logs, **names, "T_BENCH_TASK_DOCKER_CLIENT_IMAGE_NAME": ""}
        main, group = read_main(files, COMPOSE, TaskService(name=CLIENT, image=""), known_names)
        build, image, workdir, variables = main.build, main.image, main.workdir, main.variables
    else:
        build, image = _built_of(files, service), ""
        variables = _service_variables(service.get("environment") or {})
        workdir = last_workdir(files.text(posixpath.normpath(posixpath.join(build.folder, build.dockerfile))))
    return ReadTask(
        instruction=task.instruction.strip(),
        image=image,
        build=build.folder if build is not None else "",
        difficulty=task.difficulty,
        settings=TaskSettings(
            container_repo_dir=workdir,
            variables={"TEST_DIR": TESTS, **variables},
            agent_timeout=task.max_agent_timeout_sec,
            test_timeout=task.max_test_timeout_sec,
            offline=service is not None and service.get("network_mode") == "none",
            group=group,
            category=task.category,
            tags=task.tags,
        ),
    )


def _agent_service(files: TaskFiles) -> Row | None:
    """Return the container of the agent in docker-compose.yaml; {} without it, None where there are several
    containers. Raises UnsupportedTaskError, DataError."""
    if COMPOSE not in files:
        return {}
    try:
        services = yaml.safe_load(files.text(COMPOSE))["services"]
        if set(services) != {CLIENT}:
            return None
        service: Row = services[CLIENT]
        if any(service.get(key) for key in ("privileged", "cap_add", "devices")):
            raise UnsupportedTaskError("its container needs rights of the machine")
        if any(not str(volume).startswith("${T_BENCH_") for volume in service.get("volumes") or ()):
            raise UnsupportedTaskError("it mounts folders of the machine")
    except (yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{files.task}/{COMPOSE} cannot be read: {error}.") from error
    return service


def _built_of(files: TaskFiles, service: Row) -> ImageBuild:
    """Return what the image of the only service is built of. Raises UnsupportedTaskError."""
    build = service.get("build") or {}
    if isinstance(build, str):
        build = {"context": build}
    context, dockerfile = posixpath.normpath(build.get("context") or "."), build.get("dockerfile") or "Dockerfile"
    name = posixpath.normpath(posixpath.join(context, dockerfile))
    if posixpath.basename(name) != "Dockerfile" or name not in files:
        raise UnsupportedTaskError("it has no Dockerfile of that name")
    return ImageBuild(folder=context, dockerfile=dockerfile)


def _service_variables(written: Any) -> dict[str, str]:
    """Read the variables of a service: a mapping, or a list of `NAME=value`. Raises UnsupportedTaskError."""
    if not isinstance(written, dict):
        written = dict(str(item).partition("=")[::2] for item in written)
    return {
        str(name): _substitute_variables("" if value is None else str(value)) for name, value in written.items()
    }


def _substitute_variables(value: str) -> str:
    def known(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name not in _GIVEN:
            raise UnsupportedTaskError("it needs variables of the machine")
        return _GIVEN[name]

    return _NAME.sub(known, value)


FORMATS = (
    TaskFormat(name="harbor", task_file="task.toml", test_script="tests/test.sh", read=read_harbor),
    TaskFormat(name="terminal-bench", task_file="task.yaml", test_script="run-tests.sh", read=read_terminal_bench),
)
