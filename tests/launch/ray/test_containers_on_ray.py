# SPDX-License-Identifier: Apache-2.0
"""Executor ray with `ray.image`: jobs in containers that real Ray starts by real podman."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.environments.images import PROGRAMS
from tests.launch.containers import IMAGE, client, make_image, server
from tests.launch.places import job
from tests.launch.ray_cluster import LIBRARIES, SOURCES, RayCluster, ended, ray_jobs

from newskills.base.plan import Ref

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

OWN_IMAGE = IMAGE.replace("newskills-test", "newskills-ray")
PODMAN = """\
#!/bin/bash
# The image has no Ray: this machine's own is mounted. And root's podman takes no --userns=keep-id.
words=()
for word; do [[ $word == --userns=keep-id && $UID == 0 ]] || words+=("$word"); done
[[ ${{words[0]}} == run ]] && words=(run --volume={packages}:{place}:ro "${{words[@]:1}}")
exec {podman} "${{words[@]}}"
"""
PLACE = "import site; print(site.getsitepackages()[0])"
WHERE = """
import os, pathlib, sys, urllib.request
print(urllib.request.urlopen(sys.argv[1] + "/health").status, os.path.exists("/run/.containerenv"), flush=True)
pathlib.Path(sys.argv[2], "written").write_text("here")
"""


@pytest.fixture
def cluster(podman: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RayCluster]:
    """One node, which finds `PODMAN` first."""
    pytest.importorskip("ray", reason="no Ray here: pip install 'ray[default]'")
    make_image(tmp_path, OWN_IMAGE, (*PROGRAMS, "python"))
    words = ["podman", "run", "--rm", OWN_IMAGE, "python", "-c", PLACE]
    place = subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
    wrapper = tmp_path / "bin/podman"
    wrapper.parent.mkdir()
    packages = sysconfig.get_path("purelib")
    wrapper.write_text(PODMAN.format(packages=packages, place=place, podman=shutil.which("podman")))
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{wrapper.parent}{os.pathsep}{os.environ['PATH']}")
    made = RayCluster(cpus=2)
    try:
        yield made
    finally:
        made.stop()
        subprocess.run(["podman", "rmi", "--force", OWN_IMAGE], check=False, capture_output=True)


def test_a_job_and_its_server_run_in_the_image(cluster: RayCluster, tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    executor = ray_jobs(
        cluster,
        tmp_path / "e",
        ray={"image": OWN_IMAGE},
        mounts=[*(f"{path}:{path}:ro" for path in (SOURCES, LIBRARIES)), f"{tmp_path}/rows:{tmp_path}/rows"],
    )
    work = client("main", WHERE, Ref("server"), str(tmp_path / "rows"))
    handle = executor.submit(job("j", server(), work))
    assert ended(executor, [handle]) == {handle: "completed"}, "\n".join(executor.logs(handle))
    assert (tmp_path / "e/j/logs/main.log").read_text().endswith("200 True\n")
    assert (tmp_path / "rows/written").read_text() == "here"
