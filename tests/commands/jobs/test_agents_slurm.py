# SPDX-License-Identifier: Apache-2.0
"""Agents in the jobs of a real Slurm cluster, one node of which is taken away."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.commands.clusters import Place, reachable_server
from tests.commands.running import rows_of
from tests.environments.small_tasks import REPLY, small_tasks
from tests.launch.needs import lacking
from tests.launch.slurm.test_slurm_faults import dead
from tests.launch.slurm_cluster import require_cluster, until
from tests.server import Answer, Script

from newskills_sandbox.probes import run_probes, strongest_level

TASKS = 40


@pytest.fixture
def place(tmp_path: Path) -> Place:
    require_cluster()
    if strongest_level(run_probes()) != "a":
        lacking("CONTAINERS", "this machine does not give sessions folders of their own")
    place = Place(tmp_path)
    place.config("real", "executor: slurm\ndefault_timeout: 00:20:00")
    small_tasks(tmp_path, TASKS, "none")
    assert place.ns("ns prepare_data ./small.py").returncode == 0
    return place


def running(place: Place) -> dict[str, str]:
    """Handle → node, of the jobs of the chunks that run."""
    words = ["squeue", "--noheader", "--array", "--format=%i %T %N"]
    shown = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    rows = [row for line in shown.splitlines() if len(row := line.split()) == 3 and row[1] == "RUNNING"]
    nodes = {row[0]: row[2] for row in rows}
    handles = place.experiments("act")[0].handles
    return {handle: nodes[handle] for handle in handles if handle in nodes}


@pytest.mark.nightly
@pytest.mark.slow
def test_forty_tasks_over_four_jobs_with_a_node_taken_away(place: Place) -> None:
    script = Script(answer=Answer(kind="text", text=REPLY.format(seconds=1)))
    with reachable_server(script) as server:
        done = place.ns(
            "ns eval --cluster=real --benchmarks=./small.py --num_chunks=4 --exclusive ++agent=bash "
            f"++environment.engine=sandbox ++environment.at_once=2 --server_type=vllm --model=fake "
            f"--server_address={server.url} --output_dir=out --expname=act"
        )
        assert done.returncode == 0, done.stderr
        until(lambda: running(place) and len(server.records) >= 6, lambda: f"work begins: {place.logs('act')}")
        handle, node = next(iter(running(place).items()))
        with dead(node):
            until(lambda: running(place).get(handle) != node, "the loss of the node")
            subprocess.run(["scontrol", "update", f"jobid={handle}", "starttime=now"], check=False)
            until(lambda: handle in running(place) or len(server.records) >= TASKS, "the job goes on elsewhere")
        states = place.ended("act", patience=500.0)
        assert set(states.values()) == {"completed"}, (states, place.logs("act"))
    records = rows_of(place.folder / "out/eval-results/small/output.jsonl")
    assert [record["id"] for record in records] == [f"task-{number:02}" for number in range(TASKS)]
    assert {record["outcome"] for record in records} == {"correct"}
    assert "(restart 1)" in place.logs("act")
