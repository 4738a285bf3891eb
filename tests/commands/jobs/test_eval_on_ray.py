# SPDX-License-Identifier: Apache-2.0
"""`ns eval` and its neighbours on a real Ray cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.commands.clusters import SERVED, SUMS, Place, answers, reachable_server
from tests.commands.running import rows_of
from tests.conftest import FakeServerFactory
from tests.launch.places import until
from tests.launch.ray_cluster import RayCluster
from tests.launch.slurm_cluster import unusable

pytestmark = pytest.mark.slow


@pytest.fixture
def others(tmp_path: Path) -> Place:
    """A place with all kinds of clusters but Ray's, whose nodes keep CPUs busy while they wait."""
    place = Place(tmp_path)
    place.config("mine", "executor: none")
    place.config("boxes", "executor: local")
    place.config("real", "executor: slurm\ndefault_timeout: 00:10:00")
    return place


@pytest.fixture
def place(others: Place, ray_cluster: RayCluster) -> Place:
    others.env.update(RAY_AUTH_TOKEN=ray_cluster.environ["RAY_AUTH_TOKEN"])
    others.config("ray", f"executor: ray\nray: {{address: '{ray_cluster.address}', default_num_cpus: 0.5}}")
    return others


def line(cluster: str, url: str, *options: str) -> str:
    words = f"ns eval --cluster={cluster} --benchmarks=./sums.py:2 --server_type=vllm --model=fake --num_jobs=2"
    return " ".join([words, f"--server_address={url} --output_dir=out-{cluster} --expname={cluster}", *options])


def records(place: Place, cluster: str) -> list[object]:
    """All rows without what tells of times."""
    folder = place.folder / f"out-{cluster}/eval-results/own-sums"
    rows = [row for seed in range(2) for row in rows_of(folder / f"output-rs{seed}.jsonl")]
    return [{key: value for key, value in row.items() if "time" not in key} for row in rows]


def test_one_line_makes_equal_records_everywhere(
    others: Place, fake_server: FakeServerFactory, request: pytest.FixtureRequest
) -> None:
    server = fake_server(answers(), process=True) if unusable() else reachable_server(answers())
    clusters = ["mine", "boxes", *([] if unusable() else ["real"]), "ray"]
    try:
        for cluster in clusters:
            place = request.getfixturevalue("place") if cluster == "ray" else others
            done = place.ns(line(cluster, server.url))
            assert done.returncode == 0, done.stderr
            states = place.ended(cluster)
            assert set(states.values()) == {"completed"}, (states, place.logs(cluster))
    finally:
        server.stop()
    assert len(records(place, "ray")) == 2 * len(SUMS)
    for cluster in clusters:
        assert records(place, cluster) == records(place, "ray"), cluster
        metrics = json.loads((place.folder / f"out-{cluster}/metrics.json").read_text())["own-sums"]
        assert metrics["pass@1[avg-of-2]"]["symbolic_correct"] == 100.0
    again = place.ns(line("ray", server.url))
    assert (again.returncode, "nothing to do" in again.stderr) == (0, True), again.stderr


@pytest.mark.nightly
def test_jobs_on_ray_are_followed_cancelled_and_resumed(place: Place, fake_server: FakeServerFactory) -> None:
    slow = fake_server(answers(latency=600.0), process=True)
    shown = place.ns(line("ray", slow.url, "--dry_run"))
    assert shown.returncode == 0, shown.stderr
    assert "executor ray" in shown.stdout
    assert not (place.folder / "jobs").exists()
    submitted = place.ns(line("ray", slow.url))
    assert submitted.returncode == 0, submitted.stderr
    assert "ns status ray" in submitted.stdout
    until(lambda: bool(slow.records), "the first request")
    assert "running" in place.ns("ns status ray").stdout
    assert "ray" in place.ns("ns experiments").stdout
    assert "job starts" in place.ns("ns logs ray").stdout
    cancelled = place.ns("ns cancel ray")
    assert cancelled.returncode == 0, cancelled.stderr
    place.ns("ns cancel ray")  # the second time gives up the requests in flight
    assert set(place.ended("ray").values()) == {"cancelled"}, place.logs("ray")
    assert "cancelled" in place.ns("ns status ray").stdout
    quick = fake_server(answers(), process=True)
    assert place.ns(line("ray", quick.url)).returncode == 0
    assert set(place.ended("ray").values()) == {"completed"}, place.logs("ray")
    assert len(records(place, "ray")) == 2 * len(SUMS)


@pytest.mark.nightly
def test_a_server_and_a_sandbox_run_beside_the_client(place: Place) -> None:
    """Two jobs at once: an evaluation with a server in another group, and a command with a sandbox."""
    hosted = f"--server_type=generic --server_gpus=0 --model=fake --server_entrypoint={SERVED}"
    done = place.ns(
        f"ns eval --cluster=ray --benchmarks=./sums.py {hosted} --heterogeneous --output_dir=out --expname=het"
    )
    assert done.returncode == 0, done.stderr
    code = 'exec 3<>"/dev/tcp/$NEMO_SKILLS_SANDBOX_HOST/$NEMO_SKILLS_SANDBOX_PORT" && echo reached'
    done = place.ns("ns run_cmd --cluster=ray --with_sandbox --expname=boxed bash -c", code)
    assert done.returncode == 0, done.stderr
    for name in ("het", "boxed"):
        assert set(place.ended(name).values()) == {"completed"}, place.logs(name)
    assert len(rows_of(place.folder / "out/eval-results/own-sums/output.jsonl")) == 10
    assert "reached" in place.logs("boxed")


@pytest.mark.nightly
def test_a_cluster_is_tried_and_a_pipeline_rehearsed(place: Place, fake_server: FakeServerFactory) -> None:
    server = fake_server(answers())
    tried = place.ns("ns doctor --cluster=ray")
    assert tried.returncode == 0, tried.stdout
    assert "head: 1, left: 1, memory: " in tried.stdout
    rehearsed = place.ns(f"ns rehearse {line('ray', server.url).removeprefix('ns ')}")
    assert "it would take" in rehearsed.stdout, rehearsed.stdout + rehearsed.stderr
    ray = (place.folder / "cluster_configs/ray.yaml").read_text()
    (place.folder / "cluster_configs/greedy.yaml").write_text(ray.replace("0.5", "64"))
    refused = place.ns(line("greedy", server.url))
    assert refused.returncode != 0
    assert "no node has CPU: 64; the most that a node has is CPU: 2 (" in refused.stderr
    assert not place.experiments("greedy") or not place.experiments("greedy")[0].handles
