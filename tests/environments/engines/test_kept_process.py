# SPDX-License-Identifier: Apache-2.0
"""The process that starts the commands of a container: here on this machine, without the rights that containers do not
have either."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from newskills.base.environment import MIB
from newskills.environments.engines.engine import INSIDE
from newskills.environments.kept import KILLED, KeptProcess, words_of_kept
from newskills.environments.programs import EndedProgram

LESS = ("setpriv", "--bounding-set=-all") if os.geteuid() == 0 else ("env",)
"""Starts a program that may not trace others."""
SOON = 120.0


@contextlib.asynccontextmanager
async def kept(*more: str) -> AsyncIterator[KeptProcess]:
    process = KeptProcess([*LESS, *(more or ("env",)), *words_of_kept()], os.environ)
    try:
        assert await process.begin() == "ready"
        yield process
    finally:
        process.close()


async def done(process: KeptProcess, command: str, **more: object) -> EndedProgram | None:
    settings: dict[str, Any] = {"folder": "/", "timeout": SOON, "stdin": b"", "max_output": MIB, **more}
    return await process.run(command.encode(), **settings)


async def ended(process: KeptProcess, command: str, **more: object) -> tuple[int | None, bytes]:
    result = await done(process, command, **more)
    assert result is not None
    return result.exit_code, result.output


COMMANDS = (
    ("echo a; echo b >&2; exit 3", b""),
    ("kill -9 0", b""),
    ("kill $$", b""),
    ("env | sort; pwd; umask; ulimit -a; grep Sig[BI] /proc/self/status", b""),
    ("sleep 1 > /dev/null 2>&1 & cd /tmp; export A=changed", b""),
    ("for number in 0 1 2; do stat -L -c %F /proc/self/fd/$number; done; ls /proc/self/fd", b""),
    ("cat; exit 300", b"given"),
    ("no-such-program", b""),
)


def test_commands_end_as_those_that_the_engine_starts() -> None:
    async def work() -> None:
        async with kept() as process:
            for command, given in COMMANDS:
                plain = subprocess.Popen(
                    [*LESS, *INSIDE, command],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    env=dict(os.environ),
                    cwd="/",
                    start_new_session=True,
                )
                output, _ = plain.communicate(given)
                code = plain.returncode if plain.returncode >= 0 else 128 - plain.returncode
                assert await ended(process, command, stdin=given) == (code, output), command

    asyncio.run(work())


def test_it_is_one_process_and_each_command_has_a_session_of_its_own() -> None:
    async def work() -> None:
        async with kept() as process:
            shown = [(await ended(process, "ps -o ppid=,pgid=,sid=,pid= -p $$"))[1].split() for _ in range(2)]
            assert shown[0][0] == shown[1][0]
            for _, group, session, pid in shown:
                assert group == session == pid

    asyncio.run(work())


def test_commands_cannot_reach_it() -> None:
    reach = (
        "cat /proc/$PPID/environ; dd if=/proc/$PPID/mem bs=1 count=1; cat /proc/$PPID/fd/0; "
        "printf 'E\\0\\0\\0\\1\\0' > /proc/$PPID/fd/1; printf 'E\\0\\0\\0\\1\\0'; pgrep -P 1 python >/dev/null; exit 5"
    )

    async def work() -> None:
        async with kept() as process:
            code, output = await ended(process, reach)
            assert code == 5
            assert output.count(b"Permission denied") == 4
            assert output.endswith(b"E\0\0\0\1\0")
            named = await ended(process, "cat /proc/$PPID/comm; tr -d '\\0' < /proc/$PPID/cmdline")
            assert named == (0, b"newskills-steps\n")

    asyncio.run(work())


def test_one_that_commands_could_reach_is_not_kept() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may trace what others have closed")

    async def work() -> None:
        process = KeptProcess(["env", *words_of_kept()], os.environ)
        assert await process.begin() == "ended"
        process.close()

    asyncio.run(work())


def test_what_a_command_leaves_behind_writes_into_no_other_output(tmp_path: Path) -> None:
    late = f"(until [ -e {tmp_path}/go ]; do sleep 0.05; done; echo late; echo $? > {tmp_path}/wrote) & echo first"

    async def work() -> None:
        async with kept() as process:
            assert await ended(process, late) == (0, b"first\n")
            wait = f"touch {tmp_path}/go; sleep 0.3; echo second"
            assert await ended(process, wait) == (0, b"second\n")

    asyncio.run(work())
    assert not (tmp_path / "wrote").exists()


def test_a_command_that_kills_it_has_been_killed() -> None:
    async def work() -> None:
        async with kept() as process:
            result = await done(process, "kill -9 $PPID; sleep 600")
            assert result is not None
            assert result.exit_code == KILLED
            assert not process.is_open
            assert await done(process, "echo after") is None

    asyncio.run(work())


def test_a_deadline_ends_it_with_its_command() -> None:
    async def work() -> None:
        async with kept() as process:
            pid = (await ended(process, "echo $PPID"))[1].decode().strip()
            result = await done(process, "echo begun; exec sleep 600", timeout=1.0)
            assert result is not None
            assert (result.exit_code, result.output) == (None, b"begun\n")
            assert not process.is_open
            assert not Path(f"/proc/{pid}/task/{pid}/children").exists()

    asyncio.run(work())


def test_input_and_output_of_any_length() -> None:
    given = b"0123456789" * 100_000

    async def work() -> None:
        async with kept() as process:
            result = await done(process, "cat; echo end", stdin=given, max_output=1000)
            assert result is not None
            assert (len(result.output), result.omitted) == (1000, len(given) + 4 - 1000)
            assert result.output.endswith(b"end\n")
            assert await ended(process, "exec 0<&-; echo unread", stdin=given) == (0, b"unread\n")

    asyncio.run(work())


def test_what_cannot_begin_is_left_to_the_engine(tmp_path: Path) -> None:
    (tmp_path / "sh").symlink_to(shutil.which("sh") or "/bin/sh")
    (tmp_path / "python3").symlink_to(sys.executable)
    (tmp_path / "here").mkdir()

    async def work() -> None:
        async with kept("env", f"PATH={tmp_path}") as process:
            assert await ended(process, "echo here", folder=str(tmp_path / "here")) == (0, b"here\n")
            assert await done(process, "echo here", folder=str(tmp_path / "gone")) is None
            (tmp_path / "sh").unlink()
            assert await done(process, "echo here") is None
            assert process.is_open

    asyncio.run(work())


def test_without_python_nothing_is_kept(tmp_path: Path) -> None:
    async def work() -> None:
        for program, beginning in (("true", "ended"), ("echo", "unfit")):
            process = KeptProcess(
                [*LESS, "env", f"PATH={tmp_path}", f"/bin/{program}", *words_of_kept()], os.environ
            )
            assert await process.begin() == beginning
            process.close()

    asyncio.run(work())
