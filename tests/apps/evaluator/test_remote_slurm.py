# SPDX-License-Identifier: Apache-2.0
"""Evaluations on a real Slurm cluster behind a real ssh server, with a stand-in for enroot."""

from __future__ import annotations

import csv
import datetime
import subprocess
import threading
from pathlib import Path

import msgspec
import pytest
import yaml
from tests.apps.evaluator.evaluations import KEY, Evaluations
from tests.launch.enroot import Enroot, srun_without_pyxis
from tests.launch.slurm_cluster import require_cluster
from tests.launch.sshd import Sshd, sshd

from newskills.base.errors import ConfigError, RemoteError
from newskills.launch.submit import executor_of
from newskills_evaluator import remote
from newskills_evaluator.config import CompiledConfig
from newskills_evaluator.deployments import plan_invocation
from newskills_evaluator.deployments.plan import DeploymentPlan

__all__ = ["sshd"]

INVOCATION = "00112233aabbccdd"
PORT = 18476


@pytest.fixture
def place(tmp_path: Path, sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> Evaluations:
    require_cluster()
    monkeypatch.chdir(tmp_path)  # no repository: jobs get the newskills that is installed here
    return Evaluations(tmp_path)


@pytest.fixture
def enroot(tmp_path: Path) -> Enroot:
    made = Enroot(tmp_path / "stub")
    srun_without_pyxis(made)
    return made


def ended(place: Evaluations, compiled: CompiledConfig, said: list[str]) -> tuple[DeploymentPlan, dict[str, str]]:
    """Submitted, followed to the end: the plan, and the states of its jobs."""
    planned = plan_invocation(compiled, INVOCATION, place.environ, datetime.datetime(2026, 1, 2, 3, 4, 5))
    experiment = remote.submit_invocation(planned, said.append)
    remote.follow_tasks(experiment, place.environ, said.append)
    return planned, executor_of(experiment, place.environ).state(experiment.handles)


def test_image_server_task_and_export_from_a_laptop(place: Evaluations, enroot: Enroot, sshd: Sshd) -> None:
    place.far(sshd, enroot)
    place.config(
        execution=place.slurm(
            auto_export={"destinations": ["local", "wandb"]}, proxy={"image": "registry.invalid/haproxy:1"}
        ),
        deployment={
            "type": "generic",
            "image": "registry.invalid/team/server:1",
            "command": place.command(PORT),
            "port": PORT,
            "served_model_name": "fake",
            "env_vars": {"HF_TOKEN": "host:MY_HF_TOKEN", "COLOUR": "lit:blue"},
        },
        evaluation=place.tasks(),
        export={"local": {"format": "csv", "output_dir": f"{place.folder}/exported"}},
    )
    place.environ |= {"MY_HF_TOKEN": KEY, "WANDB_API_KEY": KEY[::-1] * 2, "WANDB_MODE": "offline"}
    said: list[str] = []
    processes, watched = seen_processes()
    compiled = remote.squash_images(place.compiled("run"), place.environ, said.append)
    images = [path for path in (compiled.deployment.image, compiled.execution.proxy_image) if path]
    assert all(path.startswith(f"{place.folder}/remote/containers/registry_invalid_") for path in images)
    assert compiled.config["deployment"]["image"] == images[0]
    assert [argv[-1] for argv in enroot.calls()] == [
        "docker://registry.invalid#team/server:1",
        "docker://registry.invalid#haproxy:1",
    ] or len(enroot.calls()) == 2
    planned, states = ended(place, compiled, said)
    watched.set()
    logs = "".join(file.read_text() for file in Path(planned.folder).rglob("*.log"))
    assert set(states.values()) == {"completed"}, (said, logs)
    assert planned.folder == f"{place.folder}/remote/evaluations/20260102_030405-{INVOCATION}"
    (run,) = (one for one in Path(planned.folder).iterdir() if one.name.endswith("sums.py.0"))
    check_run_directory(run)
    assert (enroot.folder / "images").read_text().splitlines() == [images[0]]
    assert "export COLOUR=blue" in (run / "server.sh").read_text()
    (row,) = csv.DictReader(
        (place.folder / f"exported/{INVOCATION}/processed_results.csv").read_text().splitlines()
    )
    assert (row["Model Name"], row["Job ID"]) == ("fake", f"{INVOCATION}.0")
    assert row["own-sums_pass@1_symbolic_correct"] == "100.0"
    assert any("pass@1" in line for line in said)
    assert remote.squash_images(place.compiled("batch"), place.environ, said.append).deployment.image == images[0]
    assert len(enroot.calls()) == 2
    forced = msgspec.structs.replace(place.compiled("run"), force_squash=True)
    assert {one.action for one in remote.squash_plan(forced, place.environ)} == {"import"}
    nothing_of(KEY, place.folder, [*said, *processes])
    nothing_of(KEY[::-1], place.folder, [*said, *processes])


def check_run_directory(run: Path) -> None:
    """As NVIDIA's launcher leaves it."""
    assert (run / "run.sh").read_text().startswith("#!/bin/bash\n#SBATCH --job-name=")
    assert (run / "logs/stage.exit").read_text().split()[1:] == ["0"]
    assert (run / "logs/stage.pre-start").is_file()
    assert (run / "logs/stage.running").is_file()
    assert "pass@1" in (run / "logs/client_stdout.log").read_text()
    assert "serves on n" in (run / "logs/server_stdout.log").read_text()
    assert "job completed" in (run / "logs/stdout.log").read_text()
    results = yaml.safe_load((run / "artifacts/results.yml").read_text())
    assert (
        results["results"]["tasks"]["own-sums"]["metrics"]["pass@1"]["scores"]["symbolic_correct"]["value"] == 100
    )
    assert results["target"]["api_endpoint"]["model_id"] == "fake"
    assert (run.stat().st_mode & 0o777) == 0o700


def seen_processes() -> tuple[list[str], threading.Event]:
    """What `ps` shows of all processes, arguments and environments of others included, until the event is set."""
    seen: list[str] = []
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.3):
            seen.append(subprocess.run(["ps", "-e", "ww", "-o", "args"], capture_output=True, text=True).stdout)

    threading.Thread(target=look, daemon=True).start()
    return seen, over


