# SPDX-License-Identifier: Apache-2.0
"""Tasks of several containers: the part of docker-compose.yaml that containers of agents can be made of.

Source: https://docs.docker.com/reference/compose-file/. A key that is not understood leaves the task out by its name.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Callable, Mapping
from functools import partial
from graphlib import CycleError, TopologicalSorter
from typing import Any

import yaml
from msgspec import Struct

from newskills.base.environment import Condition, HealthCheck, ImageBuild, ServiceGroup, TaskService
from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.benchmarks.terminal_tasks.files import (
    TaskFiles,
    UnsupportedTaskError,
    convert_value,
    image_name,
    last_workdir,
    parse_file,
    parse_megabytes,
)

CONDITIONS: dict[str, Condition] = {
    "service_started": "started",
    "service_healthy": "healthy",
    "service_completed_successfully": "completed",
}
_VARIABLE = re.compile(r"\$(?:(?P<dollar>\$)|\{(?P<name>\w+)(?::?-(?P<usual>[^}]*))?\}|(?P<bare>[A-Za-z_]\w*)|\{)")
_PART = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s|m|h)")
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_IDLE = re.compile(
    r"(?:(?:/usr)?(?:/bin/)?(?:ba)?sh(?: -l?c)? ?)?(?:(?:exec )?(?:sleep (?:infinity|\d+\w?)|tail -[fF] /dev/null))?"
)
"""Commands that do nothing but keep a container, which the agent's does without them."""
OWN = "/newskills-own/"
"""What sources of volumes begin with that the harness brings: folders for logs, which our containers have already."""


