# SPDX-License-Identifier: Apache-2.0
"""Executor ray without a Ray cluster: what it says, and what its scripts and requests hold."""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.commands.running import ns
from tests.launch.places import client, job, until
from tests.launch.ray.test_ray_node import free_port

from newskills.base.errors import ConfigError, RemoteError
from newskills.base.plan import CommandGroup, HardwareConfig, Job, Pipeline
from newskills.launch.clusters.config import from_keys
from newskills.launch.clusters.node_size import node_size
from newskills.launch.clusters.trial import try_cluster
from newskills.launch.executors import make_executor, supervisor
from newskills.launch.executors.ray import RayJobs, placement_problem, runtime_env, submission_prefix
from newskills.launch.job_script import render_scripts
from newskills.launch.machines.shell import LocalMachine
from newskills.launch.place import JobFolder, Site
from newskills.launch.ray.api import RayApi, RayNode
from newskills.launch.ray.runner import JobRunner, life_of, node_environment
from newskills.launch.registry import NodeSize
from newskills.launch.validate import pipeline_problems


def executor(folder: Path, address: str = "http://127.0.0.1:1", **keys: Any) -> RayJobs:
    config = {
        "executor": "ray",
        "job_dir": str(folder),
        "ray": {"address": address, **keys.pop("ray", {})},
        **keys,
    }
    cluster = from_keys(config, "test", os.environ)
    made = make_executor(Site(cluster=cluster, folder=f"{folder}/e", code="/code", environ={"HOME": str(folder)}))
    assert isinstance(made, RayJobs)
    return made


class Dashboard(http.server.BaseHTTPRequestHandler):
    """Answers `status` and `text` of its server, and keeps the headers."""

    def do_GET(self) -> None:
        server: Any = self.server
        server.seen.append(self.headers.get("Authorization"))
        self.send_response(server.status)
        self.end_headers()
        self.wfile.write(server.text.encode())

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def dashboard() -> Iterator[Any]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Dashboard) as served:
        server: Any = served
        server.seen, server.status, server.text = [], 200, "{}"
        threading.Thread(target=server.serve_forever).start()
        yield server
        server.shutdown()


def api(server: Any, **environ: str) -> RayApi:
    return RayApi(f"http://127.0.0.1:{server.server_port}", {"HOME": "/nonexistent", **environ}, LocalMachine())


def test_no_ray_is_there(tmp_path: Path) -> None:
    address = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(RemoteError, match=r"No Ray cluster answers at .*ray start --head"):
        executor(tmp_path, address).submit(job("j", client("main", "")))
    assert not list(tmp_path.iterdir()), "nothing is written for what cannot be submitted"
    cluster = from_keys(
        {"executor": "ray", "job_dir": str(tmp_path), "ray": {"address": address}}, "x", os.environ
    )
    trial = next(trial for trial in try_cluster(cluster, os.environ) if trial.what == "ray")
    assert (trial.ok, "No Ray cluster answers" in trial.text) == (False, True)


@pytest.mark.parametrize("address", ["ray://head:10001", "http://", "http://head:port", "ftp://head"])
def test_what_is_no_address_of_a_dashboard(tmp_path: Path, address: str) -> None:
    with pytest.raises(ConfigError, match="is not the address of a Ray dashboard"):
        executor(tmp_path, address)


def test_tokens_are_found_as_ray_finds_them(dashboard: Any, tmp_path: Path) -> None:
    (tmp_path / ".ray").mkdir()
    (tmp_path / ".ray/auth_token").write_text("usual\n")
    (tmp_path / "own").write_text("own")
    api(dashboard).version()
    api(dashboard, HOME=str(tmp_path)).version()
    api(dashboard, HOME=str(tmp_path), RAY_AUTH_TOKEN_PATH=str(tmp_path / "own")).version()
    api(dashboard, HOME=str(tmp_path), RAY_AUTH_TOKEN="first").version()
    assert dashboard.seen == [None, "Bearer usual", "Bearer own", "Bearer first"]


@pytest.mark.parametrize(
    ("status", "text", "problem"),
    [
        (401, "Unauthorized", "refuses to answer without its token"),
        (500, "Traceback\n  File\nValueError: it is broken\n", r"says \(500\): ValueError: it is broken"),
        (200, "<html>", "is not a Ray dashboard"),
    ],
)
def test_answers_that_are_no_help(dashboard: Any, status: int, text: str, problem: str) -> None:
    dashboard.status, dashboard.text = status, text
    with pytest.raises(RemoteError, match=problem):
        api(dashboard).version()


def test_only_nodes_that_live_count(dashboard: Any) -> None:
    rows = [
        {"node_ip": "10.0.0.1", "state": "ALIVE", "resources_total": {"CPU": 4.0}},
        {"node_ip": "10.0.0.2", "state": "DEAD", "resources_total": {"CPU": 64.0}},
    ]
    dashboard.text = json.dumps({"data": {"result": {"result": rows}}})
    assert api(dashboard).nodes() == [RayNode("10.0.0.1", {"CPU": 4.0})]


