# SPDX-License-Identifier: Apache-2.0
"""Slurm through a real ssh server, as another user than the one who runs the tests."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from tests.launch.places import job
from tests.launch.slurm_cluster import bash, ended, finished, printed, slurm, submitted, until
from tests.launch.slurm_login import OTHER, Login, login

from newskills.base.errors import ConfigError

__all__ = ["login"]


def test_jobs_run_as_the_user_who_logs_in(login: Login) -> None:
    executor = login.executor("a 'path' with $odd \"characters\"")
    who = bash("main", 'echo "$(id -un) ${MY_TOKEN: -4} $*"', "it's", 'a "b" $c', secrets=("MY_TOKEN",))
    state, where = finished(executor, job("one", who))
    assert state == "completed"
    assert printed(where) == f'{OTHER} ter2 it\'s a "b" $c\n'
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
