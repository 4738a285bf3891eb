# SPDX-License-Identifier: Apache-2.0
"""Tasks of several containers: what is read of docker-compose.yaml, and what leaves a task out."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.benchmarks.terminal_tasks.test_terminal_tasks import HARBOR, TERMINAL_BENCH, mapped

from newskills.base.benchmark import Drop
from newskills.base.environment import HealthCheck, ImageBuild, ServiceGroup
from newskills.base.errors import DataError
from newskills.base.records import Row

COMPOSE = """
x-common: &common {logging: {driver: none}}
services:
  main:
    depends_on: {api: {condition: service_healthy}}
    environment: {API: "http://api:${PORT:-80}/$$x"}
    command: ["sh", "-c", "sleep infinity"]
    volumes: ["${HOST_VERIFIER_LOGS_PATH}:${ENV_VERIFIER_LOGS_PATH}", "shared:/shared:ro"]
  api:
    <<: *common
    build: {context: ./api, args: [VERSION=3], target: run}
    command: serve --port "${PORT}"
    container_name: backend
    ports: ["8080:80"]
    healthcheck: {test: curl -f localhost, interval: 1m30s, timeout: 500ms, start_period: 2s}
    depends_on: [db]
  db:
    image: postgres:16
    environment: [POSTGRES_PASSWORD=x, "FLAG="]
    volumes: [./init.sql:/docker-entrypoint-initdb.d/init.sql:ro, "shared:/out"]
    mem_limit: 512m
    shm_size: 1gb
