# SPDX-License-Identifier: Apache-2.0
"""The sandbox as ordinary Python uses it: real sessions on the strongest isolation level of this machine."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import newskills_sandbox
from newskills_sandbox import (
    Execution,
    ExecutionRefusedError,
    Sandbox,
    SandboxError,
    SandboxSettings,
    SessionLimits,
    SettingsError,
)
from newskills_sandbox.execution import ExecutionResult
from newskills_sandbox.files import read_listing, read_piece
from newskills_sandbox.probes import run_probes, strongest_level

SMALL = SandboxSettings(
    preload=(), limits=SessionLimits(memory_mb=256, disk_mb=48, files=500, processes=32, timeout=60)
)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    if strongest_level(run_probes()) == "none":
        pytest.skip("this machine cannot isolate code")
    with Sandbox(SMALL) as shared:
        yield shared


def test_code_runs_once_and_leaves_nothing(sandbox: Sandbox) -> None:
    first = sandbox.run("open('mine', 'w').close(); print(6 * 7)")
    assert (first.status, first.stdout, first.exit_code) == ("completed", "42\n", 0)
    assert first.isolation_level in ("a", "b")
    assert sandbox.run("import os; print(os.path.exists('mine'))").stdout == "False\n"


def test_a_program_gets_its_input_and_its_exit_code_is_told(sandbox: Sandbox) -> None:
    result = sandbox.run("import sys; print(input()[::-1]); sys.exit(3)", stdin="abc\n")
    assert (result.stdout, result.exit_code) == ("cba\n", 3)
    shell = sandbox.run("read word; echo $word >&2; exit 1", language="shell", stdin="hey\n")
    assert (shell.status, shell.stderr, shell.exit_code) == ("error", "hey\n", 1)


def test_a_session_keeps_variables_and_files(sandbox: Sandbox) -> None:
    with sandbox.session() as session, sandbox.session() as other:
        assert session.run("x = 20 + 1").new_session_created
        assert session.run("2 * x").stdout == "42\n"
        assert "NameError" in other.run("x").stdout + other.run("x").stderr
        session.run("open('out.txt', 'w').write('from a cell')")
        assert session.run("cat out.txt", language="shell").stdout == "from a cell"
        assert session.read_file("out.txt") == b"from a cell"


def test_files_go_in_and_come_out(sandbox: Sandbox) -> None:
    content = bytes(range(256)) * 30_000  # more than one piece
    with sandbox.session() as session:
        session.write_file("data/in.bin", content)
        session.write_file("notes.txt", "ä\n")
        session.write_file("empty", b"")
        assert session.files() == {"data/in.bin": len(content), "notes.txt": 3, "empty": 0}
        assert session.read_file("data/in.bin") == content
        assert session.read_file("empty") == b""
        assert session.run("len(open('data/in.bin', 'rb').read())").stdout == f"{len(content)}\n"
        session.write_file("notes.txt", b"new")
        assert session.read_file("notes.txt") == b"new"
        with pytest.raises(SandboxError, match="more than 1,000 bytes"):
            session.read_file("data/in.bin", max_bytes=1000)
        with pytest.raises(SandboxError, match=r"nope: FileNotFoundError"):
            session.read_file("nope")
        with pytest.raises(SandboxError, match=r"/etc/passwd2: \w*Error"):
            session.write_file("/etc/passwd2", "x")
        with pytest.raises(SandboxError, match="full: "):
            session.write_file("full", b"x" * (64 << 20))


def test_what_a_session_prints_instead_of_a_file_is_no_file() -> None:
    def printed(text: str) -> ExecutionResult:
        return ExecutionResult(status="completed", stdout=text, exit_code=0)

    assert read_piece(printed("eA==\n"), "f") == b"x"
    for text in ("eA==\nmore", "é", "e"):
        with pytest.raises(SandboxError, match="something else"):
            read_piece(printed(text), "f")
    for text in ("[]", "{", '{"a": "b"}'):
        with pytest.raises(SandboxError, match="something else"):
            read_listing(printed(text))


def test_a_bomb_ends_and_the_next_code_runs(sandbox: Sandbox) -> None:
    began = time.monotonic()
    assert sandbox.run("while True: pass", timeout=0.5).status == "timeout"
    assert sandbox.run("x = 'y' * (1 << 30)", timeout=20).status in (
        "error",
        "out_of_memory",
        "crashed",
        "completed",
    )
    assert sandbox.run("x = bytearray(1 << 30); x[::4096] = x[::4096]; print('all')", timeout=20).stdout != "all\n"
    sandbox.run("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", timeout=1)
    assert sandbox.run("print('still here')").stdout == "still here\n"
    assert time.monotonic() - began < 60


ESCAPES = {
    "secrets of root": "print(open('/etc/shadow').read())",
    "the home of its user": "import os; print(os.listdir(os.path.expanduser('~root')))",
    "the network": "import socket; socket.create_connection(('1.1.1.1', 53), 2); print('connected')",
    "this machine's own servers": "import socket; socket.create_connection(('127.0.0.1', {port}), 2); print('met')",
    "a process outside": "import os; os.kill({pid}, 0); print('reached')",
    "writing outside": "open('/usr/bin/mine', 'w').write('x'); print('written')",
    "becoming root": "import os; os.setuid(0); print(open('/etc/shadow').read())",
    "a raw socket": "import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1); print('made')",
    "tracing": "import ctypes; assert ctypes.CDLL(None).ptrace(16, {pid}, 0, 0) == 0; print('traced')",
    "mounting": "import ctypes; assert ctypes.CDLL(None).mount(b'none', b'/tmp', b'tmpfs', 0, None) == 0; print('m')",
}


@pytest.mark.parametrize("what", ESCAPES)
def test_code_does_not_get_out(sandbox: Sandbox, what: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        code = ESCAPES[what].format(port=listener.getsockname()[1], pid=os.getpid())
        result = sandbox.run(code, timeout=10)
    assert result.status == "completed"
    assert result.exit_code != 0, result
    assert result.stdout == ""


def test_it_works_inside_of_a_running_loop_and_in_threads(sandbox: Sandbox) -> None:
    async def notebook() -> str:
        return sandbox.run("print('in a notebook')").stdout

    assert asyncio.run(notebook()) == "in a notebook\n"
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda n: sandbox.run(f"print({n})").stdout, range(12)))
    assert results == [f"{n}\n" for n in range(12)]


LEFT = """
from newskills_sandbox import Sandbox, SandboxSettings
with Sandbox(SandboxSettings(preload=())) as sandbox, sandbox.session() as session:
    session.run("x = 1")
    print("ready", flush=True)
    try:
        session.run("import time; time.sleep(50)", timeout=55)
    except KeyboardInterrupt:
        print(session.run("print('next')").stdout, end="")
