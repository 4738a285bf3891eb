# SPDX-License-Identifier: Apache-2.0
"""Landlock on real processes: what lies outside stays unseen, unreached and unharmed."""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.sandbox import children

from newskills_sandbox.inside import landlock

RESTRICT = """
linux.drop_capabilities()
landlock.restrict_process(read=["/usr", "/lib", "/lib64", "/proc", "/dev", "/nowhere", readable, file], write=[folder],
                  network=network)
"""


@pytest.fixture(scope="module", autouse=True)
def _version() -> int:
    children.need("landlock")
    return landlock.landlock_version()


def need_version(version: int) -> None:
    if landlock.landlock_version() < version:
        pytest.skip(f"Landlock is version {landlock.landlock_version()} here, not {version}")


@pytest.fixture
def places(tmp_path: Path) -> dict[str, str]:
    for name in ("readable", "folder", "hidden"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "text").write_text("some text")
    (tmp_path / "file").write_text("one file")
    return {name: str(tmp_path / name) for name in ("readable", "folder", "hidden", "file")}


@pytest.fixture
def outsider() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"], env={"SECRET": "outside"}) as process:
        yield process
        process.kill()


def test_files_by_folder(places: dict[str, str]) -> None:
    answers = children.run(
        RESTRICT
        + """
attempt("read", lambda: open(readable + "/text").read())
attempt("list", lambda: os.listdir(readable))
attempt("write to read-only", lambda: open(readable + "/text", "a"))
attempt("make in read-only", lambda: os.mkdir(readable + "/new"))
attempt("remove from read-only", lambda: os.remove(readable + "/text"))
attempt("one file", lambda: open(file).read())
attempt("write to one file", lambda: open(file, "w"))
attempt("write", lambda: open(folder + "/new", "w").close())
attempt("make", lambda: os.mkdir(folder + "/deep"))
attempt("move", lambda: os.rename(folder + "/new", folder + "/deep/newer"))
attempt("remove", lambda: os.remove(folder + "/deep/newer"))
attempt("hidden file", lambda: open(hidden + "/text"))
attempt("hidden folder", lambda: os.listdir(hidden))
attempt("accounts", lambda: open("/etc/passwd"))
attempt("by link", lambda: (os.symlink(hidden + "/text", folder + "/link"), open(folder + "/link"))[1])
attempt("by parents", lambda: open(folder + "/../hidden/text"))
attempt("run", lambda: os.waitpid(os.posix_spawn("/usr/bin/env", ["env", "true"], {}), 0)[1] == 0)
""",
        network=False,
        **places,
    )
    fine = dict.fromkeys(("write", "make", "remove"), 0)
    assert answers == {
        **dict.fromkeys(answers, errno.EACCES),
        **fine,
        "read": "some text",
        "list": ["text"],
        "one file": "one file",
        "move": 0 if landlock.landlock_version() >= 2 else errno.EXDEV,
        "run": True,
    }


def test_truncation(places: dict[str, str]) -> None:
    need_version(3)
    answers = children.run(
        RESTRICT + 'attempt("outside", lambda: os.truncate(hidden + "/text", 0))\n'
        'attempt("inside", lambda: os.truncate(folder + "/text", 0))',
        network=False,
        **places,
    )
    assert answers == {"outside": errno.EACCES, "inside": 0}
    assert Path(places["hidden"], "text").read_text() == "some text"


def test_tcp(places: dict[str, str]) -> None:
    need_version(4)
    code = RESTRICT + (
        'attempt("connect", lambda: socket.create_connection(("127.0.0.1", port)).close())\n'
        'attempt("listen", lambda: socket.create_server(("127.0.0.1", 0)).close())'
    )
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        refused = children.run(code, network=False, port=port, **places)
        allowed = children.run(code, network=True, port=port, **places)
    assert refused == {"connect": errno.EACCES, "listen": errno.EACCES}
    assert allowed == {"connect": 0, "listen": 0}


def test_other_processes(places: dict[str, str], outsider: subprocess.Popen[bytes]) -> None:
    answers = children.run(
        RESTRICT
        + """
attempt("environment", lambda: open(f"/proc/{other}/environ").read())
attempt("memory", lambda: open(f"/proc/{other}/mem", "rb"))
attempt("descriptors", lambda: os.readlink(f"/proc/{other}/fd/0"))
attempt("working folder", lambda: os.readlink(f"/proc/{other}/cwd"))
libc = ctypes.CDLL(None, use_errno=True)
attempt("trace", lambda: str(ctypes.get_errno()) if libc.ptrace(16, other, None, None) else "traced")
""",
        network=False,
        other=outsider.pid,
        **places,
    )
    assert answers.pop("trace") == str(errno.EPERM)
    assert set(answers.values()) <= {errno.EACCES, errno.EPERM}
    assert outsider.poll() is None


def test_signals_and_abstract_sockets(places: dict[str, str], outsider: subprocess.Popen[bytes]) -> None:
    need_version(6)
    name = f"\0newskills-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()
        answers = children.run(
            RESTRICT
            + """
attempt("kill", lambda: os.kill(other, signal.SIGKILL))
attempt("ask", lambda: os.kill(other, 0))
attempt("abstract", lambda: socket.socket(socket.AF_UNIX).connect(name))
child = os.fork() or signal.pause()
attempt("own child", lambda: os.kill(child, signal.SIGKILL))
attempt("its end", lambda: str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
""",
            network=False,
            other=outsider.pid,
            name=name,
            **places,
        )
    refused = dict.fromkeys(("kill", "ask", "abstract"), errno.EPERM)
    assert answers == {**refused, "own child": 0, "its end": str(-signal.SIGKILL)}
    assert outsider.poll() is None


def test_together_with_the_filter(places: dict[str, str]) -> None:
    children.need("seccomp")
    answers = children.run(
        RESTRICT
        + """
seccomp.install(network=False, namespaced=False)
attempt("hidden", lambda: open(hidden + "/text"))
attempt("udp", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
attempt("landlock", lambda: str(landlock.landlock_version()))
""",
        network=False,
        **places,
    )
    assert answers == {"hidden": errno.EACCES, "udp": errno.EAFNOSUPPORT, "landlock": "0"}
