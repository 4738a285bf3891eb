# SPDX-License-Identifier: Apache-2.0
"""An endpoint behind an SSH host: `ssh -N -L`, with the system's own client, keys and configuration."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from typing import Protocol, runtime_checkable

from newskills.base.errors import ConfigError, TransportError

DEADLINE = 30.0


@runtime_checkable
class RoutableModel(Protocol):
    """A model whose endpoint may lie behind an SSH host."""

    def route_through(self, server: str, key_path: str | None) -> None:
        """Send requests through the SSH host `server`. Raises ConfigError, TransportError."""
        ...


class PortForward:
    """Forwards `port` of loopback to `(host, port)` as `server` sees it, until `close`."""

    def __init__(self, server: str, key_path: str | None, host: str, port: int) -> None:
        """Wait up to 30 s for the tunnel. Raises ConfigError without ssh, TransportError where it fails."""
        if server.startswith("-"):
            raise ConfigError(f"'{server}' is not an SSH host.", hint="Write ++server.ssh_server=user@host.")
        program = shutil.which("ssh")
        if program is None:
            raise ConfigError("server.ssh_server needs the program ssh, which is not on the PATH.")
        self.port = _free_port()
        forward = f"127.0.0.1:{self.port}:{f'[{host}]' if ':' in host else host}:{port}"
        options = ["-o", "BatchMode=yes", "-o", "ExitOnForwardFailure=yes", "-o", "ServerAliveInterval=30"]
        identity = ["-i", key_path] if key_path else []
        self._process = subprocess.Popen(
            [program, "-N", "-L", forward, *options, *identity, "--", server],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        self._wait_until_open(server)

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._process.stderr is not None:
            self._process.stderr.close()

    def _wait_until_open(self, server: str) -> None:
        deadline = time.monotonic() + DEADLINE
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                assert self._process.stderr is not None
                output = self._process.stderr.read().decode(errors="replace").strip()[-500:]
                self.close()
                raise TransportError(f"ssh to {server} ended with status {self._process.returncode}: {output}")
            try:
                socket.create_connection(("127.0.0.1", self.port), 1.0).close()
            except OSError:
                time.sleep(0.1)
            else:
                return
        self.close()
        raise TransportError(f"ssh to {server} opened no tunnel within {DEADLINE:g} s.")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