class _Strict(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of `docker-compose.yaml`."""


class _Build(_Strict, frozen=True, kw_only=True):
    context: str = "."
    dockerfile: str = "Dockerfile"
    target: str = ""
    args: dict[str, Any] | list[str] = {}


class _Check(_Strict, frozen=True, kw_only=True):
    test: str | list[str] = "NONE"
    disable: bool = False
    interval: str = "30s"
    timeout: str = "30s"
    start_period: str = "0s"
    start_interval: str = "5s"
    retries: int = 3


class _Need(_Strict, frozen=True, kw_only=True):
    condition: str = "service_started"
    required: bool = True
    restart: bool = False


class _Volume(_Strict, frozen=True, kw_only=True):
    target: str
    source: str = ""
    type: str = "bind"
    read_only: bool = False


class _Service(_Strict, frozen=True, kw_only=True):
    image: str = ""
    build: str | _Build | None = None
    entrypoint: str | list[str] | None = None
    command: str | list[str] | None = None
    environment: dict[str, Any] | list[str] | None = None
    volumes: list[str | _Volume] = []
    depends_on: list[str] | dict[str, _Need] = []
    healthcheck: _Check | None = None
    hostname: str = ""
    container_name: str = ""
    working_dir: str = ""
    user: str | int = ""
    mem_limit: str | int = 0
    shm_size: str | int = ""
    networks: list[str] | dict[str, Any] = []
    expose: Any = None  # the others reach every port; none is opened on this machine
    ports: Any = None
    init: Any = None  # what follows changes nothing that a task can see
    labels: Any = None
    logging: Any = None
    platform: Any = None
    pull_policy: Any = None
    restart: Any = None
    stdin_open: Any = None
    stop_grace_period: Any = None
    stop_signal: Any = None
    tty: Any = None


class _Compose(_Strict, frozen=True, kw_only=True):
    services: dict[str, Row]
    volumes: dict[str, dict[str, None] | None] = {}
    networks: dict[str, Any] = {}
    version: Any = None
    name: Any = None


def read_main(
    files: TaskFiles, name: str, usual: TaskService, variables: Mapping[str, str]
) -> tuple[TaskService, ServiceGroup | None]:
    """Return the agent's container, and its group where the file `name` makes one of several. Raises as
    `read_compose`, UnsupportedTaskError for a container of nothing."""
    group = None
    main = usual
    if name in files:
        group = read_compose(files, name, usual, variables)
        main = group.main_service
        if main.user or main.shared_memory:
            raise UnsupportedTaskError(f"{name} has `user` or `shm_size` for {main.name}, in which agents act")
        if group.services == [main] and not (main.files or main.volumes or main.health):
            group = None
    if not main.image:
        raise UnsupportedTaskError("it has neither an image nor a Dockerfile")
    return main, group


def read_compose(files: TaskFiles, name: str, usual: TaskService, variables: Mapping[str, str]) -> ServiceGroup:
    """Read the services of the file `name`; `usual`: that of the agent where the file does not say otherwise;
    `variables`: what `${NAME}` stands for.

    Raises DataError, UnsupportedTaskError.
    """
    parse = partial(_parse_yaml, variables=variables)
    compose = parse_file(files, name, parse, _Compose)
    if set(compose.networks) - {"default"} or compose.networks.get("default"):
        raise UnsupportedTaskError(f"{name} has `networks` of its own")
    written = {usual.name: _Service()}
    for key, raw in compose.services.items():
        written[key] = convert_value(files, name, raw, _Service, f"services.{key}")
    folder = posixpath.dirname(name)
    services = {
        key: _task_service(files, f"{name}: services.{key}", folder, key, service, compose, usual)
        for key, service in written.items()
    }
    _check_volumes(name, services)
    order = TopologicalSorter({key: set(service.needs) for key, service in services.items()})
    try:
        ordered = [services[key] for key in order.static_order()]
    except KeyError as error:
        raise DataError(f"{files.task}/{name}: depends_on names {error}, which is no service.") from error
    except CycleError as error:
        raise DataError(f"{files.task}/{name}: services depend on each other: {error.args[1]}.") from error
    for service in ordered:
        for needed, condition in service.needs.items():
            if condition == "healthy" and services[needed].health is None:
                raise UnsupportedTaskError(f"{name} has no `healthcheck` for {needed}, whose health is waited for")
    # The agent's starts as soon as what it needs is there, so that those which need it come last.
    return ServiceGroup(services=ordered, main=usual.name)


def _task_service(
    files: TaskFiles,
    where: str,
    folder: str,
    key: str,
    service: _Service,
    compose: _Compose,
    usual: TaskService,
) -> TaskService:
    """Return a service of the file. Raises DataError, UnsupportedTaskError."""
    if (list(service.networks) or ["default"]) != ["default"]:
        raise UnsupportedTaskError(f"{where} has `networks` of its own")
    is_main = key == usual.name
    if is_main and service.entrypoint is not None:
        raise UnsupportedTaskError(f"{where} has an `entrypoint`, and agents act in it")
    if is_main and not _is_idle(service.command):
        raise UnsupportedTaskError(f"{where} has a `command` that does more than wait, and agents act in it")
    copied, volumes = _service_mounts(files, where, folder, service, compose)
    build = _image_build(files, where, folder, service)
    if build is None and not service.image and is_main:
        build = usual.build
    image = service.image or (usual.image if is_main else "")
    if build is not None and (service.build is not None or not image):
        image = image_name(files, build.folder, build)
    if not image and not is_main:
        raise UnsupportedTaskError(f"{where} has neither `image` nor `build`")
    workdir = service.working_dir
    if is_main and not workdir:
        workdir = _build_workdir(files, build) if service.build is not None else usual.workdir
    return TaskService(
        name=key,
        image=image,
        aliases=[
            name for name in dict.fromkeys((service.hostname, service.container_name)) if name and name != key
        ],
        build=build,
        entrypoint=_command_words(service.entrypoint),
        command=None if is_main else _command_words(service.command),
        variables={**(usual.variables if is_main else {}), **_parse_variables(where, service.environment)},
        user=str(service.user),
        workdir=workdir,
        files=copied,
        volumes=volumes,
        needs=_service_conditions(where, service),
        health=_health_check(where, service.healthcheck),
        memory_mb=parse_megabytes(str(service.mem_limit or "")),
        shared_memory=str(service.shm_size),
    )


def _image_build(files: TaskFiles, where: str, folder: str, service: _Service) -> ImageBuild | None:
    if service.build is None:
        return None
    written = service.build
    if isinstance(written, str):
        written = _Build(context=written)
    context = posixpath.normpath(posixpath.join(folder, written.context))
    if context.startswith(("..", "/")):
        raise UnsupportedTaskError(f"{where} has a `build` outside the folder of the task")
    build = ImageBuild(
        folder=context,
        dockerfile=posixpath.normpath(written.dockerfile),
        target=written.target,
        arguments=_parse_variables(f"{where}.build", written.args),
    )
    if posixpath.normpath(posixpath.join(context, build.dockerfile)) not in files:
        raise UnsupportedTaskError(f"{where} has a `build` without its Dockerfile")
    return build


def _build_workdir(files: TaskFiles, build: ImageBuild | None) -> str:
    if build is None or build.target:
        return ""
    return last_workdir(files.text(posixpath.normpath(posixpath.join(build.folder, build.dockerfile))))


def _service_mounts(
    files: TaskFiles, where: str, folder: str, service: _Service, compose: _Compose
) -> tuple[dict[str, str], dict[str, str]]:
    """Return (file or folder of the task → where its copy lies, volume → where it is seen)."""
    copied: dict[str, str] = {}
    volumes: dict[str, str] = {}
    for entry in service.volumes:
        if isinstance(entry, str):
            source, _, rest = entry.partition(":")
            target, _, options = rest.partition(":")
            if not target or set(options.split(",")) - {"", "ro", "rw", "z", "Z"}:
                raise UnsupportedTaskError(f"{where}.volumes has `{entry}`, which is not understood")
        elif entry.type in ("bind", "volume") and entry.source:
            source, target = entry.source, entry.target
        else:
            raise UnsupportedTaskError(f"{where}.volumes has the type `{entry.type}`, which is not understood")
        if source.startswith(OWN):
            continue
        if source in compose.volumes:
            volumes[source] = target
            continue
        place = posixpath.normpath(posixpath.join(folder, source))
        is_there = place in files or any(name.startswith(f"{place}/") for name in files)
        if not source.startswith(".") or place.startswith("..") or not is_there:
            raise UnsupportedTaskError(f"{where}.volumes mounts `{source}`, which is not in the task's folder")
        copied[place] = target
    return copied, volumes


def _check_volumes(name: str, services: Mapping[str, TaskService]) -> None:
    """Refuse folders of the task in several services, which would each have a copy. Raises UnsupportedTaskError."""
    users: dict[str, str] = {}
    for service in services.values():
        for source in service.files:
            if users.setdefault(source, service.name) != service.name:
                raise UnsupportedTaskError(f"{name} mounts `{source}` in {users[source]} and in {service.name}")


def _service_conditions(where: str, service: _Service) -> dict[str, Condition]:
    needs = service.depends_on
    if not isinstance(needs, dict):
        needs = {needed: _Need() for needed in needs}
    for need in needs.values():
        if need.condition not in CONDITIONS or not need.required:
            raise UnsupportedTaskError(f"{where}.depends_on has a condition that is not understood")
    return {needed: CONDITIONS[need.condition] for needed, need in needs.items()}


def _health_check(where: str, check: _Check | None) -> HealthCheck | None:
    if check is None or check.disable:
        return None
    words = check.test
    if isinstance(words, str):
        words = ["CMD-SHELL", words]
    if words in (["NONE"], ["CMD-SHELL", "NONE"]):
        return None
    if words[:1] == ["CMD-SHELL"] and len(words) == 2:
        words = ["CMD", "sh", "-c", words[1]]
    if words[:1] != ["CMD"] or len(words) < 2:
        raise UnsupportedTaskError(f"{where}.healthcheck.test is not understood")
    return HealthCheck(
        command=shlex.join(words[1:]),
        interval_sec=_parse_seconds(where, check.interval),
        timeout_sec=_parse_seconds(where, check.timeout),
        start_period_sec=_parse_seconds(where, check.start_period),
        start_interval_sec=_parse_seconds(where, check.start_interval),
        retries=check.retries,
    )


def _parse_seconds(where: str, text: str) -> float:
    """Return seconds of `1m30s`. Raises UnsupportedTaskError."""
    parts = _PART.findall(text)
    if "".join(number + unit for number, unit in parts) != text or not parts:
        raise UnsupportedTaskError(f"{where}.healthcheck has the time `{text}`, which is not understood")
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def _is_idle(command: str | list[str] | None) -> bool:
    return _IDLE.fullmatch(" ".join(_command_words(command) or [])) is not None


def _command_words(command: str | list[str] | None) -> list[str] | None:
    """Return the words of a command, which compose splits as a shell does."""
    if isinstance(command, str):
        return shlex.split(command)
    return command


def _parse_variables(where: str, written: Mapping[str, Any] | list[str] | None) -> dict[str, str]:
    """Return the variables of a mapping, or of a list of `NAME=value`. Raises UnsupportedTaskError for one that this
    machine would have to give."""
    if isinstance(written, list):
        parts = [item.partition("=") for item in written]
        written = {name: value if equals else None for name, equals, value in parts}
    variables = {}
    for name, value in (written or {}).items():
        if value is None:
            raise UnsupportedTaskError(f"it needs variables of the machine ({where}: `{name}`)")
        variables[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return variables


def _parse_yaml(text: str, variables: Mapping[str, str]) -> Any:
    """Read YAML, replace variables in its texts, and drop extensions. Raises yaml.YAMLError, UnsupportedTaskError."""

    def known(match: re.Match[str]) -> str:
        if match["dollar"]:
            return "$"
        name = match["name"] or match["bare"]
        if name in variables:
            return variables[name]
        if match["usual"] is None:
            raise UnsupportedTaskError(
                f"it needs variables of the machine (docker-compose.yaml: `{name or match[0]}`)"
            )
        return match["usual"]

    return _map_texts(yaml.safe_load(text), lambda value: _VARIABLE.sub(known, value))


def _map_texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        kept: Row = {
            str(key): _map_texts(item, change) for key, item in value.items() if not str(key).startswith("x-")
        }
        return kept
    if isinstance(value, list):
        return [_map_texts(item, change) for item in value]
    if isinstance(value, str):
        return change(value)
    return value
