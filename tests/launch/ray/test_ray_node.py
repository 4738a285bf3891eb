# SPDX-License-Identifier: Apache-2.0
"""Real Ray: two nodes of it on this machine."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.launch.places import until

needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs Ray: pip install ray")

COMMAND = """\
import os, ray, socket, sys
with socket.socket() as probe:
    probe.bind(("127.0.0.1", int(sys.argv[1])))  # where the nodes have met
    probe.listen()
ray.init(log_to_driver=False, logging_level="ERROR")
print("nodes:", sum(node["Alive"] for node in ray.nodes()), flush=True)
sys.exit(7)
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def node() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts one of the processes; all are gone afterwards."""
    started = []

    def start(*args: Any, **options: Any) -> subprocess.Popen[str]:
        started.append(start_node(*args, **options))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def start_node(
    rank: int, port: int, *command: str, nodes: int = 2, patience: float = 240.0
) -> subprocess.Popen[str]:
    options = [
        f"--nodes={nodes}",
        f"--rank={rank}",
        "--host=127.0.0.1",
        f"--port={port}",
        f"--patience={patience}",
    ]
    return subprocess.Popen(
        [sys.executable, "-m", "newskills.launch.ray_node", *options, "--", *(command or ["true"])],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"},
    )


@pytest.mark.nightly
@pytest.mark.slow
@needs_ray
def test_a_command_on_two_nodes(node: Callable[..., subprocess.Popen[str]]) -> None:
    port = free_port()
    head = node(0, port, sys.executable, "-c", COMMAND, str(port))
    stranger = None
    while stranger is None and head.poll() is None:
        try:
            stranger = socket.create_connection(("127.0.0.1", port), timeout=5)
        except OSError:
            time.sleep(0.02)
    assert stranger is not None
    with stranger:
        stranger.sendall(b"GET /health HTTP/1.1\r\n\r\n")
        worker = node(1, port)
    out, errors = head.communicate(timeout=300)
    assert head.returncode == 7, errors
    assert "nodes: 2" in out
    worker.communicate(timeout=300)
    assert worker.returncode == 0


@pytest.mark.slow
@needs_ray
@pytest.mark.nightly
def test_a_node_that_leaves_ends_it_all(node: Callable[..., subprocess.Popen[str]]) -> None:
    port = free_port()
    head, worker = node(0, port, "sleep", "600"), node(1, port)
    assert head.stderr is not None
    said = ""
    while "nodes have joined" not in said and (line := head.stderr.readline()):
        said += line
    assert "2 nodes have joined" in said
    worker.send_signal(signal.SIGTERM)
    worker.communicate(timeout=300)
    assert worker.returncode == 143
    _, errors = head.communicate(timeout=300)
    assert head.returncode == 1
    assert "a node has left" in errors


def test_nodes_that_do_not_come_are_not_awaited_for_ever(node: Callable[..., subprocess.Popen[str]]) -> None:
    port = free_port()
    head = node(0, port, patience=0.5)
    _, errors = head.communicate(timeout=300)
    assert (head.returncode, "not all nodes joined in time" in errors) == (1, True)
    worker = node(1, port, patience=0.5)
    _, errors = worker.communicate(timeout=300)
    assert (worker.returncode, f"cannot reach 127.0.0.1:{port}" in errors) == (1, True)


LATE = """\
import os, sys, time
tries = os.open("tries", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
os.write(tries, b"x")
if os.fstat(tries).st_size < 3:
    sys.exit("No node info found for head node in GCS.")
time.sleep(600)
"""


def test_a_node_that_comes_before_the_head_is_tried_again(tmp_path: Path) -> None:
    scripts = tmp_path / "ray/scripts"
    scripts.mkdir(parents=True)
    for file in (scripts.parent / "__init__.py", scripts / "__init__.py"):
        file.touch()
    (scripts / "scripts.py").write_text(LATE)
    with socket.create_server(("127.0.0.1", 0)) as meeting, socket.create_server(("127.0.0.1", 0)) as lives:
        argv = ["--nodes=2", "--rank=1", "--host=127.0.0.1", f"--port={meeting.getsockname()[1]}", "--", "true"]
        worker = subprocess.Popen(
            [sys.executable, "-m", "newskills.launch.ray_node", *argv],
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            text=True,
        )
        connection = meeting.accept()[0]
        connection.sendall(f"127.0.0.1 1 {lives.getsockname()[1]}\n".encode())
        life = lives.accept()[0]
        until(lambda: (tmp_path / "tries").exists() and (tmp_path / "tries").read_text() == "xxx", "the third try")
        connection.close()
        life.close()
        errors = worker.communicate(timeout=300)[1]
    assert worker.returncode == 0, errors
    assert errors.count("it is started again") == 2