def alive(*resources: dict[str, float]) -> str:
    rows = [
        {"node_ip": f"10.0.0.{number}", "state": "ALIVE", "resources_total": has}
        for number, has in enumerate(resources)
    ]
    return json.dumps({"data": {"result": {"result": rows}}})


@pytest.mark.parametrize(("partition", "gpus"), [(None, 8), ("small", 4), ("none has it", 8), ("huge", 0)])
def test_the_cluster_is_asked_for_its_gpus(
    dashboard: Any, tmp_path: Path, partition: str | None, gpus: int
) -> None:
    dashboard.text = alive({"CPU": 8.0, "GPU": 4.0, "a": 1.0}, {"CPU": 64.0}, {"CPU": 8.0, "GPU": 8.0})
    partitions = {"small": {"a": 1.0}, "huge": {"CPU": 1000.0}}
    ray = {"address": f"http://127.0.0.1:{dashboard.server_port}", "partitions": partitions}
    cluster = from_keys({"executor": "ray", "job_dir": str(tmp_path), "ray": ray}, "x", {})
    assert node_size(cluster, partition, {"HOME": str(tmp_path)}) == NodeSize(gpus)


def test_a_training_on_ray_is_no_matter_of_this_machine(dashboard: Any, tmp_path: Path) -> None:
    dashboard.text = alive({"CPU": 8.0, "GPU": 4.0}, {"CPU": 8.0, "GPU": 4.0})
    address = f"http://127.0.0.1:{dashboard.server_port}"
    (tmp_path / "ray.yaml").write_text(f"executor: ray\njob_dir: {tmp_path}/jobs\nray: {{address: '{address}'}}\n")
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    (tmp_path / "data.jsonl").write_text(json.dumps({"messages": messages}) + "\n")
    line = (
        "ns nemo_rl sft --cluster=./ray.yaml --expname=t --dry_run --disable_wandb --model=m --num_nodes=2 "
        f"--training_data={tmp_path}/data.jsonl --output_dir={tmp_path}/out"
    )
    done = ns(line, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no --num_gpus: 4 per node" in done.stderr
    assert "No GPU is visible" not in done.stderr


def test_what_no_node_has_is_named() -> None:
    nodes = [RayNode("a", {"CPU": 8.0, "GPU": 4.0}), RayNode("b", {"CPU": 64.0})]
    assert placement_problem({"CPU": 8, "GPU": 4}, nodes) == ""
    assert placement_problem({"CPU": 1, "GPU": 8}, nodes) == (
        "no node has CPU: 1, GPU: 8; the most that a node has is GPU: 4 (2 nodes)"
    )
    assert placement_problem({"CPU": 64, "GPU": 4}, nodes) == (
        "no node has CPU: 64, GPU: 4; nodes have these apart, at most CPU: 64, GPU: 4 (2 nodes)"
    )
    assert placement_problem({"CPU": 1}, []) == "the cluster has no nodes; the job asks for CPU: 1"


def test_each_folder_has_submission_ids_of_its_own() -> None:
    first, second = submission_prefix("/jobs/my eval/2026 1"), submission_prefix("/jobs/my-eval/2026-1")
    assert first != second
    assert first.startswith("my-eval-2026-1-")
    assert len(submission_prefix("/jobs/" + "x" * 300)) < 100


def test_groups_of_a_job_see_their_own_gpus(tmp_path: Path) -> None:
    groups = tuple(
        CommandGroup(name=name, commands=(client(name, ""),), hardware=HardwareConfig(num_gpus=gpus))
        for name, gpus in (("model", 3), ("judge", 1))
    )
    place = executor(tmp_path)
    texts = render_scripts(Job(name="j", groups=groups), JobFolder(path="/j", logs="/j/logs", code="/code"), place)
    assert 'job_gpus_1=$(IFS=,; echo "${job_gpus[*]:3:1}")' in texts["job.sh"]
    assert 'env CUDA_VISIBLE_DEVICES="$job_gpus_1"' in texts["job.sh"]
    assert "export PYTHONPATH=/code\n" in texts["model.sh"]
    subprocess.run(["bash", "-n"], input=texts["job.sh"], text=True, check=True)


def test_configs_that_cannot_be(tmp_path: Path) -> None:
    keys = {"executor": "ray", "job_dir": str(tmp_path)}
    with pytest.raises(ConfigError, match="executor ray has one image for all commands"):
        from_keys({**keys, "containers": {"vllm": "image:1"}}, "ray.yaml", os.environ)
    with pytest.raises(ConfigError, match="'mounts' has no effect"):
        from_keys({**keys, "mounts": ["/a:/a"]}, "ray.yaml", os.environ)
    with pytest.raises(ConfigError, match=r"Ray takes no ray.runtime_env.pip beside ray.image"):
        from_keys({**keys, "ray": {"image": "i:1", "runtime_env": {"pip": ["x"]}}}, "ray.yaml", os.environ)
    with pytest.raises(ConfigError, match="'job_dir' is missing"):
        from_keys({"executor": "ray"}, "ray.yaml", os.environ)
    with pytest.raises(ConfigError, match=r"unknown key 'ray.adress'; did you mean 'address'"):
        from_keys({**keys, "ray": {"adress": "x"}}, "ray.yaml", os.environ)
    secret = {"runtime_env": {"env_vars": {"HF_TOKEN": "hf_1"}}}
    with pytest.raises(ConfigError, match="has HF_TOKEN, which looks like a secret"):
        from_keys({**keys, "ray": secret}, "ray.yaml", os.environ)
    cluster = from_keys(keys, "ray.yaml", os.environ)
    several = HardwareConfig(num_nodes=2)
    whole = client("whole", "")
    whole = msgspec.structs.replace(whole, script=msgspec.structs.replace(whole.script, tasks_per_node=4))
    groups = [
        CommandGroup(name=command.name, commands=(command,), hardware=several)
        for command in (client("main", ""), whole)
    ]
    pipeline = Pipeline(name="p", jobs=(Job(name="j", groups=tuple(groups)),))
    assert pipeline_problems(pipeline, cluster, os.environ) == [
        "Job 'j': on executor ray, one group may have several nodes; 'main' and 'whole' ask for some.",
        "Command 'whole' of job 'j' wants 4 processes on each of several nodes, which need Slurm.",
    ]


def test_jobs_in_containers_see_their_folder_and_the_mounts(tmp_path: Path) -> None:
    keys = {
        "executor": "ray",
        "job_dir": str(tmp_path),
        "ray": {"image": "i:1", "runtime_env": {"env_vars": {"A": "1"}}},
    }
    cluster = from_keys({**keys, "mounts": ["/my data:/my data:ro"]}, "ray.yaml", os.environ)
    asked = runtime_env(cluster, "/code")
    options = ["--volume='/my data:/my data:ro'", f"--volume={tmp_path}:{tmp_path}"]
    assert asked["container"] == {"image": "i:1", "run_options": options}
    assert asked["env_vars"].items() >= {"A": "1", "PYTHONPATH": "/code"}.items()
    whole = msgspec.structs.replace(cluster, mounts=[f"{tmp_path.parent}:{tmp_path.parent}"])
    assert runtime_env(whole, "")["container"]["run_options"] == [f"--volume={tmp_path.parent}:{tmp_path.parent}"]
    with pytest.raises(ConfigError, match=r"'/a:/b' moves its folder.*"):
        runtime_env(msgspec.structs.replace(cluster, mounts=["/a:/b"]), "")
    reads = msgspec.structs.replace(client("main", ""), paths=("/elsewhere/rows.jsonl", f"{tmp_path}/rows.jsonl"))
    (problem,) = pipeline_problems(Pipeline(name="p", jobs=(job("j", reads),)), cluster, os.environ)
    assert "/elsewhere/rows.jsonl is not below a mount" in problem


def test_handles_that_are_none(tmp_path: Path) -> None:
    for handle in ("", "x", "/x", "x/", "x/y/z"):
        with pytest.raises(ConfigError, match="is not the handle of a job on Ray"):
            executor(tmp_path).state([handle])


def test_a_job_gets_the_python_of_its_node_and_nothing_of_ray() -> None:
    environ = node_environment(
        {"PATH": "/usr/bin", "RAY_JOB_ID": "1", "HOME": "/root", "CUDA_VISIBLE_DEVICES": "1"}
    )
    assert environ == {
        "PATH": f"{os.path.dirname(sys.executable)}:/usr/bin",
        "HOME": "/root",
        "CUDA_VISIBLE_DEVICES": "1",
    }


def test_an_attached_supervisor_ends_with_its_caller(tmp_path: Path) -> None:
    """As on a node that is lost: nothing of the job is left, and a note says so."""
    assert life_of(str(tmp_path)) == 0
    (tmp_path / "job.sh").write_text("trap '' TERM\necho $$ >pid.new && mv pid.new pid\nsetsid sleep 600\n")
    starts = (
        "import os, subprocess, sys\n"
        "words = [sys.executable, '-I', '-S', sys.argv[1], '--attached', sys.argv[2], '3', str(os.getpid())]\n"
        "subprocess.run(words, cwd=sys.argv[2])\n"
    )
    above = subprocess.Popen([sys.executable, "-c", starts, supervisor.__file__, str(tmp_path)])
    until((tmp_path / "pid").exists, "the job to start")
    above.kill()
    above.wait()
    until((tmp_path / "job.ended").exists, "the note")
    assert (tmp_path / "job.ended").read_text() == "3\n"
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()


def test_a_job_that_is_told_to_stop_as_it_starts_is_cancelled(tmp_path: Path) -> None:
    """Its supervisor gets the signal before Python runs there."""
    (tmp_path / "job.sh").write_text("sleep 600\n")
    runner = JobRunner(str(tmp_path), str(tmp_path / "logs"), 1)
    runner.tell("stop")
    runner.run({})
    assert (tmp_path / "job.exit").read_text() == "143 cancelled received SIGTERM\n"
    assert (tmp_path / "job.ended").read_text() == "1\n"