volumes: {shared: }
"""
FILES = {
    **HARBOR,
    "task.toml": 'schema_version = "1.4"\n[environment]\nworkdir = "/work"\n[environment.env]\nPORT = "81"\n',
    "environment/docker-compose.yaml": COMPOSE,
    "environment/api/Dockerfile": "FROM x AS run\n",
    "environment/init.sql": "create table a;\n",
}


def group_of(made: Row | Drop) -> ServiceGroup:
    assert isinstance(made, dict), made
    return msgspec.convert(made["group"], ServiceGroup)


def test_the_services_of_a_harbor_task() -> None:
    made = mapped(FILES)
    services = group_of(made).services
    assert isinstance(made, dict)
    assert [service.name for service in services] == ["db", "api", "main"]
    db, api, main = services
    assert (made["image"], made["build"]) == (main.image, "environment")
    assert made["variables"] == {"PORT": "81", "API": "http://api:81/$x"}
    assert (main.needs, main.volumes, main.command, main.files) == (
        {"api": "healthy"},
        {"shared": "/shared"},
        None,
        {},
    )
    assert api.build == ImageBuild(folder="environment/api", target="run", arguments={"VERSION": "3"})
    assert (api.command, api.aliases) == (["serve", "--port", "81"], ["backend"])
    assert api.health == HealthCheck(
        command="sh -c 'curl -f localhost'", interval_sec=90.0, timeout_sec=0.5, start_period_sec=2.0
    )
    assert db.variables == {"POSTGRES_PASSWORD": "x", "FLAG": ""}
    assert db.files == {"environment/init.sql": "/docker-entrypoint-initdb.d/init.sql"}
    assert (db.volumes, db.memory_mb, db.shared_memory) == ({"shared": "/out"}, 512, "1gb")
    assert {asset.name for asset in made["task_files"]} >= {
        "t/environment/init.sql",
        "t/environment/api/Dockerfile",
    }


def test_an_image_is_shared_by_what_is_built_of_the_same() -> None:
    services = {service.name: service for service in group_of(mapped(FILES)).services}
    other = COMPOSE.replace("VERSION=3", "VERSION=4")
    changed = {
        service.name: service
        for service in group_of(mapped({**FILES, "environment/docker-compose.yaml": other})).services
    }
    assert services["api"].image != changed["api"].image
    alone = mapped({**HARBOR, "environment/Dockerfile": "FROM x AS run\n"})
    again = mapped({**HARBOR, "environment/Dockerfile": "FROM x AS run\n", "instruction.md": "Another task.\n"})
    assert isinstance(alone, dict)
    assert isinstance(again, dict)
    assert alone["image"] == again["image"]


def test_a_file_for_one_container_is_no_group() -> None:
    text = "services: {main: {environment: {A: true}, build: {context: .}, ports: ['80:80']}}\n"
    made = mapped({**HARBOR, "environment/docker-compose.yaml": text})
    assert isinstance(made, dict)
    assert (made.get("group"), made["variables"], made["container_repo_dir"]) == (None, {"A": "true"}, "/app/sub")


def test_the_services_of_a_terminal_bench_task() -> None:
    text = (
        "services:\n  client:\n    build: {dockerfile: Dockerfile}\n    command: [sh, -c, sleep infinity]\n"
        "    image: ${T_BENCH_TASK_DOCKER_CLIENT_IMAGE_NAME}\n"
        "    environment: ['TEST_DIR=${T_BENCH_TEST_DIR}', WORD=it]\n"
        "    container_name: ${T_BENCH_TASK_DOCKER_CLIENT_CONTAINER_NAME}\n    depends_on: [db]\n"
        "    volumes: ['${T_BENCH_TASK_LOGS_PATH}:${T_BENCH_CONTAINER_LOGS_PATH}']\n  db: {image: 'redis:7'}\n"
    )
    made = mapped({**TERMINAL_BENCH, "docker-compose.yaml": text})
    group = group_of(made)
    assert isinstance(made, dict)
    assert ([service.name for service in group.services], group.main) == (["db", "client"], "client")
    assert (made["build"], made["variables"]) == (".", {"TEST_DIR": "/tests", "WORD": "it"})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"privileged": True}, "`services.api.privileged`, which is not understood"),
        ({"network_mode": "host"}, "`services.api.network_mode`, which is not understood"),
        ({"networks": ["back"]}, "services.api has `networks` of its own"),
        ({"volumes": ["/etc:/host"]}, "mounts `/etc`, which is not in the task's folder"),
        ({"volumes": ["../../secret:/x"]}, "mounts `../../secret`, which is not"),
        ({"volumes": ["./init.sql:/x"]}, "mounts `environment/init.sql` in "),
        ({"volumes": ["unnamed:/x"]}, "mounts `unnamed`, which is not"),
        ({"environment": {"KEY": None}}, "variables of the machine"),
        ({"environment": {"KEY": "${KEY}"}}, "variables of the machine (docker-compose.yaml: `KEY`)"),
        ({"environment": {"KEY": "${KEY:?no}"}}, "variables of the machine"),
        ({"build": {"context": "../.."}}, "outside the folder of the task"),
        ({"build": {"context": "./none"}}, "without its Dockerfile"),
        ({"build": {"context": ".", "secrets": ["a"]}}, "`services.api.build.secrets`, which is not understood"),
        ({"healthcheck": None}, "no `healthcheck` for api"),
        ({"healthcheck": {"test": ["CMD", "x"], "interval": "soon"}}, "the time `soon`"),
        ({"depends_on": {"db": {"condition": "service_tired"}}}, "a condition that is not understood"),
    ],
)
def test_a_key_that_is_not_understood_leaves_the_task_out(change: dict[str, Any], reason: str) -> None:
    made = mapped({**FILES, "environment/docker-compose.yaml": _changed("api", change)})
    assert isinstance(made, Drop)
    assert reason in made.reason


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"command": "serve"}, "a `command` that does more than wait"),
        ({"entrypoint": "/start.sh"}, "an `entrypoint`"),
        ({"user": "me"}, "`user` or `shm_size` for main"),
    ],
)
def test_the_agents_container_only_waits(change: dict[str, Any], reason: str) -> None:
    made = mapped({**FILES, "environment/docker-compose.yaml": _changed("main", change)})
    assert isinstance(made, Drop)
    assert reason in made.reason


def test_services_that_make_no_sense_are_named() -> None:
    for change, message in (
        ({"depends_on": ["none"]}, "names 'none', which is no service"),
        ({"depends_on": ["main"]}, "depend on each other"),
    ):
        with pytest.raises(DataError, match=message):
            mapped({**FILES, "environment/docker-compose.yaml": _changed("api", change)})


def _changed(service: str, change: dict[str, Any]) -> str:
    import yaml

    compose = yaml.safe_load(COMPOSE)
    compose["services"][service] |= change
    return str(yaml.safe_dump(compose))
