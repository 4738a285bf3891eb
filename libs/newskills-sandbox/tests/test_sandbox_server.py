# SPDX-License-Identifier: Apache-2.0
"""`python -m newskills_sandbox`: a real server in a process of its own, its client, and the other commands."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import newskills_sandbox
from newskills_sandbox import Sandbox, SandboxError
from newskills_sandbox.probes import run_probes, strongest_level

SOURCE = str(Path(newskills_sandbox.__file__).parents[1])
COMMAND = (sys.executable, "-m", "newskills_sandbox")


def environ(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if "SANDBOX" not in name}
    return {**kept, "PYTHONPATH": SOURCE, **more}


@contextlib.contextmanager
def server(*words: str, **more: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A server's address and its process."""
    if strongest_level(run_probes()) == "none":
        pytest.skip("this machine cannot isolate code")
    argv = (*COMMAND, "serve", "--port", "0", "--preload", *words)
    with subprocess.Popen(argv, env=environ(**more), stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            match = re.match(r"Sandbox at (http://\S+) \(isolation level [ab]\)", process.stdout.readline())
            assert match is not None
            yield match[1], process
        finally:
            process.terminate()
            process.wait(30)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with server() as (url, _):
        yield url


def raw(address: str, sent: bytes) -> bytes:
    """What a server answers until it ends the connection."""
    host, _, port = address.removeprefix("http://").rpartition(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(sent)
        answer = b""
        while piece := connection.recv(1 << 16):
            answer += piece
        return answer


def test_a_client_runs_code_at_a_server(address: str) -> None:
    with Sandbox(address=address) as sandbox, sandbox.session() as session:
        assert sandbox.run("print(6 * 7)").stdout == "42\n"
        session.run("x = 1")
        session.write_file("a.txt", "of the client")
        assert session.run("print(x, open('a.txt').read())").stdout == "1 of the client\n"
        assert session.read_file("a.txt") == b"of the client"
        assert sandbox.run("while True: pass", timeout=0.5).status == "timeout"


def test_a_token_is_asked_for() -> None:
    with server(NEWSKILLS_SANDBOX_TOKEN="s3cret") as (url, _):
        with Sandbox(address=url, token="s3cret") as sandbox:
            assert sandbox.run("print(1)").stdout == "1\n"
        with Sandbox(address=url, token="other") as sandbox, pytest.raises(SandboxError, match="needs a token"):
            sandbox.run("print(1)")


def test_a_server_that_is_stopped_leaves_nothing() -> None:
    with server() as (url, process):
        sandbox = Sandbox(address=url)
        sandbox.session().run("import time")
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        assert children
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        assert not [child for child in children if Path(f"/proc/{child}").exists()]
        with pytest.raises(SandboxError, match="cannot be reached"):
            sandbox.run("1")
        sandbox.close()


END = b"Host: localhost\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /health HTTP/1.1\r\n" + END, 200),
        (b"HEAD /health HTTP/1.1\r\n" + END, 200),
        (b"GET http://localhost/health?x HTTP/1.1\r\n" + END, 200),
        (b"GET /health HTTP/1.0\r\n\r\n", 200),
        (b"GET /nothing HTTP/1.1\r\n" + END, 404),
        (b"POST /health HTTP/1.1\r\n" + END, 405),
        (b"GET /health HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", 421),
        (b"GET /sessions HTTP/1.1\r\nOrigin: http://localhost\r\n" + END, 403),
        (b"nonsense\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nHost : localhost\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\n folded: x\r\n\r\n", 400),
        (b"POST /execute HTTP/1.1\r\nContent-Length: +1\r\n\r\nx", 400),
        (b"POST /execute HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx", 400),
        (b"POST /execute HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\nx", 411),
        (b"POST /execute HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\nx", 413),
        (b"GET /health HTTP/1.1\r\nx: " + b"y" * 70_000, 431),
    ],
)
def test_what_is_sent_gets_its_answer(address: str, sent: bytes, status: int) -> None:
    answer = raw(address, sent)
    assert int(answer.split()[1]) == status
    head, _, body = answer.partition(b"\r\n\r\n")
    size = re.search(rb"Content-Length: (\d+)", head)
    assert size is not None
    assert len(body) == (0 if sent.startswith(b"HEAD") else int(size[1]))


