# SPDX-License-Identifier: Apache-2.0
"""A real ssh server on loopback, and the ssh config that leads to it."""

from __future__ import annotations

import getpass
import os
import shlex
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.launch.needs import require_ssh

from newskills.launch.clusters.config import SshTunnel
from newskills.launch.machines.ssh import RemoteMachine

HOST = "far-away"


class Sshd:
    """`config` is for NEWSKILLS_SSH_CONFIG; the host in it is `HOST`."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.user = folder, getpass.getuser()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        for key in ("host", "id", "stranger"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key], check=True)
        shutil.copy(folder / "id.pub", folder / "authorized_keys")
        public = " ".join((folder / "host.pub").read_text().split()[:2])
        (folder / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {public}\n")
        (folder / "sshd_config").write_text(
            f"ListenAddress 127.0.0.1\nPort {self.port}\nHostKey {folder}/host\nPidFile none\n"
            f"AuthorizedKeysFile {folder}/authorized_keys\nStrictModes no\nPasswordAuthentication no\n"
            "KbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\nUsePAM no\nUseDNS no\n"
            "MaxSessions 50\nMaxStartups 100\nSubsystem sftp internal-sftp\n"
        )
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        self.config = folder / "config"
        self.config.write_text(self.entry(HOST))
        self.process = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        program = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin:/sbin")
        assert program is not None
        with (self.folder / "log").open("wb") as log:
            process = subprocess.Popen([program, "-D", "-e", "-f", self.folder / "sshd_config"], stderr=log)
        until = time.monotonic() + 300
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return process
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError((self.folder / "log").read_text())
            time.sleep(0.02)

    def say(self, text: str) -> None:
        """From now on its login shell prints `text` before any command, as some ~/.bashrc do."""
        self.stop()
        with (self.folder / "sshd_config").open("a") as config:
            config.write(f'ForceCommand echo {shlex.quote(text)}; eval "$SSH_ORIGINAL_COMMAND"\n')
        self.process = self._started()

    def entry(self, host: str, **settings: str) -> str:
        given = {
            "HostName": "127.0.0.1",
            "Port": str(self.port),
            "User": self.user,
            "IdentityFile": str(self.folder / "id"),
            "IdentitiesOnly": "yes",
            "UserKnownHostsFile": str(self.folder / "known_hosts"),
            **settings,
        }
        return f"Host {host}\n" + "".join(f"  {key} {value}\n" for key, value in given.items())

    def environ(self, config: Path | None = None) -> dict[str, str]:
        return {"NEWSKILLS_SSH_CONFIG": str(config or self.config)}

    def remote(self, host: str = HOST, **settings: object) -> RemoteMachine:
        return RemoteMachine(SshTunnel(host=host, **settings), self.environ())

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


@pytest.fixture(scope="session")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    require_ssh()
    server = Sshd(tmp_path_factory.mktemp("sshd"))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def remote(sshd: Sshd) -> Iterator[RemoteMachine]:
    """Connected, and hung up at the end."""
    there = sshd.remote()
    yield there
    there.hang_up()
