# SPDX-License-Identifier: Apache-2.0
"""Ray on three nodes of a real cluster, inside one job."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest
from tests.launch.slurm_cluster import ended, require_cluster, story

from newskills.launch.declarative import Command, CommandGroup, HardwareConfig, Pipeline
from newskills.launch.scripts.script import BaseJobScript
from newskills.launch.submit import executor_of

COUNT = """\
import ray, socket, sys
ray.init(log_to_driver=False, logging_level="ERROR")

@ray.remote(num_cpus=0, scheduling_strategy="SPREAD")
def where():
    return socket.gethostname(), ray._private.worker._global_node.get_temp_dir_path()

nodes = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
seen = ray.get([where.options(scheduling_strategy=strategy(node, soft=False)).remote() for node in nodes])
hosts, folders = zip(*seen)
print("ran on", len(set(hosts)), "hosts", sys.argv[1], "with", len(set(folders)), "folders", flush=True)
"""


@pytest.mark.nightly
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs Ray: pip install ray")
def test_a_client_inside_ray_on_three_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_cluster()
    monkeypatch.setenv("NEWSKILLS_EXPERIMENTS_DIR", str(tmp_path / "experiments"))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    client = BaseJobScript([sys.executable, "-c", "import ray.util.scheduling_strategies\n" + COUNT, "it's all"])
    group = CommandGroup([Command(client, name="main")], hardware=HardwareConfig(num_nodes=3))
    cluster = {"executor": "slurm", "job_dir": str(tmp_path / "jobs"), "default_timeout": "00:10:00"}
    experiment = Pipeline("ray", cluster, [{"name": "count", "group": group}], with_ray=True).run()
    executor = executor_of(experiment, os.environ)
    states = ended(executor, list(experiment.handles), 600)
    told = story(Path(experiment.jobs[0].folder))
    assert set(states.values()) == {"completed"}, told
    assert "ran on 3 hosts it's all with 3 folders" in told
