# SPDX-License-Identifier: Apache-2.0
"""A controller that answers late or not at all: stand-ins before the real commands of a real Slurm cluster."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec import structs
from tests.launch.jobs import environment, pipeline
from tests.launch.slurm_cluster import bash, ended, grouped, require_cluster, slurm, story, submitted, until

from newskills.base.errors import ConfigError, RemoteError
from newskills.base.plan import CommandGroup, HardwareConfig, Job
from newskills.launch.clusters.config import ClusterConfig
from newskills.launch.executors import slurm_script, slurm_status, slurm_submission
from newskills.launch.experiments import ExperimentRecords
from newskills.launch.machines.ssh import shell_of
from newskills.launch.states import experiment_states
from newskills.launch.submit import SubmitOptions, executor_of, submit_pipeline, with_handles

TIMED_OUT = (
    "echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation' >&2; exit 1"
)
NO_STEP = (
    "echo 'srun: error: Unable to create step for job 1: Socket timed out on send/recv operation' >&2; exit 1"
)
TAKEN = f'"$real" "$@" >/dev/null; {TIMED_OUT}'
LATE = f'(sleep 2; exec "$real" "$@") >/dev/null 2>&1 & {TIMED_OUT}'
WHEN_TOLD = f'(until [[ -e $go ]]; do sleep 0.1; done; exec "$real" "$@") >/dev/null 2>&1 & {TIMED_OUT}'
ONCE = f'[[ $(wc -l <"$calls") -gt 1 ]] || {{ {TIMED_OUT}; }}; exec "$real" "$@"'


@pytest.fixture(scope="module", autouse=True)
def cluster() -> None:
    require_cluster()


class Stand:
    """A folder of stand-ins, in front of everything else. Each has its `$real` program and a file of its `$calls`."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        folder.mkdir()
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def instead_of(self, name: str, code: str) -> None:
        real = shutil.which(name, path=os.environ["PATH"].partition(":")[2])
        head = f'#!/bin/bash\nreal={real} calls="{self.folder}/{name}.calls" go="{self.folder}/go"'
        (self.folder / name).write_text(f'{head}\necho "$*" >>"$calls"\n{code}\n')
        (self.folder / name).chmod(0o755)

    def calls(self, name: str) -> int:
        return len((self.folder / f"{name}.calls").read_text().splitlines())


@pytest.fixture
def stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stand:
    monkeypatch.setattr(slurm_submission, "SBATCH_SECONDS", 4)
    return Stand(tmp_path / "bin", monkeypatch)


def work(name: str, code: str, *, copies: int = 0, **hardware: object) -> Job:
    group = CommandGroup(name="all", commands=(bash("main", code),), hardware=HardwareConfig(**hardware))
    return grouped(name, group, copies=copies)


def in_queue(folder: Path) -> list[str]:
    """Ids of jobs of that folder, whatever their states."""
    shown = ["squeue", "--noheader", "--states=all", "--format=%A %Z"]
    lines = subprocess.run(shown, capture_output=True, text=True, check=True).stdout.splitlines()
    return [line.split()[0] for line in lines if line.partition(" ")[2].startswith(f"{folder}/")]


@pytest.mark.parametrize(
    "code", [TAKEN, f'"$real" "$@"; {TIMED_OUT}', '"$real" "$@" >/dev/null; exec sleep 600', LATE]
)
@pytest.mark.parametrize("names", [("j",), ("a", "b", "c")])
def test_a_job_that_was_taken_is_found(tmp_path: Path, stand: Stand, code: str, names: Sequence[str]) -> None:
    stand.instead_of("sbatch", code)
    executor = slurm(tmp_path / "jobs")
    handles = submitted(executor, *(work(name, "echo x >>ran") for name in names))
    assert set(ended(executor, list(handles.values())).values()) == {"completed"}
    assert stand.calls("sbatch") == 1
    assert len(in_queue(tmp_path / "jobs")) == len(names)
    assert [(tmp_path / "jobs" / name / "ran").read_text() for name in names] == ["x\n"] * len(names)