def test_requests_of_one_connection_are_answered_in_order(address: str) -> None:
    body = json.dumps({"generated_code": "import time; time.sleep(0.3)", "language": "python"}).encode()
    slow = b"POST /execute HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    answers = raw(
        address, slow + b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\nGET /health HTTP/1.1\r\n" + END
    )
    assert re.findall(rb"HTTP/1.1 (\d+)", answers) == [b"200", b"404", b"200"]


def test_a_client_that_asks_first_is_told_to_go_on(address: str) -> None:
    body = json.dumps({"generated_code": "print(1)", "language": "python"}).encode()
    head = b"POST /execute HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: %d\r\n" % len(body) + END
    host, _, port = address.removeprefix("http://").rpartition(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(head)
        assert connection.recv(100).startswith(b"HTTP/1.1 100 ")
        connection.sendall(body)
        assert b'"stdout":"1\\n"' in connection.recv(1 << 16)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--host", "0.0.0.0"), "Whoever reaches 0.0.0.0 could run code here."),
        (("--port", "70000"), "70000 is not a port"),
        (("--host", "no.such.host.invalid"), "not an address of this machine"),
        (("--data_dir", "/nowhere"), "data_dir is not a folder"),
        (("--memory_mb", "1"), "memory_mb must be at least 64"),
        (("--packages", "nope", "--port", "0"), "packages names nope"),
    ],
)
def test_a_server_that_makes_no_sense_is_refused(words: tuple[str, ...], sentence: str) -> None:
    done = subprocess.run((*COMMAND, "serve", *words), env=environ(), capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr


def test_a_port_that_is_taken_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        argv = (*COMMAND, "serve", "--preload", "--port", str(taken.getsockname()[1]))
        done = subprocess.run(argv, env=environ(), capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "Cannot listen on port" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_doctor_says_what_isolates_code() -> None:
    level = strongest_level(run_probes())
    argv = (*COMMAND, "doctor", "--preload", "json", "no_such_module")
    done = subprocess.run(argv, env=environ(), capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "preload names no_such_module" in done.stderr
    done = subprocess.run((*argv[:-1],), env=environ(), capture_output=True, text=True, timeout=60)
    assert done.returncode == (level == "none")
    assert re.search(r"^seccomp +(yes|no)", done.stdout, re.MULTILINE)
    assert re.search(r"^json +yes$", done.stdout, re.MULTILINE)
    assert ("cannot be isolated" if level == "none" else f"Isolation level {level}:") in done.stdout


def test_one_file_is_run_and_ends_as_it_does(tmp_path: Path) -> None:
    if strongest_level(run_probes()) == "none":
        pytest.skip("this machine cannot isolate code")
    (tmp_path / "ends.py").write_text("import sys; print('out'); print('err', file=sys.stderr); sys.exit(5)")
    words: tuple[str, ...] = (*COMMAND, "run", "--preload", "--", str(tmp_path / "ends.py"))
    done = subprocess.run(words, env=environ(), capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (5, "out\n", "err\n")
    words = (*COMMAND, "run", "-", "--timeout", "0.3", "--preload")
    done = subprocess.run(
        words, env=environ(), input="while True: pass", capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert "timed out" in done.stderr
    done = subprocess.run((*COMMAND, "run", "/nowhere"), env=environ(), capture_output=True, text=True, timeout=60)
    assert (done.returncode, "cannot be read" in done.stderr) == (2, True)


def test_names_load_when_they_are_used() -> None:
    code = (
        "import sys, newskills_sandbox as s; before = len(sys.modules); "
        "missing = [n for n in s.__all__ if not hasattr(s, n)]; print(missing, 'asyncio' in sys.modules, "
        "hasattr(s, 'nope'), 'numpy' in sys.modules, 'newskills' in sys.modules)"
    )
    early = "import sys, newskills_sandbox; print('asyncio' in sys.modules, 'dataclasses' in sys.modules)"
    for program, printed in ((code, "[] True False False False\n"), (early, "False False\n")):
        argv = (sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {SOURCE!r}); {program}")
        assert subprocess.run(argv, capture_output=True, text=True, timeout=60).stdout == printed
