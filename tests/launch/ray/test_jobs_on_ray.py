# SPDX-License-Identifier: Apache-2.0
"""Executor ray on a real Ray cluster of three nodes."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest
from tests.launch.places import client, job, python, server, until
from tests.launch.ray_cluster import RayCluster, children, ended, processes_with, ray_jobs

from newskills.base.errors import ConfigError, LockedError, UnknownNameError
from newskills.base.plan import Command, CommandGroup, HardwareConfig, Job, Ready, Ref, Script
from newskills.launch.place import PendingJob

pytestmark = pytest.mark.slow

FETCH = """
import sys, urllib.request
print(urllib.request.urlopen(sys.argv[1] + "/health").status, flush=True)
"""
SAVES = """
import pathlib, signal, sys, time
def save(*_):
    pathlib.Path(sys.argv[1]).write_text("saved")
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
pathlib.Path(sys.argv[1] + ".ready").touch()
time.sleep(600)
"""
ONE_LINE_AFTER_ANOTHER = """
import pathlib, sys, time
path, go = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
lines = path.read_text().splitlines() if path.exists() else []
with path.open("a") as out:
    for number in range(len(lines), 10):
        out.write(f"{number}\\n")
        out.flush()
        while number >= 4 and not go.exists():
            time.sleep(0.05)
"""


def on(node: str, *commands: Command, name: str = "j", **hardware: object) -> Job:
    """A job for that node."""
    needs = HardwareConfig(partition=node, **hardware)
    return Job(name=name, groups=(CommandGroup(name="all", commands=commands, hardware=needs),))


WHERE = """
import os, pathlib, sys, time
def raylet(pid):
    while pathlib.Path(pathlib.Path(f"/proc/{pid}/cmdline").read_text().partition(chr(0))[0]).name != "raylet":
        pid = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return pid
rank, place = sys.argv[1], pathlib.Path(sys.argv[2])
(place / f"rank-{rank}").write_text(f"{raylet(os.getpid())} {os.environ['NEWSKILLS_FIRST_NODE']}")
while not (place / "go").exists():
    time.sleep(0.05)
print("rank", rank, flush=True)
"""
FAKE_VLLM = """
import http.server, ray, sys
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
ray.init(log_to_driver=False)
group = placement_group([{"CPU": 0.5}] * 2, strategy="STRICT_SPREAD")
ray.get(group.ready(), timeout=120)
@ray.remote(num_cpus=0.5)
def node():
    return ray.get_runtime_context().get_node_id()
