# SPDX-License-Identifier: Apache-2.0
"""Slurm through a real ssh server, as another user than the one who runs the tests."""

from __future__ import annotations

import os
import pwd
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.launch.needs import lacking, require_ssh
from tests.launch.places import job
from tests.launch.slurm_cluster import bash, ended, finished, require_cluster, slurm, submitted, until
from tests.launch.sshd import HOST, Sshd

from newskills.base.errors import ConfigError
from newskills.launch.cluster import SshTunnel
from newskills.launch.executors.slurm import Slurm

pytestmark = pytest.mark.usefixtures("cluster")

OTHER = os.environ.get("NEWSKILLS_SLURM_USER", "dev")
"""A user who is not root and whom the nodes know."""


@pytest.fixture(scope="module", autouse=True)
def cluster() -> None:
    require_cluster()


class Login:
    """As `OTHER` on a machine that submits; `folder` is that user's own, on a disk that all nodes see."""

    def __init__(self, server: Sshd, folder: Path) -> None:
        self.folder = folder
        config = server.folder / "config-other"
        config.write_text(server.entry(HOST, User=OTHER))
        self.environ = {
            "NEWSKILLS_SSH_CONFIG": str(config),
            "PATH": os.environ["PATH"],
            "MY_TOKEN": "hunter2hunter2",
        }

    def executor(self, name: str) -> Slurm:
        conf = os.environ.get("SLURM_CONF", "")
        tunnel = SshTunnel(host=HOST, pre_command=f"export SLURM_CONF='{conf}'" if conf else "")
        return slurm(self.folder / name, environ=self.environ, ssh_tunnel=tunnel)


@pytest.fixture(scope="module")
def login() -> Iterator[Login]:
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


def test_jobs_run_as_the_user_who_logs_in(login: Login) -> None:
    executor = login.executor("a 'path' with $odd \"characters\"")
    who = bash("main", 'echo "$(id -un) ${MY_TOKEN: -4} $*"', "it's", 'a "b" $c', secrets=("MY_TOKEN",))
    state, where = finished(executor, job("one", who))
    assert state == "completed"
    assert (where / "logs" / "main.log").read_text() == f'{OTHER} ter2 it\'s a "b" $c\n'
    handle = (where / "job.handle").read_text().split()[0]
    assert f'{OTHER} ter2 it\'s a "b" $c' in list(executor.logs(handle))
    assert stat.S_IMODE(where.stat().st_mode) == 0o700
    assert not [file for file in where.rglob("*") if file.is_file() and b"hunter2" in file.read_bytes()]
    assert {file.owner() for file in where.rglob("*")} == {OTHER}


def test_many_jobs_go_in_one_trip(login: Login) -> None:
    executor = login.executor("many")
    handles = submitted(executor, *(job(f"j{number}", bash("main", "true")) for number in range(10)))
    assert len(set(handles.values())) == 10
    assert set(ended(executor, list(handles.values())).values()) == {"completed"}


def test_two_users_do_not_disturb_each_other(login: Login, tmp_path: Path) -> None:
    theirs, mine = login.executor("two"), slurm(tmp_path)
    stay = job("same-name", bash("main", "touch here; exec sleep 600"))
    handles = [theirs.submit(stay), mine.submit(stay)]
    until((login.folder / "two/same-name/here").exists, "their job")
    until((tmp_path / "same-name/here").exists, "my job")
    assert set(theirs.state(handles).values()) == {"running"}
    with pytest.raises(ConfigError, match="denied"):
        theirs.cancel([handles[1]])
    theirs.cancel([handles[0]])
    assert ended(theirs, [handles[0]]) == {handles[0]: "cancelled"}
    assert mine.state([handles[1]]) == {handles[1]: "running"}
    mine.cancel([handles[1]])
    assert ended(mine, [handles[1]]) == {handles[1]: "cancelled"}
