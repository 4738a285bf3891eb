# SPDX-License-Identifier: Apache-2.0
"""A machine that submits to the real Slurm cluster, behind a real ssh server, as another user than the tests' own."""

from __future__ import annotations

import os
import pwd
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.launch.needs import lacking, require_ssh
from tests.launch.slurm_cluster import require_cluster, slurm
from tests.launch.sshd import HOST, Sshd

from newskills.launch.clusters.config import SshTunnel
from newskills.launch.executors.slurm import Slurm

OTHER = os.environ.get("NEWSKILLS_SLURM_USER", "dev")
"""A user who is not root and whom the nodes know."""


class Login:
    """As `user` on a machine that submits; `folder` is `OTHER`'s own, on a disk that all nodes see."""

    def __init__(self, server: Sshd, folder: Path, user: str = OTHER) -> None:
        self.folder, self.server = folder, server
        config = server.folder / f"config-{user}"
        config.write_text(server.entry(HOST, User=user))
        self.environ = {
            "NEWSKILLS_SSH_CONFIG": str(config),
            "PATH": os.environ["PATH"],
            "MY_TOKEN": "hunter2hunter2",
        }

    def tunnel(self, before: str = "") -> SshTunnel:
        """`before`: bash that runs there before each command."""
        conf = os.environ.get("SLURM_CONF", "")
        known = [f"export SLURM_CONF='{conf}'"] if conf else []
        return SshTunnel(host=HOST, pre_command="; ".join([*known, *([before] if before else [])]))

    def executor(self, name: str) -> Slurm:
        return slurm(self.folder / name, environ=self.environ, ssh_tunnel=self.tunnel())


@pytest.fixture(scope="module")
def login() -> Iterator[Login]:
    require_cluster()
    require_ssh()
    if os.geteuid() != 0:
        lacking("SLURM", "only root can let another user in")
    try:
        user = pwd.getpwnam(OTHER)
    except KeyError:
        lacking("SLURM", f"there is no user '{OTHER}' here; NEWSKILLS_SLURM_USER names another one")
    with tempfile.TemporaryDirectory(prefix="login-", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "jobs").mkdir()
        os.chown(folder / "jobs", user.pw_uid, user.pw_gid)
        (folder / "sshd").mkdir()
        server = Sshd(folder / "sshd")
        yield Login(server, folder / "jobs")
        server.stop()
