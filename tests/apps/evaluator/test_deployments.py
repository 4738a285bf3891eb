# SPDX-License-Identifier: Apache-2.0
"""Jobs of every kind of deployment, as data and as the scripts that Slurm gets."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from tests.apps.evaluator.evaluations import KEY, Evaluations
from tests.server import Answer, FakeServer, Script

from newskills.base.errors import ConfigError
from newskills.base.plan import Ref
from newskills.base.records import Row
from newskills.launch.executors.slurm import Slurm
from newskills.launch.job_script import render_scripts
from newskills.launch.place import Site
from newskills.launch.validate import pipeline_problems
from newskills_evaluator.deployments import DeploymentPlan, plan_invocation
from newskills_evaluator.deployments.place import MAX_COPIES

INVOCATION = "00112233aabbccdd"
SQSH = "/images/server.sqsh"
SERVED = {"served_model_name": "m", "checkpoint_path": "/models/m", "image": SQSH}


@pytest.fixture
def place(tmp_path: Path) -> Evaluations:
    made = Evaluations(tmp_path)
    made.profile(
        '[far]\nexecutor = "slurm"\nhost = "login"\ntunnel = "ssh"\nremote_job_dir = "/lustre/me"\n'
        'mounts = ["/lustre:/lustre"]\nstartup_commands = ["source venv/bin/activate"]\n'
        '[far.env_vars]\nHF_HOME = "/lustre/hf"\n'
    )
    return made


def planned(
    place: Evaluations,
    mode: str = "batch",
    execution: Row | None = None,
    evaluation: Row | None = None,
    **sections: Any,
) -> DeploymentPlan:
    settings = {"gres": "gpu:8", "cpu_partition": "cpu", **(execution or {})}
    place.config(execution=place.slurm(**settings), evaluation=evaluation or place.tasks("gsm8k"), **sections)
    when = datetime.datetime(2026, 1, 2, 3, 4, 5)
    made = plan_invocation(place.compiled(mode), INVOCATION, place.environ, when)
    assert not pipeline_problems(made.pipeline, made.cluster, made.environ, skip_hf_home_check=True)
    return made


def texts(made: DeploymentPlan, job: int = 0) -> dict[str, str]:
    """Scripts of a job, as Slurm gets them."""
    site = Site(cluster=made.cluster, folder=made.folder, environ=made.environ, experiment="e", code="/code")
    work = made.pipeline.jobs[job]
    return render_scripts(work, site.job_folder(work), Slurm(site))


def argv_of(text: str) -> list[str]:
    """Words of a command's script, without what the job fills in."""
    lines = text.partition("job_argv=(\n")[2].partition("\n)\n")[0].splitlines()
    return [line.strip() for line in lines]


def test_run_directories_and_jobs(place: Evaluations) -> None:
    place.environ["MY_KEY"] = KEY
    endpoint = {"url": "http://s:1/v1/chat/completions", "model_id": "m", "api_key_name": "MY_KEY"}
    made = planned(
        place,
        evaluation=place.tasks("gsm8k", "nemo_skills.ns_aime2025"),
        target={"api_endpoint": endpoint},
        deployment={"type": "none"},
    )
    assert made.folder == f"/lustre/me/evaluations/20260102_030405-{INVOCATION}"
    assert [job.name for job in made.pipeline.jobs] == ["gsm8k.0", "nemo_skills.ns_aime2025.1"]
    assert made.pipeline.name == f"evaluate-{INVOCATION}"
    client = texts(made)["client.sh"]
    assert "source venv/bin/activate" in client
    words = argv_of(client)
    assert "--server_address=http://s:1/v1" in words
    assert "++server.api_key_env_var=MY_KEY" in words
    assert f"--output_dir={made.folder}/gsm8k.0/artifacts" in words
    job = texts(made)["job.sh"]
    assert "#SBATCH --partition=cpu" in job
    assert "gpus" not in job.partition("job_folder=")[0]
    assert KEY not in str(texts(made))
    assert KEY not in repr(made)


