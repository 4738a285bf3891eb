# SPDX-License-Identifier: Apache-2.0
"""The real enroot, where it is installed: it has no package in most distributions."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from tests.environments.images import PROGRAMS as AGENTS
from tests.launch.containers import PROGRAMS, write_archive

from newskills.base.environment import EnvironmentSpec
from newskills.environments.config import EnvironmentConfig
from newskills.environments.containers import ContainerPool


@pytest.fixture
def pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ContainerPool:
    if shutil.which("enroot") is None or shutil.which("mksquashfs") is None:
        pytest.skip("no enroot here: https://github.com/NVIDIA/enroot")
    for variable in ("XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        (tmp_path / variable).mkdir()
        monkeypatch.setenv(variable, str(tmp_path / variable))
    return ContainerPool(EnvironmentConfig(engine="enroot"), dict(os.environ))


@pytest.fixture
def image(tmp_path: Path) -> str:
    write_archive(tmp_path / "image.tar", (*PROGRAMS, *AGENTS))
    with tarfile.open(tmp_path / "image.tar") as packed:
        packed.extractall(tmp_path / "tree", filter="tar")
    words = ["mksquashfs", str(tmp_path / "tree"), str(tmp_path / "image.sqsh"), "-quiet", "-no-progress"]
    subprocess.run(words, check=True, capture_output=True)
    return str(tmp_path / "image.sqsh")


def test_commands_share_a_container_that_is_gone_afterwards(
    pool: ContainerPool, image: str, tmp_path: Path
) -> None:
    (tmp_path / "repository").mkdir()
    (tmp_path / "repository" / "a.txt").write_text("hello\n")
    spec = EnvironmentSpec(
        image=image,
        workdir="/testbed",
        variables={"A": "b c"},
        trees={str(tmp_path / "repository"): "/testbed"},
        mounts={str(tmp_path / "repository"): "/seen"},
    )

    async def work() -> None:
        environment = await pool.start(spec)
        try:
            for command, timeout, ending in (
                ('cat a.txt; echo "$A" > /tmp/kept; cat /seen/a.txt', 60.0, ("completed", 0, b"hello\nhello\n")),
                ("cat /tmp/kept; grep -vc lo: /proc/net/dev", 60.0, ("completed", 0, b"b c\n2\n")),
                ("touch /seen/new 2> /dev/null", 60.0, ("completed", 1, b"")),
                ("setsid sleep 600 > /dev/null & sleep 600", 3.0, ("timeout", None, b"")),
                ("ps ax | grep -c '[s]leep 600'; cat /tmp/kept", 60.0, ("completed", 0, b"0\nb c\n")),
                ("kill -9 -1", 60.0, ("completed", 0, b"")),
                ("f() { f | f & }; f; sleep 600", 3.0, ("timeout", None, b"")),
                ("cat /tmp/kept; exit 3", 60.0, ("completed", 3, b"b c\n")),
            ):
                done = await environment.execute(command, timeout=timeout)
                assert (done.status, done.exit_code, done.output) == ending, command
            await environment.copy_out("/testbed", tmp_path / "out", max_bytes=1 << 20)
        finally:
            await environment.stop()
        await pool.close()

    (tmp_path / "out").mkdir()
    asyncio.run(work())
    assert (tmp_path / "out" / "a.txt").read_text() == "hello\n"
    listed = subprocess.run(["enroot", "list"], check=True, capture_output=True, text=True)
    assert listed.stdout == ""
