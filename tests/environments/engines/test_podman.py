# SPDX-License-Identifier: Apache-2.0
"""Real containers: what commands do, what they may not do, and that nothing of them stays."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.environments.images import ENGINE, FLOOD_MB, own_containers

from newskills.base.environment import AgentEnvironment, EnvironmentSpec
from newskills.base.errors import DataError, EnvironmentFailedError
from newskills.environments.config import EnvironmentConfig
from newskills.environments.containers import ContainerPool, remove_left_over
from newskills.environments.engines import find_engine

SOON = 20.0
"""Deadline for commands that end at once."""


@asynccontextmanager
async def one(image: str, **settings: object) -> AsyncIterator[AgentEnvironment]:
    config = EnvironmentConfig(engine=ENGINE, **{"memory_mb": 512, "processes": 128, **settings})
    containers = ContainerPool(config, os.environ)
    try:
        yield await containers.start(EnvironmentSpec(image=image))
    finally:
        await containers.close()
        assert own_containers() == []


def test_files_and_exit_codes_stay_from_command_to_command(
    agent_image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    (tmp_path / "in" / "sub").mkdir(parents=True)
    (tmp_path / "in" / "sub" / "a.txt").write_text("héllo\n")

    async def work() -> None:
        async with one(agent_image) as environment:
            await environment.copy_in(tmp_path / "in", "/task")
            first = await environment.execute(
                "cd /task/sub && cat a.txt && echo more >> a.txt; exit 3", timeout=SOON
            )
            assert (first.status, first.exit_code, first.output) == ("completed", 3, "héllo\n".encode())
            second = await environment.execute("cat; cat /task/sub/a.txt 1>&2", timeout=SOON, stdin=b"given ")
            assert (second.exit_code, second.output) == (0, "given héllo\nmore\n".encode())
            await environment.copy_out("/task", tmp_path / "out", max_bytes=100_000)
            assert (tmp_path / "out" / "sub" / "a.txt").read_text() == "héllo\nmore\n"

    asyncio.run(work())
    assert list(scratch.iterdir()) == []


ENDLESS = {
    "ignores signals, and leaves its session": "trap '' TERM INT HUP; setsid bash -c 'trap \"\" TERM; sleep 600' & "
    "while :; do sleep 1; done",
    "forks without end": "f() { f | f & }; f; sleep 600",
}


def test_deadlines_hold_and_the_environment_goes_on(agent_image: str) -> None:
    async def work() -> None:
        async with one(agent_image) as environment:
            await environment.execute("echo kept > /kept", timeout=SOON)
            for case, command in ENDLESS.items():
                result = await environment.execute(command, timeout=3.0)
                assert (result.status, result.exit_code) == ("timeout", None), case
                after = await environment.execute("cat /kept; ps ax | grep -c '[s]leep 600'", timeout=120.0)
                assert after.output == b"kept\n0\n", case

    asyncio.run(work())


@pytest.mark.nightly
def test_the_disk_is_bounded_for_one_command_and_for_many_short_ones(agent_image: str) -> None:
    async def work() -> None:
        async with one(agent_image, disk_mb=128) as environment:
            full = await environment.execute(
                "dd if=/dev/zero of=/big bs=1M count=100000; sleep 600", timeout=300.0
            )
            assert (full.status, full.exit_code) == ("disk_full", None)
            assert (await environment.execute("rm /big; ls /big", timeout=300.0)).exit_code == 2
            for number in range(50):
                write = f"dd if=/dev/zero of=/part-{number} bs=1M count=40"
                if (await environment.execute(write, timeout=300.0)).status == "disk_full":
                    break
            assert 3 <= number < 49

    asyncio.run(work())


def test_a_flood_of_output_is_cut_in_the_middle(agent_image: str) -> None:
    async def work() -> None:
        async with one(agent_image) as environment:
            command = (
                f"echo first; yes 0123456789 | dd bs=1M count={FLOOD_MB} iflag=fullblock 2>/dev/null; echo last"
            )
            result = await environment.execute(command, timeout=300.0, max_output=1000)
            assert len(result.output) == 1000
            assert result.output.startswith(b"first\n")
            assert result.output.endswith(b"last\n")
            assert result.omitted > (FLOOD_MB << 20) - 1000

    asyncio.run(work())


def test_memory_is_bounded_and_there_is_no_network(agent_image: str) -> None:
    look = "cat /proc/net/dev | tail -n +3 | sed 's/:.*//' | tr -d ' '"

    async def work() -> None:
        async with one(agent_image, memory_mb=128) as environment:
            assert (await environment.execute(look, timeout=SOON)).output == b"lo\n"
            result = await environment.execute("python3 -S -c 'x = bytearray(1 << 30); print(9)'", timeout=120.0)
            assert result.exit_code not in (0, None)
            assert b"9" not in result.output
            assert (await environment.execute("echo here", timeout=SOON)).output == b"here\n"

    asyncio.run(work())


def test_commands_cannot_reach_the_process_that_starts_them_and_kill_only_themselves(agent_image: str) -> None:
    forged = "printf 'E\\0\\0\\0\\1\\0'"
    reach = f"{forged} > /proc/$PPID/fd/1; {forged} > /proc/1/fd/1; {forged} > /proc/1/fd/4; ls -l /proc/1/fd"

    async def work() -> None:
        async with one(agent_image) as environment:
            reached = await environment.execute(f"{reach}; echo kept > /kept; exit 5", timeout=SOON)
            assert reached.exit_code == 5
            assert reached.output.count(b"Permission denied") == 1
            assert b"pipe" not in reached.output
            assert reached.output.count(b"-> /dev/null") == 3
            for kill in ("kill -9 $PPID", "kill -9 -1"):
                killed = await environment.execute(f"{kill}; sleep 600", timeout=300.0)
                assert (killed.status, killed.exit_code) == ("completed", 137)
                assert (await environment.execute("cat /kept", timeout=SOON)).output == b"kept\n"

    asyncio.run(work())


def test_an_image_without_python_runs_the_same_commands(agent_image: str, tmp_path: Path) -> None:
    (tmp_path / "none").touch()
    spec = EnvironmentSpec(image=agent_image, mounts={str(tmp_path / "none"): "/bin/python3"})

    async def work() -> None:
        containers = ContainerPool(EnvironmentConfig(engine=ENGINE), os.environ)
        try:
            environment = await containers.start(spec)
            commands = ["echo kept > /kept; echo $PPID"] * 6
            unread = await asyncio.gather(
                *(environment.execute(command, timeout=SOON, stdin=b"given ") for command in commands)
            )
            assert [(result.exit_code, result.output) for result in unread] == [(0, b"0\n")] * 6
            result = await environment.execute("cat; cat /kept; ls /tmp", timeout=SOON, stdin=b"given ")
            assert (result.exit_code, result.output) == (0, b"given kept\n")
        finally:
            await containers.close()

    asyncio.run(work())


def test_commands_that_cannot_run_are_answered(agent_image: str) -> None:
    async def work() -> None:
        async with one(agent_image) as environment:
            for command in ("echo '" + "x" * 200_000 + "'", "echo a\0b"):
                result = await environment.execute(command, timeout=SOON)
                assert result.exit_code == 126
                assert b"at most 100,000 bytes" in result.output
            assert (await environment.execute("rm -rf /bin", timeout=SOON)).exit_code == 0
            after = await environment.execute("echo hi", timeout=SOON)
            assert after.status == "completed"
            assert after.exit_code != 0

    asyncio.run(work())


def test_what_is_copied_out_is_not_trusted(agent_image: str, tmp_path: Path) -> None:
    make = "mkdir /a /b; ln -s /etc/passwd /a/x; dd if=/dev/zero of=/b/big bs=1M count=2 2>/dev/null"

    async def work() -> None:
        async with one(agent_image) as environment:
            await environment.execute(make, timeout=SOON)
            for folder, why in (("/a", "cannot be copied"), ("/b", "more than 1,000,000 bytes")):
                with pytest.raises(DataError, match=why):
                    await environment.copy_out(folder, tmp_path / "o", max_bytes=1_000_000)

    asyncio.run(work())


def test_an_image_that_is_not_there_is_named(agent_image: str) -> None:
    async def work() -> None:
        containers = ContainerPool(EnvironmentConfig(engine=ENGINE), os.environ)
        await containers.start(EnvironmentSpec(image="localhost/newskills-no-such-image:1"))

    with pytest.raises(EnvironmentFailedError, match=rf"newskills-no-such-image:1.*{ENGINE} build"):
        asyncio.run(work())
    assert own_containers() == []


KILLED = """
import asyncio, os, sys
from newskills.base.environment import EnvironmentSpec
from newskills.environments.config import EnvironmentConfig
from newskills.environments.containers import ContainerPool

