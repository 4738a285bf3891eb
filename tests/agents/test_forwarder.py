# SPDX-License-Identifier: Apache-2.0
"""Both forwarders: the way from a port of loopback to a unix socket, and the end of the program that runs behind it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from newskills.agents.forwarder import COMPILERS, IN_PYTHON, compiled_forwarder

PATIENCE = 60.0
ASK = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as client:
    client.sendall(b"x" * 3_000_000)
    client.shutdown(socket.SHUT_WR)
    got = b""
    while data := client.recv(1 << 16):
        got += data
print(len(got), sys.stdin.read() == "", flush=True)
"""


@pytest.fixture(params=["compiled", "python"])
def forwarder(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    if request.param == "python":
        return [sys.executable, str(IN_PYTHON)]
    path = compiled_forwarder({**os.environ, "NEWSKILLS_CACHE": str(tmp_path / "cache")})
    if path is None:
        pytest.skip("no C compiler with a static library here: apt-get install gcc libc6-dev")
    return [str(path)]


@pytest.fixture
def echo(tmp_path: Path) -> Iterator[Path]:
    """A unix socket that sends back what it gets, once all has come."""
    path = tmp_path / "s.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                with client:
                    data = b""
                    while piece := client.recv(1 << 16):
                        data += piece
                    client.sendall(data)

        threading.Thread(target=serve, daemon=True).start()
        yield path
        listener.shutdown(socket.SHUT_RDWR)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port: int = held.getsockname()[1]
        return port


def run(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=False)


def test_what_is_sent_arrives_and_comes_back(forwarder: list[str], echo: Path, tmp_path: Path) -> None:
    port = str(free_port())
    done = run([*forwarder, str(echo), port, str(tmp_path / "stop"), sys.executable, "-c", ASK, port])
    assert (done.returncode, done.stdout) == (0, "3000000 True\n"), done.stderr


@pytest.mark.parametrize(
    ("words", "code"), [(["sh", "-c", "exit 7"], 7), (["sh", "-c", "kill -9 $$"], 137), (["/no/such"], 127)]
)
def test_it_ends_as_its_program_does(
    forwarder: list[str], words: list[str], code: int, echo: Path, tmp_path: Path
) -> None:
    done = run([*forwarder, str(echo), str(free_port()), str(tmp_path / "stop"), *words])
    assert done.returncode == code
    assert code != 127 or "/no/such: No such file or directory" in done.stderr


def test_a_port_that_is_taken_is_told_by_its_own_code(forwarder: list[str], echo: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = str(held.getsockname()[1])
        done = run([*forwarder, str(echo), port, str(tmp_path / "stop"), "touch", str(tmp_path / "ran")])
    assert done.returncode == 98
    assert not (tmp_path / "ran").exists()


def test_a_file_ends_the_program_with_what_it_has_started(
    forwarder: list[str], echo: Path, tmp_path: Path
) -> None:
    line = f"sleep 600 & echo $! > {tmp_path}/child; trap '' TERM; sleep 600"
    stop = tmp_path / "stop"
    words = [*forwarder, str(echo), str(free_port()), str(stop), "sh", "-c", line]
    with subprocess.Popen(words) as process:
        until = time.monotonic() + PATIENCE
        while not (tmp_path / "child").exists() or not (tmp_path / "child").read_text():
            assert time.monotonic() < until
            time.sleep(0.02)
        stop.touch()
        assert process.wait(PATIENCE) == 75
    child = Path("/proc", (tmp_path / "child").read_text().strip())
    while child.exists() and "Z" not in (child / "stat").read_text().split(")")[1]:
        assert time.monotonic() < until
        time.sleep(0.02)


def test_without_a_compiler_there_is_none(tmp_path: Path) -> None:
    assert compiled_forwarder({"PATH": str(tmp_path), "NEWSKILLS_CACHE": str(tmp_path)}) is None


def test_a_compiler_that_fails_gives_none_and_leaves_nothing(tmp_path: Path) -> None:
    for name in COMPILERS:
        (tmp_path / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    environ = {"PATH": f"{tmp_path}:/usr/bin:/bin", "NEWSKILLS_CACHE": str(tmp_path / "cache")}
    assert compiled_forwarder(environ) is None
    assert list((tmp_path / "cache" / "programs").iterdir()) == []
