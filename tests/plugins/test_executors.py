# SPDX-License-Identifier: Apache-2.0
"""Rules of executors of this machine, ours and one of another distribution; nothing else knows their names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.commands.running import ns
from tests.launch.places import client, job, server, until
from tests.plugins.executor_rules import Submitted, check_cancelling, check_states_logs_and_dependencies
from tests.plugins.installed import variables

from newskills.base.errors import ConfigError
from newskills.base.plan import Ref
from newskills.base.protocols import Executor
from newskills.launch.clusters.config import ClusterConfig, image_of
from newskills.launch.executors import make_executor
from newskills.launch.place import AttendedExecutor, ExecutorScript, Site
from newskills.launch.registry import EXECUTORS, ExecutorProperties, NodeSize

OURS = [name for name, properties in EXECUTORS.built_in().items() if properties.this_machine]
HERE = [*OURS, "queue"]
EVERYWHERE = [*HERE, "elsewhere"]
ASKS = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1] + '/health').status)"

CLUSTER = """
from newskills.launch.executors.none import Processes
from newskills.launch.registry import ExecutorProperties, NodeSize


def node_size(cluster, partition, environ):
    return NodeSize({gpus}, 7200)


class Farm(Processes):
    properties = ExecutorProperties(containers="none", node_size="farm:node_size")
"""

pytestmark = pytest.mark.usefixtures("plugged")


def made(name: str, folder: Path) -> Executor:
    return make_executor(Site(cluster=ClusterConfig(executor=name), folder=str(folder), environ=os.environ))


@pytest.fixture
def elsewhere(tmp_path: Path) -> str:
    """An executor of a cluster, in a file of the user's."""
    (tmp_path / "farm.py").write_text(CLUSTER.format(gpus=3))
    return f"{tmp_path}/farm.py::Farm"


def test_the_example_is_among_the_executors() -> None:
    assert {*EXECUTORS.built_in(), "queue"} <= set(EXECUTORS.names())
    assert "queue" not in EXECUTORS.built_in()


@pytest.mark.parametrize("name", HERE)
def test_properties_agree_with_each_other_and_with_what_it_does(name: str, tmp_path: Path) -> None:
    properties, executor = EXECUTORS.properties(name), made(name, tmp_path)
    assert properties.this_machine
    assert properties.shares_first_node
    assert properties.shares_disks
    assert not properties.node_size
    assert isinstance(executor, ExecutorScript)
    assert isinstance(executor, AttendedExecutor)
    image = image_of(ClusterConfig(executor=name, containers={"x": "image"}), "x")
    assert (image is None) == (properties.containers != "command")


@pytest.mark.parametrize("name", EVERYWHERE)
def test_states_logs_and_dependencies(name: str, tmp_path: Path, elsewhere: str) -> None:
    kind = elsewhere if name == "elsewhere" else name
    check_states_logs_and_dependencies(lambda experiment: made(kind, tmp_path / experiment), tmp_path)


@pytest.mark.parametrize("name", EVERYWHERE)
def test_cancelling(name: str, tmp_path: Path, elsewhere: str) -> None:
    kind = elsewhere if name == "elsewhere" else name
    check_cancelling(lambda experiment: made(kind, tmp_path / experiment), tmp_path)


@pytest.mark.parametrize("name", HERE)
def test_servers_and_what_is_unknown(name: str, tmp_path: Path) -> None:
    executor = made(name, tmp_path)
    handle = executor.submit(job("served", server(), client("main", ASKS, Ref("server"))))
    assert Submitted(executor, handle).ended() == "completed"
    assert "200" in list(executor.logs(handle))
    nowhere = str(tmp_path / "nowhere")
    assert executor.state([nowhere]) == {nowhere: "unknown"}
    with pytest.raises(ConfigError):
        executor.submit(job("third", client("main", "")), after=[nowhere])


