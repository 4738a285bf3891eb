# SPDX-License-Identifier: Apache-2.0
"""A generation module that declares packages finds them: in this process, in containers, on a Slurm cluster."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

import pytest
from tests.base.wheels import index, wheel
from tests.commands.clusters import SUMS, Place, reachable_server
from tests.commands.running import rows_of, write
from tests.conftest import FakeServerFactory
from tests.launch.containers import IMAGE, podman
from tests.launch.slurm_cluster import require_cluster
from tests.server import Answer, Script

__all__ = ["podman"]

TASK = """
import nsloud
from newskills.solve.chat import ask

REQUIREMENTS = ["nsloud>=1"]

class Loud:
    def __init__(self, parts): self.chat = parts.chat
    def request(self, sample): return self.chat.request(sample)
    async def solve(self, sample, request, kit):
        reply = await ask(kit.models["main"], request)
        return await self.chat.attempt(sample, request, reply, nsloud.louder(self.chat.text(reply)))

SOLVER = Loud
"""
LINE = (
    "ns generate --generation_module={task} --input_file={here}/in.jsonl --output_dir={here}/out --server_type=vllm "
    "--model=fake ++prompt_config=generic/math"
)
PACKAGES = sysconfig.get_path("purelib")
SAYS = Script(answer=Answer(text="hush"))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    wheel(tmp_path / "wheels", "nsloud", "1.0", "def louder(text): return text.upper() + '!'\n")
    (tmp_path / "task.py").write_text(TASK)
    write(tmp_path / "in.jsonl", SUMS)
    place.env |= {**index(tmp_path / "wheels"), "NEWSKILLS_CACHE": str(tmp_path / "cache")}
    return place


def line(place: Place, here: str = "", task: str = "task.py") -> str:
    return LINE.format(here=here or place.folder, task=task)


def is_loud(place: Place) -> bool:
    return {row["generation"] for row in rows_of(place.folder / "out/output.jsonl")} == {"HUSH!"}


def test_this_process_installs_first_and_a_dry_run_does_not(place: Place, fake_server: FakeServerFactory) -> None:
    server = fake_server(SAYS)
    shown = place.ns(f"{line(place)} --server_address={server.url} --dry_run")
    assert shown.returncode == 0, shown.stderr
    assert "task.py declares nsloud>=1, which a run installs first" in shown.stdout
    assert not (place.folder / "cache/requirements").exists()
    done = place.ns(f"{line(place)} --server_address={server.url}")
    assert done.returncode == 0, done.stderr
    assert "installing nsloud==1.0 for task.py" in done.stderr
    assert is_loud(place)


def test_what_cannot_be_installed_is_said_before_the_first_request(
    place: Place, fake_server: FakeServerFactory
) -> None:
    server = fake_server(SAYS)
    (place.folder / "task.py").write_text(TASK.replace("nsloud>=1", "nsloud>=7"))
    done = place.ns(f"{line(place)} --server_address={server.url}")
    assert done.returncode == 2
    assert "task.py declares nsloud>=7, which pip cannot install" in done.stderr
    assert "Traceback" not in done.stderr
    assert server.records == []


@pytest.mark.nightly
def test_jobs_in_containers_install_it_there(place: Place, podman: None, fake_server: FakeServerFactory) -> None:
    server = fake_server(SAYS)
    place.config(
        "box",
        f"executor: local\nengine: podman\nskip_hf_home_check: true\ncontainers: {{nemo-skills: {IMAGE}}}\n"
        f"mounts: ['{place.folder}:/work', '{PACKAGES}:/packages:ro']\n"
        "env_vars: ['PYTHONPATH=/packages', PIP_NO_INDEX=1, PIP_FIND_LINKS=/work/wheels, NEWSKILLS_CACHE=/work/cache]",
    )
    words = f"{line(place, '/work', '/work/task.py')} --cluster=box --server_address={server.url} --expname=box"
    done = place.ns(words)
    assert done.returncode == 0, done.stderr + place.logs("box")
    assert "the first prompt is not shown here, only in the jobs" in done.stderr
    assert "installing nsloud==1.0" in place.logs("box")
    assert is_loud(place)


@pytest.mark.nightly
def test_jobs_on_a_cluster_find_what_was_installed_at_submission(place: Place) -> None:
    require_cluster()
    place.config(
        "real",
        "executor: slurm\ndefault_timeout: 00:10:00\n"
        f"env_vars: [NEWSKILLS_CACHE={place.folder}/cache, PIP_NO_INDEX=1, PIP_FIND_LINKS={os.devnull}]",
    )
    with reachable_server(SAYS) as server:
        done = place.ns(f"{line(place)} --cluster=real --server_address={server.url} --expname=real")
        assert done.returncode == 0, done.stderr
        assert "installing nsloud==1.0" in done.stderr
        assert set(place.ended("real").values()) == {"completed"}, place.logs("real")
    assert "installing" not in place.logs("real")
    assert is_loud(place)