@pytest.mark.parametrize(
    ("kind", "more", "expected"),
    [
        ("vllm", {}, ["vllm", "serve", "/checkpoint"]),
        ("vllm", {"gpu_memory_utilization": 0.5}, ["--tensor-parallel-size", "8", "--gpu-memory-utilization", "0.5"]),
        ("vllm", {"hf_model_handle": "org/m"}, ["serve", "org/m", "--served-model-name", "m"]),
        ("sglang", {}, ["--model-path", "/checkpoint", "--tp-size", "8"]),
        ("trtllm", {}, ["trtllm-serve", "/checkpoint", "--tp_size", "8"]),
        ("nim", {}, ["/opt/nvidia/nvidia_entrypoint.sh", "/opt/nim/start_server.sh"]),
    ],
)  # fmt: skip
def test_types_that_start_their_own_command(
    place: Evaluations, kind: str, more: dict[str, Any], expected: list[str]
) -> None:
    made = planned(place, deployment={"type": kind, "tensor_parallel_size": 8, **SERVED, **more})
    scripts = texts(made)
    words = argv_of(scripts["server.sh"])
    assert all(word in words for word in expected), words
    assert [word for word in words if word in expected] == expected
    job = scripts["job.sh"]
    assert "#SBATCH --gpus-per-node=8" in job
    assert "#SBATCH --time=00:05:00" in job
    assert f"--container-image={SQSH}" in job
    assert "/models/m:/checkpoint:ro" in job
    assert "/lustre:/lustre" in job
    server, client = made.pipeline.jobs[0].commands()
    assert server.script.ready.patience == 60
    assert [word for word in client.script.argv if isinstance(word, Ref) and word.component == "server"]
    assert server.script.ready.path == ("/v1/health/ready" if kind == "nim" else "/health")


def test_a_command_of_the_configurations_own_keeps_its_text(place: Evaluations) -> None:
    text = "vllm serve /checkpoint --port ${deployment.port} --note 'a \"b\" $HOME'"
    endpoints = {"health": "/ready", "chat": "/api/v2/chat/completions"}
    made = planned(
        place, deployment={"type": "vllm", "port": 8123, "command": text, "endpoints": endpoints, **SERVED}
    )
    server, client = made.pipeline.jobs[0].commands()
    assert server.script.port == 8123
    assert server.script.ready.path == "/ready"
    assert any(
        "vllm serve /checkpoint --port 8123 --note 'a \"b\" $HOME'" in str(word) for word in server.script.argv
    )
    (address,) = (one for one in client.script.argv if isinstance(one, Ref) and one.component == "server")
    assert (address.before, address.after) == ("--server_address=", "/api/v2")
    bare = planned(place, deployment={"type": "vllm", "port": 8000, "command": text, **SERVED, "image": None})
    assert any(
        "vllm serve /models/m --port 8000" in str(word) for word in bare.pipeline.jobs[0].commands()[0].script.argv
    )


def test_several_nodes_and_instances(place: Evaluations) -> None:
    ray = {"type": "vllm_ray", "command": "vllm serve /checkpoint", **SERVED}
    made = planned(place, execution={"num_nodes": 2, "deployment": {"n_tasks": 2}}, deployment=ray)
    scripts = texts(made)
    assert "newskills.launch.ray_node" in scripts["server.sh"]
    assert "--nodes=2 \\\n        --ntasks=2" in scripts["job.sh"]
    plain = {"type": "generic", "command": "serve $PROC_ID $MASTER_IP", **SERVED}
    made = planned(
        place, execution={"num_nodes": 4, "num_instances": 2, "deployment": {"n_tasks": 4}}, deployment=plain
    )
    (job,) = made.pipeline.jobs
    assert [[command.name for command in group.commands] for group in job.groups] == [
        ["server-0", "proxy", "client"],
        ["server-1"],
    ]
    assert [group.hardware.num_nodes for group in job.groups] == [2, 2]
    server = job.groups[0].commands[0].script
    assert server.all_nodes
    assert server.env == {"PROC_ID": Ref("server-0", "rank"), "MASTER_IP": Ref("server-0", "node")}
    assert "#SBATCH hetjob" in texts(made)["job.sh"]
    with pytest.raises(ConfigError, match="cannot be split evenly"):
        planned(place, execution={"num_nodes": 3, "num_instances": 2}, deployment=plain)