"""


def test_ctrl_c_ends_the_code_and_not_the_sandbox(sandbox: Sandbox) -> None:
    source = str(Path(newskills_sandbox.__file__).parents[1])
    environ = {**os.environ, "PYTHONPATH": source}
    argv = (sys.executable, "-c", LEFT)
    began = time.monotonic()
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=environ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == "next\n"
        assert process.wait(30) == 0
    assert time.monotonic() - began < 40


def test_a_closed_sandbox_says_so() -> None:
    closed = Sandbox(SMALL)
    closed.close()
    closed.close()
    with pytest.raises(SandboxError, match="closed"):
        closed.run("1")


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"language": "pyhton"}, "did you mean .*'python'"),
        ({"timeout": 61}, "at most 60 seconds"),
        ({"timeout": 0}, "above 0"),
        ({"max_output_characters": -1}, "max_output_characters"),
    ],
)
def test_requests_that_make_no_sense_are_refused(
    sandbox: Sandbox, fields: dict[str, object], sentence: str
) -> None:
    with pytest.raises(ExecutionRefusedError, match=sentence):
        sandbox.run("1", **fields)  # type: ignore[arg-type]


def test_settings_that_cannot_be_met_are_told() -> None:
    with (
        Sandbox(SandboxSettings(preload=("nope",))) as sandbox,
        pytest.raises(SettingsError, match="pip install nope"),
    ):
        sandbox.run("1")
    with pytest.raises(SandboxError, match="either settings or an address"):
        Sandbox(SMALL, address="http://127.0.0.1:1")
    with pytest.raises(SettingsError, match="must be http://"):
        Sandbox(address="https://somewhere")


def test_a_lost_session_is_run_again_where_that_is_wanted() -> None:
    with Sandbox(SMALL, restore=True) as sandbox, sandbox.session() as session:
        session.run("x = 5")
        assert session.run("import os; os._exit(1)").status == "crashed"
        again = session.run("print(x)")
        assert (again.stdout, again.new_session_created) == ("5\n", False)
        assert sandbox.execute(Execution(code="print(1)", language="python")).stdout == "1\n"