places = [PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=rank) for rank in range(2)]
workers = [node.options(scheduling_strategy=place).remote() for place in places]
print("shards on", len(set(ray.get(workers, timeout=120))), "nodes", flush=True)
class Health(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
http.server.HTTPServer(("", int(sys.argv[1])), Health).serve_forever()
"""


def over_two(name: str, *commands: Command) -> Job:
    """A job that gets a CPU on each of two nodes."""
    group = CommandGroup(name="all", commands=commands, hardware=HardwareConfig(num_nodes=2))
    return Job(name=name, groups=(group,))


PARTITIONS = {"partitions": {name: {name: 0.1, "CPU": 0.1} for name in ("head", "left", "right", "spare")}}


@pytest.mark.nightly
def test_jobs_with_servers_secrets_and_dependencies(ray_cluster: RayCluster, tmp_path: Path) -> None:
    environ = {"MY_SECRET_KEY": "only-for-the-job-1234", "PLAIN": "plain"}
    executor = ray_jobs(
        ray_cluster,
        tmp_path / "e",
        environ=environ,
        env_vars=["MY_SECRET_KEY", "GREETING=hello"],
        dependency_type="afterok",
    )
    shows = "import os; print(os.environ['MY_SECRET_KEY'], os.environ['GREETING'], os.environ.get('PLAIN'))"
    jobs = [
        PendingJob(job("served", server(), client("main", FETCH, Ref("server")))),
        PendingJob(job("shows", client("main", shows)), (), ("served",)),
        PendingJob(job("fails", client("main", "raise SystemExit(3)")), (), ("shows",)),
        PendingJob(job("never", client("main", "")), (), ("fails",)),
    ]
    handles = executor.submit_all(jobs)
    assert executor.find(list(handles)) == handles
    states = ended(executor, list(handles.values()))
    assert [states[handles[name]] for name in ("served", "shows", "fails", "never")] == [
        *("completed", "completed", "failed", "cancelled")
    ]
    assert (tmp_path / "e/served/logs/main.log").read_text().endswith("200\n")
    assert (tmp_path / "e/shows/logs/main.log").read_text() == "only-for-the-job-1234 hello None\n"
    assert "3 failed" in (tmp_path / "e/fails/job.exit").read_text()
    assert "its dependency fails is failed" in (tmp_path / "e/never/job.exit").read_text()
    assert "200" in list(executor.logs(handles["served"]))
    texts = [file.read_text(errors="replace") for file in (tmp_path / "e").rglob("*") if file.is_file()]
    assert sum("only-for-the-job-1234" in text for text in texts) == 1, "in no file but the log of who prints it"
    submission = handles["served"].partition("/")[0]
    assert "only-for-the-job" not in json.dumps(ray_cluster.api().job(submission))

    later = ray_jobs(ray_cluster, tmp_path / "later", dependency_type="afterok")
    assert later.state([handles["served"]]) == {handles["served"]: "completed"}
    good = later.submit(job("later", client("main", "print('later')")), after=[handles["served"]])
    assert ended(later, [good]) == {good: "completed"}
    with pytest.raises(ConfigError, match="Ray does not know job nobody-1/x"):
        later.submit(job("later", client("main", "")), after=["nobody-1/x"])
    assert later.state(["nobody-1/x"]) == {"nobody-1/x": "unknown"}


@pytest.mark.nightly
def test_cancelled_jobs_save_their_work(ray_cluster: RayCluster, tmp_path: Path) -> None:
    executor = ray_jobs(ray_cluster, tmp_path / "e", ray=PARTITIONS)
    saved = tmp_path / "saved"
    handles = executor.submit_all(
        [
            PendingJob(on("left", client("main", SAVES, str(saved)), name="runs")),
            PendingJob(on("left", client("main", ""), name="waits"), (), ("runs",)),
        ]
    )
    until(Path(f"{saved}.ready").exists, "the client to start")
    until(lambda: executor.state([handles["runs"]]) == {handles["runs"]: "running"}, "its state")
    with pytest.raises(LockedError, match="are still running"):
        executor.submit(on("left", client("main", ""), name="runs"))
    executor.cancel(list(handles.values()))
    assert set(ended(executor, list(handles.values())).values()) == {"cancelled"}
    assert saved.read_text() == "saved"
    assert "143 cancelled" in (tmp_path / "e/runs/job.exit").read_text()
    executor.cancel(list(handles.values()))
    again = executor.submit(on("left", client("main", "print('again')"), name="runs"))
    assert ended(executor, [again]) == {again: "completed"}


@pytest.mark.nightly
def test_ray_stops_an_experiment(ray_cluster: RayCluster, tmp_path: Path) -> None:
    """As `ray job stop` does, which leaves jobs the time to save their work."""
    executor = ray_jobs(ray_cluster, tmp_path / "e", ray=PARTITIONS)
    saved = tmp_path / "saved"
    handle = executor.submit(on("right", client("main", SAVES, str(saved))))
    until(Path(f"{saved}.ready").exists, "the client to start")
    ray_cluster.api().stop(handle.partition("/")[0])
    assert ended(executor, [handle]) == {handle: "cancelled"}
    assert saved.read_text() == "saved"


@pytest.mark.nightly
def test_the_time_limit_and_what_goes_on_after_it(ray_cluster: RayCluster, tmp_path: Path) -> None:
    executor = ray_jobs(ray_cluster, tmp_path / "e", ray=PARTITIONS)
    lives = tmp_path / "lives"
    twice = """
import pathlib, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
with open(sys.argv[1], "a") as file: file.write("life\\n")
if len(pathlib.Path(sys.argv[1]).read_text().split()) < 2: time.sleep(600)
"""
    chain = on("left", client("main", twice, str(lives)), name="chain", time_limit="00:00:15")
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    alone = on("right", client("main", stubborn), name="alone", time_limit="00:00:15")
    with_copy = Job(name="chain", groups=chain.groups, copies=4)
    handles = executor.submit_all([PendingJob(with_copy), PendingJob(alone)])
    states = ended(executor, list(handles.values()))
    assert (states[handles["chain"]], lives.read_text()) == ("completed", "life\n" * 2)
    assert states[handles["alone"]] == "timeout"
    assert (tmp_path / "e/alone/job.exit").read_text().startswith("75 time ")


@pytest.mark.nightly
def test_groups_share_the_gpus_of_a_node(ray_cluster: RayCluster, tmp_path: Path) -> None:
    shows = "import os; print(os.environ['CUDA_VISIBLE_DEVICES'])"
    groups = [
        CommandGroup(name=name, commands=(client(name, shows),), hardware=HardwareConfig(num_gpus=gpus))
        for name, gpus in (("three", 3), ("none", 0), ("one", 1))
    ]
    executor = ray_jobs(ray_cluster, tmp_path / "e")
    handle = executor.submit(Job(name="j", groups=tuple(groups)))
    assert ended(executor, [handle]) == {handle: "completed"}
    seen = {name: (tmp_path / f"e/j/logs/{name}.log").read_text().strip() for name in ("three", "none", "one")}
    assert (len(seen["three"].split(",")), seen["none"], len(seen["one"].split(","))) == (3, "", 1)
    assert sorted([*seen["three"].split(","), seen["one"]]) == ["0", "1", "2", "3"]


def test_what_no_node_has_is_said_before_anything_is_submitted(ray_cluster: RayCluster, tmp_path: Path) -> None:
    executor = ray_jobs(ray_cluster, tmp_path / "e", ray=PARTITIONS)
    with pytest.raises(
        ConfigError, match=r"Job 'j': no node has CPU: 0.1, left: 0.1, GPU: 2; nodes have these apart"
    ):
        executor.submit(on("left", client("main", ""), num_gpus=2))
    with pytest.raises(
        ConfigError, match=r"no node has .*GPU: 9; the most that a node has is GPU: 4 \(\d nodes\)"
    ):
        executor.submit(on("right", client("main", ""), num_gpus=9))
    with pytest.raises(UnknownNameError, match=r"Unknown partition of job 'j' 'lift'; did you mean 'left'"):
        executor.submit(on("lift", client("main", "")))
    assert not (tmp_path / "e").exists()
    patient = ray_jobs(ray_cluster, tmp_path / "e", ray={**PARTITIONS, "autoscaling": True})
    handle = patient.submit(on("left", client("main", ""), num_gpus=2))
    until(lambda: "no node has" in patient.state([handle])[handle], "the reason why it waits")
    patient.cancel([handle])
    assert ended(patient, [handle]) == {handle: "cancelled"}


@pytest.mark.nightly
def test_a_lost_node_loses_nothing(ray_cluster: RayCluster, tmp_path: Path) -> None:
    """One of its nodes is killed in the middle; a node that has what the job needs comes later."""
    ray_cluster.add("spare")
    out, go = tmp_path / "out", tmp_path / "go"
    executor = ray_jobs(ray_cluster, tmp_path / "e", ray=PARTITIONS)
    handle = executor.submit(on("spare", client("main", ONE_LINE_AFTER_ANOTHER, str(out), str(go)), name="work"))
    until(lambda: out.exists() and out.read_text().count("\n") == 5, "the first half")
    pid = int((tmp_path / "e/work/job.started").read_text().split()[1])
    ray_cluster.kill("spare")
    until(lambda: executor.state([handle])[handle].startswith(("requeued", "pending")), "the loss to be seen")
    until(lambda: not Path(f"/proc/{pid}").exists(), "the end of what ran there")
    go.touch()
    time.sleep(1)
    assert out.read_text().split() == [str(number) for number in range(5)], "nobody goes on without a node"
    until(lambda: "no node has" in executor.state([handle])[handle], "the reason why it waits")
    ray_cluster.add("spare")
    assert ended(executor, [handle]) == {handle: "completed"}
    assert out.read_text().split() == [str(number) for number in range(10)]
    assert (tmp_path / "e/work/job.life").read_text() == "2\n"
    ray_cluster.kill("spare")


@pytest.mark.nightly
def test_a_supervisor_that_is_killed_leaves_nothing_behind(ray_cluster: RayCluster, tmp_path: Path) -> None:
    executor = ray_jobs(ray_cluster, tmp_path / "e", ray=PARTITIONS)
    argv = python(
        "import pathlib, sys, time; pathlib.Path(sys.argv[1]).touch(); time.sleep(600)", str(tmp_path / "up")
    )
    handle = executor.submit(on("left", Command(name="main", script=Script(argv=argv))))
    until((tmp_path / "up").exists, "the client to start")
    pid = int((tmp_path / "e/j/job.started").read_text().split()[1])
    for supervisor in processes_with(f"newskills.launch.ray.supervisor {tmp_path}/e"):
        os.kill(supervisor, signal.SIGKILL)
    assert ended(executor, [handle])[handle].startswith("failed (its supervisor has ended")
    until(lambda: not Path(f"/proc/{pid}").exists(), "the end of the job")


def spanning(place: Path) -> Command:
    argv = python(WHERE, Ref("main", "rank"), str(place))
    return Command(name="main", script=Script(argv=argv, all_nodes=True))


@pytest.mark.nightly
def test_a_job_over_two_nodes(ray_cluster: RayCluster, tmp_path: Path) -> None:
    executor = ray_jobs(ray_cluster, tmp_path / "e")
    handle = executor.submit(over_two("wide", spanning(tmp_path)))
    until(lambda: len(list(tmp_path.glob("rank-*"))) == 2, "both nodes")
    raylets, addresses = zip(*(path.read_text().split() for path in tmp_path.glob("rank-*")), strict=True)
    assert len(set(raylets)) == 2, "placed apart"
    assert len(set(addresses)) == 1, "both know the first one"
    (tmp_path / "go").touch()
    assert ended(executor, [handle]) == {handle: "completed"}
    assert (tmp_path / "e/wide/logs/main.log").read_text() == "rank 0\n"
    assert (tmp_path / "e/wide/logs/main-1.log").read_text() == "rank 1\n"
    with pytest.raises(ConfigError, match=r"it needs 9 nodes with CPU: 1; (\d) of \1 have that"):
        executor.submit(
            Job(
                name="wider",
                groups=(
                    CommandGroup(name="g", commands=(client("m", ""),), hardware=HardwareConfig(num_nodes=9)),
                ),
            )
        )


@pytest.mark.nightly
def test_a_server_over_two_nodes(ray_cluster: RayCluster, tmp_path: Path) -> None:
    """As vLLM does it: a cluster of Ray around the server's command, and a shard on each node."""
    words = ("-m", "newskills.launch.ray_node", "--nodes=2", Ref("server", "rank", "--rank="))
    meeting = (Ref("server", "host", "--host="), Ref("server", "port", "--port="), "--")
    argv = (sys.executable, *words, *meeting, sys.executable, "-c", FAKE_VLLM, Ref("server", "port"))
    script = Script(argv=argv, port=0, all_nodes=True, ready=Ready(path="/health", patience=300))
    wide = Command(name="server", role="server", script=script)
    executor = ray_jobs(ray_cluster, tmp_path / "e")
    handle = executor.submit(over_two("served", wide, client("main", FETCH, Ref("server"))))
    assert ended(executor, [handle]) == {handle: "completed"}, "\n".join(executor.logs(handle))
    assert (tmp_path / "e/served/logs/main.log").read_text().endswith("200\n")
    assert "shards on 2 nodes" in (tmp_path / "e/served/logs/server.log").read_text()


@pytest.mark.nightly
def test_a_job_over_two_nodes_that_loses_one(ray_cluster: RayCluster, tmp_path: Path) -> None:
    """It begins again as a whole on nodes that are left."""
    ray_cluster.add("spare")
    executor = ray_jobs(ray_cluster, tmp_path / "e")
    handle = executor.submit(over_two("wide", spanning(tmp_path)))
    until(lambda: len(list(tmp_path.glob("rank-*"))) == 2, "both nodes")
    raylets = {int(path.read_text().split()[0]) for path in tmp_path.glob("rank-*")}
    lost = next(
        name
        for name, process in ray_cluster.nodes.items()
        if name != "head" and raylets.intersection(children(process.pid))
    )
    ray_cluster.kill(lost)
    until(lambda: executor.state([handle])[handle].startswith(("requeued", "pending")), "the loss to be seen")
    for path in tmp_path.glob("rank-*"):
        path.unlink()
    until(lambda: len(list(tmp_path.glob("rank-*"))) == 2, "both nodes again")
    (tmp_path / "go").touch()
    assert ended(executor, [handle]) == {handle: "completed"}
    assert (tmp_path / "e/wide/job.life").read_text() == "2\n"
    if lost == "spare":
        return
    ray_cluster.kill("spare")
    ray_cluster.add(lost)
