# SPDX-License-Identifier: Apache-2.0
"""`ns sandbox` as a person uses it: a server of its own, spoken to over HTTP, stopped by a signal."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import ns

from newskills_sandbox.probes import run_probes, strongest_level

isolated = pytest.mark.skipif(
    strongest_level(run_probes()) == "none", reason="nothing isolates code on this machine; see ns sandbox doctor"
)


class Served:
    """The one line that the server says when it is ready, and requests to it."""

    def __init__(self, process: subprocess.Popen[str], line: str) -> None:
        self.process, self.line = process, line
        self.url = line.split(" ")[2]

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.url}{path}", timeout=120) as answer:
            return json.load(answer)

    def execute(self, code: str, session: str = "s", **fields: Any) -> Any:
        body = json.dumps({"generated_code": code, **fields}).encode()
        request = urllib.request.Request(f"{self.url}/execute", body, {"X-Session-ID": session})
        with urllib.request.urlopen(request, timeout=300) as answer:
            return json.load(answer)

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """The exit code, and all that was said after the first line."""
        self.process.send_signal(number)
        rest, _ = self.process.communicate(timeout=120)
        return self.process.returncode, rest


@contextlib.contextmanager
def serving(*options: str, cwd: Path, **environ: str) -> Iterator[Served]:
    process = subprocess.Popen(
        [sys.executable, "-m", "newskills", "sandbox", "serve", *options],
        cwd=cwd,
        env={**os.environ, **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield Served(process, process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


def children(pid: int) -> list[int]:
    """Processes below `pid`, however deep."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found, waiting = [], [pid]
    while waiting:
        below = parents.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


@isolated
@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.nightly), signal.SIGTERM])
def test_a_server_from_its_line_to_its_end(tmp_path: Path, number: int) -> None:
    with serving("--port=0", "++sandbox.limits.memory_mb=512", cwd=tmp_path) as served:
        health = served.get("/health")
        level, run_id = health["isolation_level"], health["run_id"]
        line = f"Sandbox at {served.url} (isolation level {level}, run {run_id}); Ctrl-C stops it.\n"
        assert served.line == line
        assert served.execute("x = 41")["new_session_created"] is True
        result = served.execute("x + 1")
        assert (result["process_status"], result["stdout"]) == ("completed", "42\n")
        assert result["new_session_created"] is False
        result = served.execute("import time; time.sleep(60)", "slow", timeout=0.5)
        assert result["process_status"] == "timeout"
        result = served.execute("import sys; print(sys.stdin.read()[::-1])", language="python", std_input="abc")
        assert result["stdout"] == "cba\n"
        below = children(served.process.pid)
        assert below
        assert served.stop(number) == (0, "")
    assert not [pid for pid in below if Path(f"/proc/{pid}").exists()]


@isolated
def test_a_signal_before_it_is_ready_ends_it(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "newskills", "sandbox", "serve", "--port=0"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    until = time.monotonic() + 300
    while not children(process.pid) and time.monotonic() < until:
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert said == "" or said.startswith("Sandbox at")


@isolated
def test_a_stop_in_the_middle_of_a_cell(tmp_path: Path) -> None:
    with serving("--port=0", cwd=tmp_path) as served:
        port = int(served.url.rsplit(":", 1)[1])
        body = b'{"generated_code": "while True: pass", "timeout": 60}'
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(
                b"POST /execute HTTP/1.1\r\nHost: localhost\r\nX-Session-ID: s\r\nContent-Length: %d\r\n\r\n%b"
                % (len(body), body)
            )
            until = time.monotonic() + 300
            while served.get("/metrics")["in_flight"] == 0:
                assert time.monotonic() < until, "the cell never ran"
                time.sleep(0.02)
            assert served.stop() == (0, "")


def test_a_taken_port_is_told(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = ns("ns sandbox serve --sandbox=none", f"--port={port}", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith(
        f"error: Cannot listen on port {port} of 127.0.0.1: another program listens there."
    )
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("line", "environ", "sentence"),
    [
        ("ns sandbox", {}, "ACTION is missing"),
        ("ns sandbox sevre", {}, "did you mean 'serve'"),
        ("ns sandbox serve --port=70000 --sandbox=none", {}, "70000 is not a port"),
        ("ns sandbox serve --host=no.such.host.invalid --sandbox=none", {}, "is not an address of this machine"),
        ("ns sandbox serve ++sandbox.host=x", {}, "Give --host and --port here"),
        ("ns sandbox serve --memory_mb=1", {}, "memory_mb"),
        ("ns sandbox serve --network", {"NEMO_SKILLS_SANDBOX_BLOCK_NETWORK": "1"}, "BLOCK_NETWORK is set"),
        (
            "ns sandbox serve",
            {"NEMO_SKILLS_SANDBOX_SESSION_TIMEOUT": "soon"},
            "SESSION_TIMEOUT: expected a number",
        ),
        ("ns sandbox serve", {"NEMO_SKILLS_SANDBOX_PORT": "a"}, "NEMO_SKILLS_SANDBOX_PORT: expected a port"),
        ("ns sandbox serve --python=/no/python --sandbox=none --port=0", {}, "/no/python"),
    ],
)
def test_bad_options(tmp_path: Path, line: str, environ: dict[str, str], sentence: str) -> None:
    done = ns(line, cwd=tmp_path, env=environ)
    assert done.returncode in (1, 2)
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert sentence in done.stderr


@isolated
def test_settings_of_the_environment(tmp_path: Path) -> None:
    variables = {"NEMO_SKILLS_SANDBOX_SESSION_TIMEOUT": "0.4", "NEWSKILLS_SANDBOX_TOKEN": ""}
    with serving("--port=0", cwd=tmp_path, **variables) as served:
        served.execute("x = 1")
        until = time.monotonic() + 300
        while served.get("/sessions")["sessions"] and time.monotonic() < until:
            time.sleep(0.1)
        assert served.get("/sessions") == {"sessions": {}}


def test_the_doctor(tmp_path: Path) -> None:
    done = ns("ns sandbox doctor", cwd=tmp_path)
    probes = run_probes()
    level = strongest_level(probes)
    assert done.returncode == (1 if level == "none" else 0)
    for probe in probes:
        assert probe.name in done.stdout
    assert done.stdout.splitlines()[-1].startswith(
        f"Isolation level {level}:" if level != "none" else "Code cannot be isolated"
    )


def test_explain(tmp_path: Path) -> None:
    done = ns("ns sandbox serve --explain --memory_mb=300 ++sandbox.limits.disk_mb=7", cwd=tmp_path)
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}
    assert rows["sandbox.limits.memory_mb"][0] == "300"
    assert rows["sandbox.limits.disk_mb"][0] == "7"