def test_tasks_here_take_turns_on_a_fixed_port(place: Evaluations) -> None:
    served = {"type": "generic", "command": "serve", "served_model_name": "m"}
    execution = {"type": "local", "hostname": None, "output_dir": "out", "mode": "sequential"}
    tasks = place.tasks("gsm8k", "math-500")
    made = planned(place, "local", execution=execution, deployment=served, evaluation=tasks)
    assert [job.depends_on for job in made.pipeline.jobs] == [(), ("gsm8k.0",)]
    with pytest.raises(ConfigError, match="2 servers on port 8000"):
        planned(place, "local", execution={**execution, "mode": "parallel"}, deployment=served, evaluation=tasks)


def test_haproxy_where_an_image_of_it_is_named(place: Evaluations) -> None:
    plain = {"type": "generic", "command": "serve", **SERVED}
    execution = {"num_nodes": 2, "num_instances": 2, "proxy": {"image": "/images/haproxy.sqsh"}}
    made = planned(place, execution=execution, deployment=plain)
    assert "exec haproxy -f" in texts(made)["proxy.sh"]
    subprocess.run(["bash", "-n"], input=texts(made)["proxy.sh"], text=True, check=True)


def test_secrets_travel_by_name_and_texts_in_scripts(place: Evaluations) -> None:
    place.environ |= {"MY_TOKEN": KEY, "OTHER": "o" * 12}
    variables = {"HF_TOKEN": "host:MY_TOKEN", "COLOUR": "lit:a b", "NODE": "runtime:SLURMD_NODENAME"}
    literal = {"API_TOKEN": f"lit:{KEY}1"}
    made = planned(
        place,
        deployment={"type": "generic", "command": "serve", "env_vars": variables, **SERVED},
        evaluation={**place.tasks("gsm8k"), "env_vars": literal},
    )
    server, client = made.pipeline.jobs[0].commands()
    assert server.script.secrets == ("HF_TOKEN",)
    assert server.script.env["COLOUR"] == "a b"
    assert any('export NODE="${SLURMD_NODENAME-}"' in str(word) for word in server.script.argv)
    assert client.script.secrets == ("API_TOKEN",)
    assert (made.environ["HF_TOKEN"], made.environ["API_TOKEN"]) == (KEY, f"{KEY}1")
    assert KEY not in str(texts(made))
    del place.environ["MY_TOKEN"]
    with pytest.raises(ConfigError, match="MY_TOKEN of this machine, which is not set"):
        planned(place, deployment={"type": "generic", "command": "serve", "env_vars": variables, **SERVED})
    place.environ["MY_TOKEN"] = KEY
    with pytest.raises(ConfigError, match="HF_TOKEN has one value here and another value elsewhere"):
        planned(
            place,
            deployment={"type": "generic", "command": "serve", "env_vars": variables, **SERVED},
            evaluation={**place.tasks("gsm8k"), "env_vars": {"HF_TOKEN": "host:OTHER"}},
        )


