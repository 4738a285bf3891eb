# SPDX-License-Identifier: Apache-2.0
"""Ray over several nodes of one real Slurm job."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.launch.slurm_cluster import finished, grouped, require_cluster, slurm, story

from newskills.base.plan import Command, CommandGroup, HardwareConfig, Ref, Script

NODES = 3
WORK = """
import os, socket, sys, time, ray
ray.init(log_to_driver=False, logging_level="ERROR")

@ray.remote(num_cpus=1, scheduling_strategy="SPREAD")
def where():
    time.sleep(0.2)
    return os.uname().nodename

until = time.monotonic() + 60
seen = set()
while len(seen) < 3 and time.monotonic() < until:
    seen |= set(ray.get([where.remote() for _ in range(6)]))
print(*sorted(seen))
sys.exit(0 if len(seen) == 3 else 4)
"""


@pytest.mark.slow
def test_ray_spans_the_nodes_of_a_job(tmp_path: Path) -> None:
    require_cluster()
    pytest.importorskip("ray", reason="no ray here: pip install 'newskills[dev]'")
    ray = (sys.executable, "-m", "newskills.launch.ray_node", f"--nodes={NODES}")
    where = (Ref("main", "rank", "--rank="), Ref("main", "node", "--host="), Ref("main", "port", "--port="))
    script = Script(
        argv=(*ray, *where, "--", sys.executable, "-c", WORK),
        port=0,
        all_nodes=True,
    )
    group = CommandGroup(
        name="all", commands=(Command(name="main", script=script),), hardware=HardwareConfig(num_nodes=NODES)
    )
    state, folder = finished(slurm(tmp_path), grouped("ray", group), patience=150)
    assert state == "completed", story(folder)
    said = (folder / "logs" / "main.log").read_text()
    names = next(line for line in said.splitlines() if len(line.split()) == NODES and "ray" not in line)
    assert len(set(names.split())) == NODES, said