def nothing_of(secret: str, folder: Path, said: list[str]) -> None:
    for file in folder.rglob("*"):
        if file.is_file() and not file.is_symlink():
            assert secret.encode() not in file.read_bytes(), file
    assert not [text for text in said if secret in text]


@pytest.mark.nightly
def test_several_instances_behind_one_address(place: Evaluations, sshd: Sshd) -> None:
    place.far(sshd)
    place.config(
        execution=place.slurm(num_nodes=2, num_instances=2, proxy={"image": None}),
        deployment={
            "type": "generic",
            "command": place.command(PORT),
            "port": PORT,
            "served_model_name": "fake",
        },
        evaluation=place.tasks(),
    )
    said: list[str] = []
    planned, states = ended(place, place.compiled("batch"), said)
    logs = "".join(f"== {file}\n{file.read_text()}" for file in Path(planned.folder).rglob("*.log"))
    assert list(states.values()) == ["completed"], (said, logs)
    (run,) = Path(planned.folder).iterdir()
    check_run_directory(run)
    nodes = {(run / f"logs/server-{number}.log").read_text().split()[2] for number in range(2)}
    assert len(nodes) == 2


@pytest.mark.nightly
def test_a_task_that_fails_leaves_its_exit_code(place: Evaluations, sshd: Sshd) -> None:
    place.far(sshd)
    tasks = place.tasks()
    tasks["tasks"][0]["pre_cmd"] = "echo too bad; exit 7"
    place.config(
        execution=place.slurm(auto_export={"destinations": ["local"]}),
        target={"api_endpoint": {"url": "http://localhost:1/v1/chat/completions", "model_id": "fake"}},
        deployment={"type": "none"},
        evaluation=tasks,
    )
    with pytest.raises(ConfigError, match="NEMO_EVALUATOR_TRUST_PRE_CMD=1"):
        plan_invocation(place.compiled("batch"), INVOCATION, place.environ)
    place.environ["NEMO_EVALUATOR_TRUST_PRE_CMD"] = "1"
    said: list[str] = []
    planned, states = ended(place, place.compiled("batch"), said)
    assert list(states.values()) == ["failed", "failed"], said
    bad = next(one for one in Path(planned.folder).iterdir() if one.name != "export")
    assert (bad / "logs/stage.exit").read_text().split()[1] == "7"
    assert any("too bad" in line for line in said)
    assert any("has no results to export" in line for line in said)


def test_an_import_that_dies_stops_the_run_before_anything_is_submitted(
    place: Evaluations, enroot: Enroot, sshd: Sshd
) -> None:
    place.far(sshd, enroot)
    place.config(
        execution=place.slurm(),
        deployment={
            "type": "vllm",
            "image": "registry.invalid/a:1",
            "served_model_name": "m",
            "checkpoint_path": "/m",
        },
        evaluation=place.tasks(),
    )
    enroot.mode("killed")
    with pytest.raises(RemoteError, match="could not be imported"):
        remote.squash_images(place.compiled("run"), place.environ, print)
    assert not list((place.folder / "remote/containers").iterdir())
    (plan,) = remote.squash_plan(place.compiled("run"), place.environ)
    assert plan.action == "import"
    assert len(enroot.calls()) == 1
    place.far(sshd, enroot, container_image="registry.invalid/client:1")
    enroot.mode("well")
    done = remote.squash_images(place.compiled("run"), place.environ, print)
    assert done.profile.container_image.startswith(f"{place.folder}/remote/containers/registry_invalid_client_1-")
    assert remote.why_not_squash(done) == "no image needs an import"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"tunnel": "local"}, "no tunnel"),
        ({"remote_job_dir": ""}, "lacks remote_job_dir"),
        ({"executor": "local"}, "only for executor slurm"),
    ],
)
def test_why_nothing_is_imported_is_said(place: Evaluations, sshd: Sshd, change: dict[str, str], why: str) -> None:
    place.far(sshd, **change)
    place.config(
        execution=place.slurm(output_dir=str(place.folder)),
        deployment={
            "type": "vllm",
            "image": "registry.invalid/a:1",
            "served_model_name": "m",
            "checkpoint_path": "/m",
        },
        evaluation=place.tasks(),
    )
    said: list[str] = []
    compiled = place.compiled("run")
    assert remote.squash_images(compiled, place.environ, said.append) == compiled
    assert why in said[0]
    assert said[0].startswith("[info] ")