def test_the_key_of_a_judge_goes_along(place: Evaluations) -> None:
    place.environ["JUDGE_API_KEY"] = KEY
    judge = {"url": "http://j:1/v1", "model_id": "j", "api_key": "JUDGE_API_KEY"}
    tasks = place.tasks("gsm8k")
    tasks["tasks"][0]["nemo_evaluator_config"] = {"config": {"params": {"extra": {"judge": judge}}}}
    endpoint = {"api_endpoint": {"url": "http://s:1/v1", "model_id": "m"}}
    made = planned(place, deployment={"type": "none"}, target=endpoint, evaluation=tasks)
    (client,) = made.pipeline.jobs[0].commands()
    assert client.script.secrets == ("JUDGE_API_KEY",)
    assert "--judge_model=j" in client.script.argv


def test_time_beyond_one_job_and_odd_resources(place: Evaluations) -> None:
    served = {"type": "generic", "command": "serve", **SERVED}
    flags = {"exclusive": True, "constraint": "h100 one", "nice": 5, "switches": None}
    execution = {"walltime": "01:00:00", "sbatch_comment": "it's mine", "sbatch_extra_flags": flags}
    made = planned(place, execution={**execution, "max_walltime": "02:30:00"}, deployment=served)
    assert made.pipeline.jobs[0].copies == 2
    assert planned(place, execution={**execution, "max_walltime": "120:00:00"}, deployment=served).pipeline.jobs[
        0
    ].copies == (MAX_COPIES)
    job = texts(made)["job.sh"]
    assert "#SBATCH --exclusive\n" in job
    assert "#SBATCH --constraint='h100 one'" in job
    assert "switches" not in job
    assert "--comment=" in job
    made = planned(place, execution={"gres": "gpu:h100:4"}, deployment=served)
    job = texts(made)["job.sh"]
    assert "#SBATCH --gres=gpu:h100:4" in job
    assert "--gpus-per-node" not in job


def test_data_sets_are_mounted_and_exports_follow_all_tasks(place: Evaluations) -> None:
    tasks = place.tasks("gsm8k", "math-500")
    tasks["tasks"][0] |= {"dataset_dir": "/lustre/sets/g", "container": "/images/eval.sqsh"}
    made = planned(
        place,
        execution={"auto_export": {"destinations": ["wandb", "local"], "partition": "exports"}},
        deployment={"type": "generic", "command": "serve", **SERVED},
        evaluation=tasks,
        export={"wandb": {"project": "p"}, "local": {"format": "json"}},
    )
    *_, client = made.pipeline.jobs[0].commands()
    assert client.script.env["NEMO_EVALUATOR_DATASET_DIR"] == "/datasets"
    assert "/lustre/sets/g:/datasets:ro" in client.mounts
    export = made.pipeline.jobs[-1]
    assert export.name == "export"
    assert export.depends_on == ("gsm8k.0", "math-500.1")
    assert "#SBATCH --partition=exports" in texts(made, 2)["job.sh"]
    with pytest.raises(ConfigError, match="looks like a secret"):
        planned(
            place,
            execution={"auto_export": {"destinations": ["wandb"]}},
            deployment={"type": "none"},
            target={"api_endpoint": {"url": "http://s:1/v1", "model_id": "m"}},
            export={"wandb": {"project": "p", "api_key": KEY}},
        )


def test_connections_are_shared_out_among_instances(tmp_path: Path) -> None:
    """The balancer as a process, between real servers; one that is gone is passed over."""
    script = Script(answer=Answer(kind="echo"))
    with FakeServer(script) as one, FakeServer(script) as other:
        import socket

        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        targets = [one.url, other.url, "http://127.0.0.1:1"]
        argv = [sys.executable, "-m", "newskills.interop.deployments.balancer", str(port), *targets]
        with subprocess.Popen(argv, env=os.environ) as process:
            try:
                _until_answers(f"http://127.0.0.1:{port}/v1/models")
                connections = [socket.create_connection(("127.0.0.1", port)) for _ in range(6)]
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=120) as reply:
                    assert reply.status == 200
                for connection in connections:
                    connection.close()
            finally:
                process.terminate()


def _until_answers(url: str) -> None:
    deadline = time.monotonic() + 300
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.1)