def test_copies_are_told_apart(tmp_path: Path, stand: Stand) -> None:
    stand.instead_of("sbatch", TAKEN)
    executor = slurm(tmp_path / "jobs")
    handle = executor.submit(work("j", "echo x >>ran; [[ $(wc -l <ran) -gt 1 ]] || kill -KILL $$", copies=2))
    assert len(set(handle.split(":"))) == 3
    assert ended(executor, [handle]) == {handle: "completed"}
    assert (tmp_path / "jobs" / "j" / "ran").read_text() == "x\nx\n"


def test_what_was_not_taken_is_submitted_again(
    tmp_path: Path, stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm_submission, "LOOK_PAUSES", (0.1, 0.1, 0.1))
    stand.instead_of("sbatch", ONCE)
    executor = slurm(tmp_path / "jobs")
    handle = executor.submit(work("j", "true"))
    assert ended(executor, [handle]) == {handle: "completed"}
    assert stand.calls("sbatch") == 2


def test_what_is_taken_twice_runs_once(tmp_path: Path, stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first answer comes when the second has long been confirmed."""
    monkeypatch.setattr(slurm_submission, "LOOK_PAUSES", (0.1, 0.1, 0.1))
    stand.instead_of("sbatch", f'[[ $(wc -l <"$calls") -gt 1 ]] || {{ {WHEN_TOLD}; }}; exec "$real" "$@"')
    executor = slurm(tmp_path / "jobs")
    handle = executor.submit(work("j", "echo x >>ran"))
    (stand.folder / "go").touch()
    assert ended(executor, [handle]) == {handle: "completed"}
    until(lambda: len(in_queue(tmp_path / "jobs")) == 2, "the second job")
    (other,) = set(in_queue(tmp_path / "jobs")) - {handle}
    ended(executor, [other])
    assert (tmp_path / "jobs" / "j" / "ran").read_text() == "x\n"
    assert f"Nobody waits for job {other}" in story(tmp_path / "jobs" / "j")


def test_what_is_taken_after_all_was_given_up_does_nothing(
    tmp_path: Path, stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm_submission, "LOOK_PAUSES", (0.1, 0.1, 0.1))
    stand.instead_of("sbatch", WHEN_TOLD)
    executor = slurm(tmp_path / "jobs")
    with pytest.raises(
        ConfigError, match=r"Socket timed out.*sbatch was tried 3 times; no job .* is in the queue"
    ):
        executor.submit(work("j", "echo x >>ran"))
    (stand.folder / "go").touch()
    until(lambda: len(in_queue(tmp_path / "jobs")) == 3, "the jobs that come late")
    assert set(ended(executor, in_queue(tmp_path / "jobs")).values()) == {"failed"}
    assert not (tmp_path / "jobs" / "j" / "ran").exists()
    assert not (tmp_path / "jobs" / "j" / "job.exit").exists()


def test_a_job_that_is_refused_is_not_tried_again(tmp_path: Path, stand: Stand) -> None:
    stand.instead_of("sbatch", 'exec "$real" "$@"')
    with pytest.raises(ConfigError, match="partition"):
        slurm(tmp_path / "jobs").submit(work("j", "true", partition="no-such-partition"))
    assert stand.calls("sbatch") == 1


def test_a_queue_that_is_full_is_told(tmp_path: Path, stand: Stand) -> None:
    full = "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying"
    stand.instead_of("sbatch", f"echo '{full}' >&2; exec sleep 600")
    with pytest.raises(ConfigError, match=r"took no more jobs for 4 s \(MaxJobCount\)"):
        slurm(tmp_path / "jobs").submit(work("j", "true"))
    assert stand.calls("sbatch") == 1


def test_status_finds_what_the_record_does_not_know(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if ns had died, or lost the connection, between the submission and the record of it."""
    monkeypatch.chdir(tmp_path)
    folder = ClusterConfig(executor="slurm", job_dir=str(tmp_path / "jobs"), default_timeout="00:05:00")
    environ = environment(tmp_path)
    jobs = [*(work(f"j{n}", "exec sleep 600") for n in range(2)), work("k", "exit 3", time_limit="1")]
    plan = pipeline("lost", *(structs.replace(job, makes=(f"/out/{job.name}",)) for job in jobs))
    done = submit_pipeline(plan, folder, environ, SubmitOptions())
    forgotten = structs.replace(done, jobs=tuple(structs.replace(job, handle="") for job in done.jobs))
    executor = executor_of(done, environ)
    for job in done.jobs[1:]:
        Path(job.folder, "job.handle").unlink()
    ended(executor, [done.jobs[2].handle])
    ExperimentRecords(environ).update(forgotten)
    again = submit_pipeline(plan, folder, environ, SubmitOptions())
    assert [job.name for job in again.jobs] == ["k"]  # the others are at work, whatever the record says
    ExperimentRecords(environ).update(forgotten)
    found = with_handles(ExperimentRecords(environ).find(done.id), environ)
    assert found.handles == done.handles
    assert ExperimentRecords(environ).find(done.id).handles == done.handles
    ended(executor, [found.jobs[2].handle])
    seen = experiment_states(found, executor, shell_of(folder, environ))
    assert [one.state for one in seen] == ["running", "running", "failed"]
    executor.cancel(found.handles)
    ended(executor, list(found.handles))


def test_a_step_that_the_controller_did_not_create_is_tried_again(tmp_path: Path, stand: Stand) -> None:
    stand.instead_of("srun", f'[[ $(wc -l <"$calls") -gt 1 ]] || {{ {NO_STEP}; }}; exec "$real" "$@"')
    executor = slurm(tmp_path / "jobs", environ=dict(os.environ))
    handle = executor.submit(work("j", "echo ran"))
    assert ended(executor, [handle]) == {handle: "completed"}, story(tmp_path / "jobs" / "j")
    assert stand.calls("srun") == 2
    assert (tmp_path / "jobs" / "j" / "logs" / "main.log").read_text().count("ran\n") == 1


def test_a_copy_goes_on_where_no_step_could_be_created(
    tmp_path: Path, stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm_script, "STEP_PATIENCE", 0)
    stand.instead_of("srun", f'[[ $NEWSKILLS_COPY -gt 0 ]] || {{ {NO_STEP}; }}; exec "$real" "$@"')
    executor = slurm(tmp_path / "jobs", environ=dict(os.environ))
    handle = executor.submit(work("j", "echo x >>ran", copies=1))
    assert ended(executor, [handle]) == {handle: "completed"}, story(tmp_path / "jobs" / "j")
    assert (tmp_path / "jobs" / "j" / "ran").read_text() == "x\n"
    assert "the controller did not create the step of 'main'" in story(tmp_path / "jobs" / "j")


def test_a_step_that_fails_for_another_reason_is_not_tried_again(tmp_path: Path, stand: Stand) -> None:
    stand.instead_of("srun", "echo 'srun: error: Unable to create step: Invalid account' >&2; exit 1")
    executor = slurm(tmp_path / "jobs", environ=dict(os.environ))
    handle = executor.submit(work("j", "true"))
    assert ended(executor, [handle]) == {handle: "failed"}
    assert stand.calls("srun") == 1


def test_a_job_that_waits_for_its_step_can_be_cancelled(tmp_path: Path, stand: Stand) -> None:
    stand.instead_of("srun", NO_STEP)
    executor = slurm(tmp_path / "jobs", environ=dict(os.environ))
    handle = executor.submit(work("j", "true"))
    log = tmp_path / "jobs" / "j" / "logs" / "main.log"
    until(lambda: log.exists() and "trying again" in log.read_text(), "the first try")
    executor.cancel([handle])
    assert ended(executor, [handle]) == {handle: "cancelled"}, story(tmp_path / "jobs" / "j")


def test_accounting_that_hangs_is_not_waited_for(
    tmp_path: Path, stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm_status, "SACCT_SECONDS", 1)
    stand.instead_of("sacct", "exec sleep 600")
    folder = tmp_path / "jobs" / "j"
    folder.mkdir(parents=True)
    (folder / "job.handle").write_text("99999001\n/nowhere\n")
    (folder / "job.exit").write_text("0 completed\n")
    assert slurm(tmp_path / "jobs").state(["99999001", "99999002"]) == {
        "99999001": "completed",
        "99999002": "unknown",
    }


def test_a_queue_that_hangs_is_told(tmp_path: Path, stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm_status, "SQUEUE_SECONDS", 1)
    stand.instead_of("squeue", "exec sleep 600")
    with pytest.raises(
        RemoteError, match="squeue got no answer on this machine: the Slurm controller is slow or down"
    ):
        slurm(tmp_path / "jobs").state(["99999001"])