async def main():
    containers = ContainerPool(EnvironmentConfig(engine=sys.argv[2]), os.environ)
    environment = await containers.start(EnvironmentSpec(image=sys.argv[1]))
    print(environment.name, flush=True)
    await environment.execute("sleep 600", timeout=600)

asyncio.run(main())
"""


def test_containers_of_a_killed_process_are_removed_at_the_next_start(agent_image: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, agent_image, ENGINE], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        name = process.stdout.readline().strip()
        engine = find_engine(EnvironmentConfig(engine=ENGINE), os.environ)
        assert name not in asyncio.run(remove_left_over(engine, os.environ))
        process.kill()
    assert name in asyncio.run(remove_left_over(engine, os.environ))


@pytest.mark.nightly
def test_so_many_at_once_as_are_allowed(agent_image: str) -> None:
    async def work() -> int:
        containers = ContainerPool(EnvironmentConfig(engine=ENGINE, at_once=2), os.environ)
        spec = EnvironmentSpec(image=agent_image)
        most = 0

        async def use() -> None:
            nonlocal most
            environment = await containers.start(spec)
            most = max(most, len(own_containers()))
            await environment.stop()

        users: list[Callable[[], Awaitable[None]]] = [use] * 4
        await asyncio.gather(*(user() for user in users))
        return most

    assert 1 <= asyncio.run(work()) <= 2
    assert own_containers() == []
