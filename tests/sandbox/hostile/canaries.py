# SPDX-License-Identifier: Apache-2.0
"""What hostile code must not reach: secrets, files, listeners and processes of the host, all readable by everyone."""

from __future__ import annotations

import contextlib
import os
import secrets
import selectors
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from tests.sandbox.serving import identity, program_for

BYSTANDER = """
import os, signal, sys
def note(number, frame):
    os.write(1, b'%d ' % number)
for number in range(1, 65):
    try:
        signal.signal(number, note)
    except (OSError, ValueError):
        pass
os.write(1, b'ready ')
while True:
    signal.pause()
"""


def token() -> str:
    return "hx" + secrets.token_hex(16)


class Listeners:
    """TCP, UDP, unix and abstract sockets that note whatever reaches them."""

    def __init__(self, folder: Path) -> None:
        self.hits: list[str] = []
        self.path = str(folder / "listener.sock")
        self.abstract = token()
        self._selector = selectors.DefaultSelector()
        self.ports = {
            "TCP4": self._add("TCP4", socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            "TCP6": self._add("TCP6", socket.AF_INET6, socket.SOCK_STREAM, ("::1", 0)),
            "UDP4": self._add("UDP4", socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            "UDP6": self._add("UDP6", socket.AF_INET6, socket.SOCK_DGRAM, ("::1", 0)),
            "ANY4": self._add("ANY4", socket.AF_INET, socket.SOCK_STREAM, ("0.0.0.0", 0)),
        }
        self._add("UNIX", socket.AF_UNIX, socket.SOCK_STREAM, self.path)
        Path(self.path).chmod(0o777)
        self._add("ABSTRACT", socket.AF_UNIX, socket.SOCK_STREAM, "\0" + self.abstract)
        self._add("ABSTRACTDGRAM", socket.AF_UNIX, socket.SOCK_DGRAM, "\0" + self.abstract + "d")
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="canary-listeners", daemon=True)
        self._thread.start()

    def _add(self, name: str, family: int, kind: int, address: object) -> int:
        listener = socket.socket(family, kind)
        listener.bind(address)
        if kind == socket.SOCK_STREAM:
            listener.listen(16)
        self._selector.register(listener, selectors.EVENT_READ, name)
        return int(listener.getsockname()[1]) if family != socket.AF_UNIX else 0

    def _listen(self) -> None:
        while not self._stop.is_set():
            for key, _ in self._selector.select(0.2):
                listener = key.fileobj
                assert isinstance(listener, socket.socket)
                with contextlib.suppress(OSError):
                    if listener.type == socket.SOCK_STREAM:
                        peer, _address = listener.accept()
                        peer.close()
                        self.hits.append(f"{key.data}: connected")
                    else:
                        self.hits.append(f"{key.data}: {listener.recv(2000)[:100]!r}")

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()
        self._selector.close()


class Canaries:
    """All of them, for a server that runs as `user` in `cwd`."""

    def __init__(self, user: str) -> None:
        self.file_secret = token()
        self.environment_secret = token()
        self.root = Path(tempfile.mkdtemp(prefix="hx-canary-", dir="/tmp"))
        self.var = Path(tempfile.mkdtemp(prefix="hx-canary-", dir="/var/tmp"))
        self.shm = Path(tempfile.mkdtemp(prefix="hx-canary-", dir="/dev/shm"))
        self.cwd = self.root / "server"
        self.cwd.mkdir()
        for folder in (self.root, self.var, self.shm, self.cwd):
            folder.chmod(0o777)
            secret = folder / "secret"
            secret.write_text(self.file_secret)
            secret.chmod(0o666)
        self.listeners = Listeners(self.root)
        program = program_for(user)
        self.process = subprocess.Popen(
            [program, "-c", BYSTANDER],
            env={"PATH": os.environ["PATH"], "HX_CANARY": self.environment_secret},
            cwd="/",
            stdout=subprocess.PIPE,
            start_new_session=True,
            **identity(user),
        )
        assert self.process.stdout is not None
        assert os.read(self.process.stdout.fileno(), 100) == b"ready "
        os.set_blocking(self.process.stdout.fileno(), False)
        self._listing = self._look()

    @property
    def environ(self) -> dict[str, str]:
        """What the server's environment holds and no code may find."""
        return {
            "HX_CANARY": self.environment_secret,
            "OPENAI_API_KEY": self.environment_secret,
            "AWS_SECRET_ACCESS_KEY": self.environment_secret,
        }

    def places(self) -> dict[str, str]:
        """Placeholder → text, for the code of the cases. The halves spell the secret only when joined."""
        half = len(self.environment_secret) // 2
        return {
            "SECRET": str(self.root / "secret"),
            "VARSECRET": str(self.var / "secret"),
            "SHMSECRET": str(self.shm / "secret"),
            "CWDSECRET": str(self.cwd / "secret"),
            "ROOT": str(self.root),
            "CWD": str(self.cwd),
            "PID": str(self.process.pid),
            "TESTPID": str(os.getpid()),
            "UNIX": self.listeners.path,
            "ABSTRACT": self.listeners.abstract,
            "HALF1": self.environment_secret[:half],
            "HALF2": self.environment_secret[half:],
            "FILEHALF1": self.file_secret[:half],
            "FILEHALF2": self.file_secret[half:],
            **{name: str(port) for name, port in self.listeners.ports.items()},
        }

    def _look(self) -> dict[str, tuple[int, int, str]]:
        seen = {}
        for path in self._files():
            found = path.lstat()
            text = path.read_text("utf-8", "replace") if path.name == "secret" else ""
            seen[str(path)] = (found.st_mode, found.st_nlink if path.is_file() else 0, text)
        return seen

    def _files(self) -> Iterator[Path]:
        for folder in (self.root, self.var, self.shm, self.cwd):
            yield from (path for path in folder.iterdir() if path.name != "server.log")

    def unhurt(self) -> None:
        """Nothing was read over a socket, signalled, stopped, traced, reniced, written, removed or added."""
        assert self.listeners.hits == []
        assert self.process.poll() is None, "the canary process was ended"
        assert self.process.stdout is not None
        with contextlib.suppress(BlockingIOError):
            noted = os.read(self.process.stdout.fileno(), 1000)
            assert noted == b"", f"signals reached the canary process: {noted!r}"
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        assert "TracerPid:\t0" in status
        assert "State:\tS" in status
        assert os.getpriority(os.PRIO_PROCESS, self.process.pid) == os.getpriority(os.PRIO_PROCESS, 0)
        assert self._look() == self._listing

    def close(self) -> None:
        self.listeners.close()
        self.process.kill()
        self.process.communicate()
        for folder in (self.root, self.var, self.shm):
            shutil.rmtree(folder)
