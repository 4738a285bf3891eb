# SPDX-License-Identifier: Apache-2.0
"""A real sandbox server in a process of its own, as root or as an ordinary user, and a client that knows only HTTP."""

from __future__ import annotations

import atexit
import contextlib
import functools
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import newskills

NOBODY = 65534
USERS = ("root", "ordinary")
READY_WITHIN = 60.0

SMALL: tuple[str, ...] = (
    "++sandbox.limits.memory_mb=300",
    "++sandbox.limits.disk_mb=48",
    "++sandbox.limits.files=2000",
    "++sandbox.limits.processes=48",
    "++sandbox.limits.open_files=128",
)
"""Limits that a bomb reaches quickly."""


@dataclass(frozen=True)
class Answer:
    """What `POST /execute` (or any other path) said. `body` is {} where it was no JSON object."""

    code: int
    body: dict[str, Any]
    text: str
    seconds: float

    @property
    def status(self) -> str:
        return str(self.body.get("process_status", ""))

    @property
    def stdout(self) -> str:
        return str(self.body.get("stdout", ""))

    @property
    def stderr(self) -> str:
        return str(self.body.get("stderr", ""))

    @property
    def said(self) -> str:
        return self.stdout + self.stderr

    @property
    def new(self) -> bool:
        return bool(self.body["new_session_created"])

    @property
    def error(self) -> str:
        return str(self.body.get("error", ""))


@dataclass
class Client:
    """One connection per request; every wait is bounded."""

    port: int
    host: str = "127.0.0.1"
    patience: float = 60.0

    def send(
        self, method: str, path: str, body: bytes | str | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        begin = time.monotonic()
        connection = http.client.HTTPConnection(self.host, self.port, timeout=self.patience)
        try:
            payload = body.encode() if isinstance(body, str) else body
            connection.request(method, path, payload, dict(headers or {}))
            reply = connection.getresponse()
            text = reply.read().decode("utf-8")
        finally:
            connection.close()
        try:
            found = json.loads(text)
        except ValueError:
            found = {}
        return Answer(reply.status, found if isinstance(found, dict) else {}, text, time.monotonic() - begin)

    def execute(self, code: str, session: str | None = None, **fields: Any) -> Answer:
        """`fields` are those of the API: language, timeout, std_input, max_output_characters, …"""
        headers = {"Content-Type": "application/json"}
        if session is not None:
            headers["X-Session-ID"] = session
        return self.send("POST", "/execute", json.dumps({"generated_code": code, **fields}), headers)

    def delete(self, session: str) -> Answer:
        return self.send("DELETE", f"/sessions/{session}")

    def sessions(self) -> dict[str, Any]:
        found: dict[str, Any] = self.send("GET", "/sessions").body["sessions"]
        return found

    def raw(self, payload: bytes) -> socket.socket:
        """A connection on which `payload` was sent and nothing was read."""
        connection = socket.create_connection((self.host, self.port), timeout=self.patience)
        connection.sendall(payload)
        return connection


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@functools.cache
def ordinary_python() -> str:
    """An interpreter that an ordinary user may start and that finds our packages; empty = there is none.

    Where this one lies in a folder of root's, a bare environment around the system's shows it the same packages.
    """
    if _finds_packages(sys.executable):
        return sys.executable
    folder = Path(tempfile.mkdtemp(prefix="newskills-python-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o755)
    system = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    with contextlib.suppress(OSError):
        subprocess.run([system, "-m", "venv", "--without-pip", folder], capture_output=True, timeout=60)
    for site in folder.glob("lib/python*/site-packages"):
        source = str(Path(newskills.__file__).resolve().parent.parent)
        packages = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
        (site / "shared.pth").write_text("\n".join([source, *packages]))
    program = str(folder / "bin" / "python")
    return program if _finds_packages(program) else ""


def _finds_packages(program: str) -> bool:
    try:
        tried = subprocess.run(
            [program, "-I", "-c", "import newskills.cli, msgspec, numpy, sympy"],
            cwd="/",
            capture_output=True,
            timeout=60,
            **identity("ordinary"),
        )
    except OSError:
        return False
    return tried.returncode == 0


def identity(user: str) -> dict[str, Any]:
    """Arguments of Popen that make the child `user`; an ordinary user stays who it is."""
    if user == "root" or os.geteuid() != 0:
        return {}
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []}


def why_not(user: str) -> str:
    """Why no server can run as `user` here; empty = it can."""
    if user == "root" and os.geteuid() != 0:
        return "needs root: the suite runs as an ordinary user here"
    if user == "ordinary" and not ordinary_python():
        return "no Python here that an ordinary user may read and that finds numpy and sympy"
    return ""


def program_for(user: str) -> str:
    """The interpreter for `user`."""
    return sys.executable if user == "root" else ordinary_python()


@dataclass
class Server:
    """`ns sandbox serve` as `user`, in `folder`, with `environ` beside what it needs to start."""

    user: str
    folder: Path
    options: Sequence[str] = SMALL
    environ: Mapping[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = field(init=False, default=None)

    def start(self) -> None:
        self.port = free_port()
        program = program_for(self.user)
        self.log = self.folder / "server.log"
        argv = [program, "-m", "newskills", "sandbox", "serve", f"--port={self.port}", *self.options]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                argv,
                cwd=self.folder,
                env={
                    "PATH": os.environ["PATH"],
                    "HOME": str(self.folder),
                    "NEWSKILLS_CACHE": os.environ["NEWSKILLS_CACHE"],
                    **self.environ,
                },
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **identity(self.user),
            )
        self.client = Client(self.port)
        self._wait()

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def said(self) -> str:
        return self.log.read_text("utf-8", "replace")

    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def stop(self) -> None:
        """Ends it as Ctrl-C does, and waits."""
        if self.process is not None and self.alive():
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def _wait(self) -> None:
        deadline = time.monotonic() + READY_WITHIN
        while time.monotonic() < deadline and self.alive():
            with contextlib.suppress(OSError, http.client.HTTPException):
                if self.client.send("GET", "/health").code == 200:
                    return
            time.sleep(0.05)
        said = self.said()
        self.stop()
        raise AssertionError(f"the sandbox server did not come up:\n{said[-4000:]}")
