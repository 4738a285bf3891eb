# SPDX-License-Identifier: Apache-2.0
"""`ns evaluate --run` and `--batch` from a laptop: a real Slurm cluster behind a real ssh server."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
from tests.apps.evaluator.evaluations import KEY, Evaluations
from tests.apps.evaluator.test_remote_slurm import nothing_of, seen_processes
from tests.commands.running import ns
from tests.launch.enroot import Enroot, srun_without_pyxis
from tests.launch.slurm_cluster import require_cluster
from tests.launch.sshd import Sshd, sshd

__all__ = ["sshd"]

PORT = 18577
IMAGE = "registry.invalid/team/server:2"


@pytest.fixture
def place(tmp_path: Path, sshd: Sshd) -> Evaluations:
    require_cluster()
    place = Evaluations(tmp_path)
    enroot = Enroot(tmp_path / "stub")
    srun_without_pyxis(enroot)
    place.far(sshd, enroot)
    deployment = {"type": "generic", "command": place.command(PORT), "port": PORT, "served_model_name": "fake"}
    place.config(
        execution=place.slurm(auto_export={"destinations": ["wandb"]}),
        deployment={**deployment, "image": IMAGE},
        evaluation=place.tasks(),
    )
    (tmp_path / ".netrc").write_text(f"machine api.wandb.ai login user password {KEY}{KEY}\n")
    (tmp_path / ".netrc").chmod(0o600)
    place.environ["WANDB_MODE"] = "offline"
    return place


def evaluate(place: Evaluations, *words: str, code: int = 0) -> str:
    done = ns("ns evaluate -c config.yaml", *words, cwd=place.folder, env=place.environ)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def asked(place: Evaluations, line: str, code: int = 0) -> str:
    done = ns(line, cwd=place.folder, env=place.environ)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def invocation_in(said: str) -> str:
    found = re.search(r"✓ Evaluation submitted: ([0-9a-f]{16})\n", said)
    assert found is not None, said
    return found[1]


def states(place: Evaluations, invocation: str) -> list[str]:
    return [job["status"] for job in json.loads(asked(place, f"ns status {invocation} --json"))]


def test_run_shows_the_logs_and_ends_as_the_jobs_do(place: Evaluations) -> None:
    dry = evaluate(place, "--run", "far", "--dry-run")
    assert f"{IMAGE}: will be imported on a compute node" in re.sub(r"\s+", " ", dry)
    assert "#SBATCH --partition=batch" in dry
    assert not (place.folder / "remote").exists()
    processes, over = seen_processes()
    said = evaluate(place, "--run", "far")
    over.set()
    assert "[info] Detected W&B login, setting WANDB_API_KEY" in said
    assert f"enroot import of docker://{IMAGE.replace('/', '#', 1)} on n" in said
    assert "pass@1" in said
    assert "W&B run eval-" in said
    invocation = invocation_in(said)
    assert states(place, invocation[:6]) == ["success"]
    (record,) = (json.loads(line) for line in (place.folder / "exec-db.jsonl").read_text().splitlines())
    assert (record["invocation_id"], record["executor"]) == (invocation, "slurm")
    run = Path(record["data"]["remote_rundir_path"])
    assert re.fullmatch(rf"\d{{8}}_\d{{6}}-{invocation}", run.parent.name)
    assert (run / "artifacts/results.yml").is_file()
    assert list((run.parent / "export").glob("wandb/offline-run-*"))
    (place.folder / ".netrc").unlink()
    nothing_of(KEY, place.folder, [said, *processes])


@pytest.mark.nightly
def test_batch_returns_and_its_id_is_known_to_all_commands(place: Evaluations) -> None:
    said = evaluate(place, "--batch", "far", "execution.auto_export.destinations=[]")
    invocation = invocation_in(said)
    assert "pass@1" not in said
    followed = asked(place, f"ns logs -f {invocation[:8]}")
    assert "pass@1" in followed
    assert states(place, invocation) == ["success"]
    exported = asked(place, f"ns export {invocation} --format json --output_dir exported")
    assert "scores of 1 tasks" in exported
    assert "own-sums" in (place.folder / f"exported/{invocation}/processed_results.json").read_text()


@pytest.mark.nightly
def test_what_waits_or_runs_is_cancelled(place: Evaluations) -> None:
    slow = {"execution.auto_export.destinations": "[]", "deployment.command": "'sleep 600'"}
    said = evaluate(place, "--batch", "far", *(f"{key}={text}" for key, text in slow.items()))
    invocation = invocation_in(said)
    assert states(place, invocation)[0] in ("pending", "running")
    assert invocation in asked(place, f"ns cancel {invocation}")
    deadline = time.monotonic() + 300
    while states(place, invocation) != ["killed"]:
        assert time.monotonic() < deadline
        time.sleep(0.3)


def test_an_import_that_is_killed_is_told_and_nothing_is_submitted(place: Evaluations) -> None:
    (place.folder / "stub/mode").write_text("killed")
    said = evaluate(place, "--run", "far", code=1)
    assert "could not be imported" in said
    assert "exit code 137" in said
    assert not (place.folder / "exec-db.jsonl").exists()
    assert list((place.folder / "remote/containers").iterdir()) == []
