# SPDX-License-Identifier: Apache-2.0
"""Task folders of Terminal-Bench and Harbor as rows, without containers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import ns, rows_of

from newskills.base.benchmark import Asset, Drop
from newskills.base.errors import ConfigError, DataError, UnknownNameError
from newskills.base.records import Row
from newskills.benchmarks.terminal_tasks import group_task_folders, row
from newskills.benchmarks.terminal_tasks.registry import registry_source
from newskills.graders.software.terminal import parse_rewards, single_reward, terminal_task

HARBOR = {
    "task.toml": 'version = "1.0"\n[environment]\nmemory = "2G"\n[verifier]\ntimeout_sec = 9.0\n',
    "instruction.md": "Do it.\n",
    "tests/test.sh": "echo 1 > /logs/verifier/reward.txt\n",
    "environment/Dockerfile": "FROM a AS one\nWORKDIR /x\nFROM b\nWORKDIR /app\nWORKDIR sub\n",
}
TERMINAL_BENCH = {
    "task.yaml": "instruction: Do it.\ndifficulty: hard\nmax_agent_timeout_sec: 900\n",
    "run-tests.sh": "pytest -rA\n",
    "Dockerfile": "FROM a\n",
    "docker-compose.yaml": "services:\n  client:\n    build: {dockerfile: Dockerfile}\n    environment:\n"
    "      TEST_DIR: ${T_BENCH_TEST_DIR}\n      WORD: it\n",
}


def mapped(files: dict[str, str], **changes: str | None) -> Row | Drop:
    """The row of a task called `t`; a change of None leaves the file out."""
    texts = {**files, **{name.replace("__", "/").replace("_dot_", "."): text for name, text in changes.items()}}
    raw: list[Row] = [
        {"_file": f"t/{name}", "asset": Asset(f"t/{name}", text.encode())}
        for name, text in sorted(texts.items())
        if text is not None
    ]
    (task,) = group_task_folders(raw)
    made = row(task, 0)
    assert isinstance(made, dict | Drop)
    return made


def test_harbor() -> None:
    made = mapped(HARBOR)
    assert isinstance(made, dict)
    assert (made["id"], made["problem_statement"], made["task_format"]) == ("t", "Do it.", "harbor")
    assert (made["container_repo_dir"], made["memory_mb"], made["test_timeout"]) == ("/app/sub", 2048, 9.0)
    assert (made["build"], made["offline"]) == ("environment", False)
    assert made["image"].startswith("localhost/newskills-task:")
    ready = mapped(HARBOR, task_dot_toml='[environment]\ndocker_image = "a/b:1"\nallow_internet = false\n')
    assert isinstance(ready, dict)
    assert (ready["image"], ready["build"], ready["offline"]) == ("a/b:1", "", True)
    assert not any("environment/" in asset.name for asset in ready["task_files"])


def test_phases_of_harbor() -> None:
    """The package `harbor` 0.26.0 resolves the same networks of these files (`trial/network_policy.py`)."""
    closed = {
        '[agent]\nnetwork_mode = "no-network"\n': ["agent"],
        '[environment]\nnetwork_mode = "no-network"\n[agent]\nnetwork_mode = "public"\n': ["start", "tests"],
        '[environment]\nallow_internet = false\n[verifier]\nnetwork_mode = "public"\n': ["start", "agent"],
        '[environment]\nnetwork_mode = "no-network"\n': [],
        "": [],
    }
    for text, phases in closed.items():
        made = mapped(HARBOR, task_dot_toml=text)
        assert isinstance(made, dict)
        assert made["phases"].get("closed", []) == phases, text
        assert made["offline"] is (text == '[environment]\nnetwork_mode = "no-network"\n')
    text = (
        'schema_version = "1.4"\n[environment]\ncpus = 1.5\nstorage_mb = 20480\nbuild_timeout_sec = 9000\n'
        '[environment.env]\nWORD = "${WORD:-it}"\nPLAIN = "a$b"\n[environment.healthcheck]\ncommand = "true"\n'
        '[agent]\nuser = 1000\n[verifier]\nuser = "root"\n'
    )
    made = mapped(HARBOR, task_dot_toml=text, instruction_dot_md="<!-- harbor-canary GUID -->\n\nDo it.\n")
    assert isinstance(made, dict)
    assert made["problem_statement"] == "Do it."
    assert (made["cpus"], made["disk_mb"], made["build_timeout"]) == (1.5, 20480, 9000.0)
    assert made["variables"] == {"WORD": "it", "PLAIN": "a$b"}
    assert (made["phases"]["agent_user"], made["phases"]["test_user"]) == ("1000", "root")
    assert made["phases"]["health"]["command"] == "true"


def test_tests_in_a_container_of_their_own() -> None:
    text = (
        'artifacts = ["/app/out", {source = "/data", exclude = ["*.tmp"]}]\n[environment]\nmemory_mb = 512\n'
        '[verifier]\nenvironment_mode = "separate"\n[[verifier.collect]]\ncommand = "dump"\n'
    )
    same = mapped(HARBOR, task_dot_toml=text)
    assert isinstance(same, dict)
    phases = same["phases"]
    assert [item["source"] for item in phases["artifacts"]] == ["/logs/artifacts", "/app/out", "/data"]
    assert phases["collect"][0]["command"] == "dump"
    assert phases["container"]["image"] == same["image"]
    assert (phases["container"]["build"], phases["container"]["memory_mb"]) == ("environment", 512)
    built = mapped(HARBOR, task_dot_toml=text, tests__Dockerfile="FROM c\nWORKDIR /t\n", tests__test_dot_sh=None)
    assert isinstance(built, dict)
    own = built["phases"]["container"]
    assert (own["build"], own["bundled"], own["workdir"]) == ("tests", True, "/t")
    assert own["image"] != built["image"]
    closed = '[verifier.environment]\ndocker_image = "t:1"\nnetwork_mode = "no-network"\n'
    ready = mapped(HARBOR, task_dot_toml=closed)
    assert isinstance(ready, dict)
    own = ready["phases"]["container"]
    assert (own["image"], own["bundled"], own["closed"], ready["offline"]) == ("t:1", True, True, False)


def test_an_image_is_named_by_what_it_is_built_of() -> None:
    one, same, other = (
        mapped(HARBOR, environment__Dockerfile=text)
        for text in (HARBOR["environment/Dockerfile"], HARBOR["environment/Dockerfile"], "FROM c\n")
    )
    assert isinstance(one, dict)
    assert isinstance(same, dict)
    assert isinstance(other, dict)
    assert one["image"] == same["image"] != other["image"]


def test_terminal_bench() -> None:
    made = mapped(TERMINAL_BENCH)
    assert isinstance(made, dict)
    assert made["variables"] == {"TEST_DIR": "/tests", "WORD": "it"}
    assert (made["agent_timeout"], made["test_timeout"]) == (900.0, 60.0)
    assert (made["subset_for_metrics"], made["build"], made["container_repo_dir"]) == ("hard", ".", "")


@pytest.mark.parametrize(
    ("files", "changes", "reason"),
    [
        *(
            (HARBOR, {"task_dot_toml": text}, reason)
            for text, reason in (
                ("[agent]\nnew_field = 1\n", "has the field `agent.new_field`, which is not understood"),
                ("further = 1\n", "has the field `further`, which is not understood"),
                ("[verifier.environment]\nx = 1\n", "the field `verifier.environment.x`, which is not understood"),
                (
                    'schema_version = "1.5"\n[agent]\nx = 1\n',
                    "its schema is 1.5, and newskills reads those up to 1.4",
                ),
                ('version = "2.0"\n', "its schema is 2.0"),
                ('[environment]\nallowed_hosts = ["a.b"]\n', "`environment.allowed_hosts` needs"),
                (
                    '[agent]\nnetwork_mode = "allowlist"\nallowed_hosts = ["http://a"]\n',
                    "`http://a`, which is no host",
                ),
                (
                    '[verifier.environment]\nnetwork_mode = "allowlist"\nallowed_hosts = ["a.b"]\n',
                    "in a container of their own, have the network in part",
                ),
                (
                    '[[environment.mcp_servers]]\nname = "a"\nurl = "http://a"\nheaders = {A = "b"}\n',
                    "its MCP servers need headers (`environment.mcp_servers.headers`)",
                ),
                ('[environment.tpu]\ntype = "v4"\ntopology = "2x2"\n', "TPUs (`environment.tpu`)"),
                ('[environment]\nskills_dir = "/s"\n', "skills for agents (`environment.skills_dir`)"),
                (
                    '[[steps]]\nname = "one"\n[steps.verifier]\nenvironment_mode = "separate"\n',
                    "its step one has tests in a container of their own",
                ),
                ('[verifier.env]\nKEY = "${KEY}"\n', "variables of the machine (`verifier.env.KEY`)"),
                ('[[verifier.collect]]\ncommand = "a"\nservice = "db"\n', "`verifier.collect.service` is db"),
                ('artifacts = ["a.txt"]\n[verifier]\nenvironment_mode = "separate"\n', "no absolute path"),
            )
        ),
        (HARBOR, {"environment__Dockerfile": None}, "neither an image nor a Dockerfile"),
        (TERMINAL_BENCH, {"task_dot_yaml": "instruction: x\nparser_name: swebench\n"}, "not of pytest"),
        (
            TERMINAL_BENCH,
            {"docker-compose_dot_yaml": "services: {client: {volumes: ['/:/host']}}"},
            "it mounts folders of the machine",
        ),
        (TERMINAL_BENCH, {"docker-compose_dot_yaml": "services: {client: {privileged: true}}"}, "rights of the"),
    ],
)
def test_tasks_that_need_more_are_left_out(files: dict[str, str], changes: dict[str, Any], reason: str) -> None:
    made = mapped(files, **changes)
    assert isinstance(made, Drop)
    assert reason in made.reason


@pytest.mark.parametrize(
    ("files", "changes", "message"),
    [
        (HARBOR, {"tests__test_dot_sh": None}, r"Task t has no tests/test\.sh"),
        (HARBOR, {"instruction_dot_md": None}, r"Task t has no instruction\.md"),
        (HARBOR, {"task_dot_toml": "[environment"}, r"t/task\.toml cannot be read"),
        (HARBOR, {"task_dot_toml": "[verifier]\ntimeout_sec = 'x'\n"}, r"t/task\.toml: .*timeout_sec"),
        (TERMINAL_BENCH, {"run-tests_dot_sh": None}, r"Task t has no run-tests\.sh"),
        (TERMINAL_BENCH, {"task_dot_yaml": "difficulty: easy\n"}, r"t/task\.yaml: .*instruction"),
        (TERMINAL_BENCH, {"docker-compose_dot_yaml": "services: 3"}, r"t/docker-compose\.yaml cannot be read"),
    ],
)
def test_tasks_that_make_no_sense_are_named(files: dict[str, str], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        mapped(files, **changes)


def test_a_row_whose_files_are_gone_is_named(tmp_path: Path) -> None:
    made = mapped(HARBOR)
    assert isinstance(made, dict)
    with pytest.raises(DataError, match="Task t has no tests"):
        terminal_task({**made, "task_file": "assets/test/t/task.toml"}, tmp_path)


@pytest.mark.parametrize(
    ("text", "reward"),
    [
        ("1\n", 1.0),
        ("0.25", 0.25),
        ('{"a": 1, "b": 0}', 0.5),
        ("", None),
        ("Infinity", None),
        ('{"reward": "1"}', None),
    ],
)
def test_rewards(text: str, reward: float | None) -> None:
    assert single_reward(parse_rewards(text)) == reward


def registry(folder: Path, **tasks: str | None) -> str:
    """A registry with the data set `mine@1.0`; path → address of its repository."""
    entries = [
        {"name": path, "path": path.replace("__", "/"), "git_url": address, "git_commit_id": "c0ffee"}
        for path, address in tasks.items()
    ]
    file = folder / "registry.json"
    file.write_text(json.dumps([{"name": "mine", "version": "1.0", "description": "", "tasks": entries}]))
    return str(file)


def test_tasks_of_a_registry(tmp_path: Path) -> None:
    for name, text in HARBOR.items():
        for task in ("one", "two", "other"):
            path = tmp_path / "sets" / "mine" / task / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    file = registry(tmp_path, sets__mine__one=None, sets__mine__two=None)
    env = {"NEWSKILLS_DATA_DIR": str(tmp_path / "data")}
    done = ns("ns prepare_data terminal-bench-2", f"--tasks={file}#mine", cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    rows = rows_of(next((tmp_path / "data").glob("terminal-bench-2*/test.jsonl")))
    assert [row["id"] for row in rows] == ["one", "two"]


def test_tasks_of_a_registry_in_a_repository(tmp_path: Path) -> None:
    there = "https://github.com/owner/tasks.git"
    source, depth = registry_source(registry(tmp_path, sets__a=there, sets__b=there) + "#mine@1.0")
    assert (source.github, source.revision, source.members, depth) == (
        *("owner/tasks", "c0ffee", "{sets/a,sets/b}/*"),
        2,
    )
    with pytest.raises(UnknownNameError, match=r"mine@1\.0"):
        registry_source(registry(tmp_path, a=there) + "#yours")
    with pytest.raises(ConfigError, match="several repositories"):
        registry_source(registry(tmp_path, a=there, b="https://github.com/owner/others") + "#mine")
    with pytest.raises(ConfigError, match="reads repositories of GitHub"):
        registry_source(registry(tmp_path, a="https://gitlab.com/a/b") + "#mine")
    (tmp_path / "registry.json").write_text("{}")
    with pytest.raises(DataError, match="no registry of Harbor"):
        registry_source(f"{tmp_path}/registry.json#mine")