def test_jobs_of_an_executor_elsewhere_are_submitted_followed_and_cancelled(
    tmp_path: Path, elsewhere: str
) -> None:
    """What follows from its properties: the command ends at once, its server listens to other nodes."""
    (tmp_path / "farm.yaml").write_text(f"executor: {elsewhere}\njob_dir: {tmp_path}/jobs\n")
    line = f"ns run_cmd --cluster=./farm.yaml --expname=long --command='touch {tmp_path}/up; sleep 600'"
    done = ns(line, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "ns status long" in done.stdout
    until(Path(tmp_path, "up").exists, "the job to start")
    assert "running" in ns("ns status long", cwd=tmp_path).stdout
    assert ns("ns cancel long", cwd=tmp_path).returncode == 0
    until(lambda: "cancelled" in ns("ns status long", cwd=tmp_path).stdout, "the end of the job")
    no_folder = ns(f'ns run_cmd --cluster=\'{{"executor": "{elsewhere}"}}\' --command=true', cwd=tmp_path)
    assert no_folder.returncode != 0
    assert "'job_dir' is missing" in no_folder.stderr


@pytest.mark.parametrize("name", HERE)
def test_a_command_waits_for_its_jobs_and_has_their_exit_code(name: str, tmp_path: Path, example: Path) -> None:
    """What follows from `this_machine`, from the command line on."""
    (tmp_path / "place.yaml").write_text(f"executor: {name}\njob_dir: {tmp_path}/jobs\n")
    line = "ns run_cmd --cluster=./place.yaml --expname=one --command='echo from $PWD; exit 7'"
    done = ns(line, cwd=tmp_path, env=variables(example))
    assert done.returncode != 0, done.stderr
    assert "from " in done.stdout + done.stderr
    shown = ns("ns status one", cwd=tmp_path, env=variables(example))
    assert "failed" in shown.stdout, shown.stdout + shown.stderr


def test_the_queue_runs_one_job_after_the_other(tmp_path: Path) -> None:
    """A job that runs beside another one finds its folder, and fails."""
    executor = made("queue", tmp_path / "jobs")
    alone = "import os, sys, time\nos.mkdir(sys.argv[1])\ntime.sleep(0.5)\nos.rmdir(sys.argv[1])"
    handles = [
        executor.submit(job(f"j{number}", client("main", alone, str(tmp_path / "mark")))) for number in range(3)
    ]
    assert [Submitted(executor, handle).ended() for handle in handles] == ["completed"] * 3


@pytest.mark.parametrize(("gpus", "told"), [(3, "3 per node"), (0, "8 per node (the cluster did not report it)")])
def test_an_executor_elsewhere_is_asked_for_its_gpus(gpus: int, told: str, tmp_path: Path) -> None:
    """Not this machine, whatever the executor is called."""
    (tmp_path / "farm.py").write_text(CLUSTER.format(gpus=gpus))
    (tmp_path / "farm.yaml").write_text(f"executor: {tmp_path}/farm.py::Farm\njob_dir: {tmp_path}/jobs\n")
    (tmp_path / "data.jsonl").write_text(
        '{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}\n'
    )
    line = (
        "ns nemo_rl sft --cluster=./farm.yaml --expname=t --dry_run --disable_wandb --model=m "
        f"--training_data={tmp_path}/data.jsonl --output_dir={tmp_path}/out"
    )
    done = ns(line, cwd=tmp_path, env={"PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"})
    assert "No GPU is visible" not in done.stderr
    assert f"no --num_gpus: {told}" in done.stderr, done.stdout + done.stderr
    assert done.returncode == 0, done.stdout + done.stderr


def test_properties_of_another_kind_are_refused(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text("class Wrong:\n    properties = {'this_machine': True}\n")
    with pytest.raises(ConfigError, match="has properties of type dict; expected ExecutorProperties"):
        EXECUTORS.properties(f"{tmp_path}/wrong.py::Wrong")
    (tmp_path / "silent.py").write_text("class Silent: pass\n")
    assert EXECUTORS.properties(f"{tmp_path}/silent.py::Silent") == ExecutorProperties()
    assert NodeSize() == NodeSize(0, None)
