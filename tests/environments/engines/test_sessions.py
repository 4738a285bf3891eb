# SPDX-License-Identifier: Apache-2.0
"""Sessions of the sandbox as environments of agents: the same protocol as containers, without an image."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import ns, rows_of
from tests.environments.images import FLOOD_MB
from tests.environments.small_tasks import prepared_small_tasks
from tests.environments.tasks import turns_of
from tests.launch.needs import lacking

from newskills.base.environment import AgentEnvironment, EnvironmentSpec
from newskills.base.errors import DataError
from newskills.environments.config import EnvironmentConfig
from newskills.run.engine.build import RunBuilder
from newskills_sandbox.probes import run_probes, strongest_level

SOON = 60.0
TASK = """
from newskills.benchmarks.agent_tasks import task_set

BENCHMARK = task_set("bugs", {folder!r})
"""


@pytest.fixture(autouse=True)
def isolated() -> None:
    """Sessions need name spaces (CI: NEWSKILLS_TEST_CONTAINERS=1)."""
    if strongest_level(run_probes()) != "a":
        lacking("CONTAINERS", "this machine does not give sessions folders of their own")


@asynccontextmanager
async def one(spec: EnvironmentSpec, **settings: Any) -> AsyncIterator[AgentEnvironment]:
    config = EnvironmentConfig(engine="sandbox", at_once=2, **{"memory_mb": 512, "disk_mb": 64, **settings})
    environments = RunBuilder(os.environ).environments(config)
    try:
        yield await environments.start(spec)
    finally:
        await environments.close()


def test_files_stay_and_go_both_ways(tmp_path: Path) -> None:
    (tmp_path / "in" / "sub").mkdir(parents=True)
    (tmp_path / "in" / "sub" / "a.txt").write_text("héllo\n")
    (tmp_path / "in" / "blob").write_bytes(os.urandom(7_000_000))
    spec = EnvironmentSpec(
        image="", trees={str(tmp_path / "in"): "/testbed"}, workdir="/testbed", variables={"WORD": "it's"}
    )

    async def work() -> None:
        async with one(spec) as environment:
            first = await environment.execute(
                'pwd; cat sub/a.txt; echo "$WORD" >> sub/a.txt; exit 3', timeout=SOON
            )
            assert (first.status, first.exit_code) == ("completed", 3)
            assert first.output.decode() == "/sandbox/testbed\nhéllo\n"
            second = await environment.execute("cat; cat sub/a.txt 1>&2", timeout=SOON, stdin=b"given ")
            assert second.output.decode() == "given héllo\nit's\n"
            await environment.copy_out("/testbed", tmp_path / "out", max_bytes=10_000_000)
            assert (tmp_path / "out/blob").read_bytes() == (tmp_path / "in/blob").read_bytes()
            with pytest.raises(DataError, match="more than"):
                await environment.copy_out("/testbed", tmp_path / "less", max_bytes=1000)

    asyncio.run(work())


def test_folders_are_seen_read_only_and_programs_may_map_more_than_they_use(tmp_path: Path) -> None:
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "a.txt").write_text("shown\n")
    maps = "python3 -c 'import mmap; mmap.mmap(-1, 1 << 40, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)'"
    plain = EnvironmentSpec(image="", workdir="/w")
    shown = EnvironmentSpec(image="", workdir="/w", mounts={str(tmp_path / "program"): "/newskills-program"})
    config = EnvironmentConfig(engine="sandbox", at_once=2, memory_mb=512, disk_mb=64)

    async def work() -> None:
        environments = RunBuilder(os.environ).environments(config)
        try:
            with_program, without = await environments.start(shown), await environments.start(plain)
            listed = await with_program.execute("cat /newskills-program/a.txt", timeout=SOON)
            assert listed.output == b"shown\n"
            spoiled = await with_program.execute("echo x > /newskills-program/a.txt", timeout=SOON)
            assert spoiled.exit_code != 0
            assert (await without.execute("ls /newskills-program", timeout=SOON)).exit_code != 0
            assert (await with_program.execute(maps, timeout=SOON)).exit_code == 0
            assert (await without.execute(maps, timeout=SOON)).exit_code != 0
        finally:
            await environments.close()

    asyncio.run(work())
    assert (tmp_path / "program" / "a.txt").read_text() == "shown\n"


@pytest.mark.parametrize(
    ("command", "status"),
    [
        ("sleep 600", "timeout"),
        ("trap '' TERM INT HUP; while :; do sleep 1; done", "timeout"),
        ("f() { f | f & }; f; sleep 600", "timeout"),
        ("kill -9 -1; sleep 600", None),
        ("dd if=/dev/zero of=big bs=1M count=1000; rm -f big", "completed"),
        ("rm -rf /bin /usr; true", "completed"),
        (f"yes 0123456789 | head -c {FLOOD_MB}000000", "completed"),
    ],
)
def test_hostile_commands_cost_only_themselves(command: str, status: str | None) -> None:
    async def work() -> None:
        async with one(EnvironmentSpec(image="", workdir="/w"), processes=64) as environment:
            await environment.execute("echo kept > kept", timeout=SOON)
            timeout = 3.0 if status != "completed" else 300.0
            result = await environment.execute(command, timeout=timeout, max_output=1000)
            assert status is None or result.status == status
            assert len(result.output) < 1200
            after = await environment.execute("cat kept; pgrep -c sleep", timeout=SOON)
            assert after.output == b"kept\n0\n"

    asyncio.run(work())


def test_an_agent_resolves_a_task_without_an_image(tmp_path: Path, fake_server: Any) -> None:
    task = tmp_path / "tasks" / "fix"
    for name, text in (
        ("task.yaml", "image: none\ntest_command: test $(sh calc.sh) = 4 && test -f tests/mark\n"),
        ("issue.md", "calc.sh prints 5; it should print 4."),
        ("repository/calc.sh", "echo 5\n"),
        ("tests/tests/mark", ""),
    ):
        (task / name).parent.mkdir(parents=True, exist_ok=True)
        (task / name).write_text(text)
    (tmp_path / "bugs.py").write_text(TASK.format(folder=str(tmp_path / "tasks")))
    env = {"NEWSKILLS_DATA_DIR": str(tmp_path / "data")}
    assert ns("ns prepare_data ./bugs.py", cwd=tmp_path, env=env).returncode == 0
    commands = ("echo 'echo 4' > calc.sh", "echo SUBMIT_CHANGES")
    server = fake_server(answer=lambda body: f"```bash\n{commands[min(turns_of(body), 1)]}\n```")
    line = (
        "ns eval --benchmarks=./bugs.py ++agent=bash --server_type=vllm --model=fake --output_dir=results "
        f"++environment.engine=sandbox --server_address={server.base_url}"
    )
    done = ns(line, cwd=tmp_path, env=env, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    (record,) = rows_of(tmp_path / "results/eval-results/bugs/output.jsonl")
    assert (record["outcome"], record["why"]) == ("correct", "all tests pass"), record.get("test_output")
    assert "/sandbox/testbed" in record["conversation"][1]["content"]


def test_tasks_are_validated_without_an_image(tmp_path: Path) -> None:
    env = prepared_small_tasks(tmp_path, 2, "none")
    line = "ns validate ./small.py ++environment.engine=sandbox --json found.json"
    done = ns(line, cwd=tmp_path, env=env, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    shares = json.loads((tmp_path / "found.json").read_text())[0]["shares"]
    assert (shares["gold"]["right"], shares["gold"]["of"], shares["blank"]["right"]) == (2, 2, 0)
    other = ns("ns validate ./small.py ++environment.engin=sandbox", cwd=tmp_path, env=env)
    assert "environment.engine" in other.stderr
