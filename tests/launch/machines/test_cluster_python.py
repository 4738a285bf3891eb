# SPDX-License-Identifier: Apache-2.0
"""A Python without what newskills needs is found before anything is submitted."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.launch.jobs import cluster, pipeline

from newskills.base.errors import ConfigError
from newskills.base.plan import Command, CommandGroup, Job, Pipeline, Script
from newskills.launch.clusters.config import SshTunnel
from newskills.launch.clusters.trial import check_python
from newskills.launch.machines.shell import LocalMachine


@pytest.fixture
def bare_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A `python3` that has neither msgspec nor jinja2."""
    program = tmp_path / "bin/python3"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nprintf '3 12 1\\nmsgspec\\njinja2\\n'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")


def running(*words: str, setup: str = "") -> Pipeline:
    command = Command(name="main", script=Script(argv=words, setup=setup))
    return pipeline("p", Job(name="one", groups=(CommandGroup(name="group", commands=(command,)),)))


OURS = ("python3", "-m", "newskills", "eval")


@pytest.mark.usefixtures("bare_python")
def test_the_packages_that_jobs_lack_are_named_with_the_command(tmp_path: Path) -> None:
    far = cluster(tmp_path, executor="slurm", ssh_tunnel=SshTunnel(host="far"))
    with pytest.raises(ConfigError) as caught:
        check_python(running(*OURS), far, {}, LocalMachine())
    assert "lacks msgspec, jinja2: run python3 -m pip install msgspec jinja2 there" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("bare_python")
def test_jobs_that_need_no_packages_of_ours_are_left_alone(tmp_path: Path) -> None:
    far = cluster(tmp_path, executor="slurm", ssh_tunnel=SshTunnel(host="far"))
    check_python(running("echo", "hi"), far, {}, LocalMachine())
    check_python(running(*OURS, setup="pip install newskills"), far, {}, LocalMachine())
    check_python(running(*OURS), cluster(tmp_path, executor="slurm"), {}, LocalMachine())


def test_the_variables_of_jobs_are_set_for_it(tmp_path: Path) -> None:
    program = tmp_path / "jobs/python3"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 3 12 1\n[ $PLACE$HIDDEN = here ] || echo msgspec\n")
    program.chmod(0o755)
    path = f"PATH={program.parent}:/usr/bin:/bin"
    tunnel = SshTunnel(host="far")
    lacking = cluster(tmp_path, executor="slurm", ssh_tunnel=tunnel, env_vars=[path, "PLACE=not-here"])
    with pytest.raises(ConfigError, match="lacks msgspec"):
        check_python(running(*OURS), lacking, {}, LocalMachine())
    whole = cluster(tmp_path, executor="slurm", ssh_tunnel=tunnel, env_vars=[path, "PLACE=he", "HIDDEN"])
    check_python(running(*OURS), whole, {"HIDDEN": "re"}, LocalMachine())
