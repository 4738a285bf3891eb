# SPDX-License-Identifier: Apache-2.0
"""Jobs that are alike go to a real Slurm cluster as tasks of one array, and nobody can tell but by their ids."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from msgspec import structs
from tests.launch.slurm_cluster import (
    bash,
    ended,
    field,
    grouped,
    require_cluster,
    scontrol,
    slurm,
    story,
    submitted,
    until,
)

from newskills.base.plan import CommandGroup, HardwareConfig, Job
from newskills.launch.executors.slurm import Slurm
from newskills.launch.executors.slurm_submission import ArrayBatch, array_batches

STAY = "touch here; exec sleep 600"
SAVE = "trap 'touch saved; exit 7' TERM; touch here; sleep 600 & wait"


@pytest.fixture(scope="module", autouse=True)
def cluster() -> None:
    require_cluster()


def work(name: str, code: str, *needs: str, copies: int = 0, **hardware: object) -> Job:
    group = CommandGroup(name="all", commands=(bash("main", code),), hardware=HardwareConfig(**hardware))
    return grouped(name, group, depends_on=needs, copies=copies)


def ids(handles: dict[str, str]) -> set[str]:
    """Of the arrays."""
    return {handle.split("_")[0] for handle in handles.values()}


def test_jobs_that_are_alike_are_one_array(tmp_path: Path) -> None:
    executor = slurm(tmp_path)
    handles = submitted(executor, *(work(f"j{n}", f"echo I am {n}; exit {n % 2}") for n in range(6)))
    assert len(ids(handles)) == 1
    assert [handle.split("_")[1] for handle in handles.values()] == ["0", "1", "2", "3", "4", "5"]
    states = ended(executor, list(handles.values()))
    assert [states[handles[f"j{n}"]] for n in range(6)] == ["completed", "failed"] * 3
    for number in range(6):
        folder, handle = tmp_path / f"j{number}", handles[f"j{number}"]
        assert f"I am {number}\n" in (folder / "logs" / "main.log").read_text()
        assert "job starts on" in (folder / "logs" / f"j{number}_{handle}_sbatch.log").read_text()
        assert (folder / "job.handle").read_text() == f"{handle}\n{folder}/logs\n"
        assert f"I am {number}" in list(executor.logs(handle))
    assert executor.state([f"{handles['j0'].split('_')[0]}_77"]) == {
        f"{handles['j0'].split('_')[0]}_77": "unknown"
    }


def test_jobs_that_are_not_alike_are_not(tmp_path: Path) -> None:
    two = grouped("two", *(CommandGroup(name=n, commands=(bash(n, "true"),)) for n in ("a", "b")))
    other = grouped("other", *(CommandGroup(name=n, commands=(bash(n, "true"),)) for n in ("a", "b")))
    jobs = (work("a", "true"), work("b", "true", time_limit="00:05:00"), two, other)
    executor = slurm(tmp_path)
    handles = submitted(executor, *jobs)
    assert not [handle for handle in handles.values() if "_" in handle]
    assert set(ended(executor, list(handles.values())).values()) == {"completed"}


def test_each_waits_for_its_own(tmp_path: Path) -> None:
    """Two arrays, one after the other: a task of the second need not wait for all of the first."""
    executor = slurm(tmp_path)
    makers = [work(f"make{n}", STAY if n == 0 else "true") for n in range(3)]
    judges = [work(f"judge{n}", "touch here", f"make{n}") for n in range(3)]
    handles = submitted(executor, *makers, *judges, work("end", "touch here", *(f"judge{n}" for n in range(3))))
    assert len(ids(handles)) == 3
    assert set(ended(executor, [handles["judge1"], handles["judge2"]]).values()) == {"completed"}
    states = executor.state(list(handles.values()))
    assert states[handles["make0"]] == "running"
    assert states[handles["judge0"]] == states[handles["end"]] == "pending (Dependency)"
    assert not (tmp_path / "end" / "here").exists()
    executor.cancel([handles["make0"]])
    assert ended(executor, [handles["judge0"], handles["end"]]) == {
        handles["judge0"]: "completed",
        handles["end"]: "completed",
    }


@pytest.mark.parametrize("kind", ["afterok", "aftercorr"])
def test_what_fails_stops_those_behind_it(tmp_path: Path, kind: str) -> None:
    executor = slurm(tmp_path, dependency_type=kind)
    makers = [work(f"make{n}", f"sleep 1; exit {n}") for n in range(2)]
    judges = [work(f"judge{n}", "true", f"make{n}") for n in range(2)]
    handles = submitted(executor, *makers, *judges)
    states = ended(executor, list(handles.values()))
    assert [states[handles[name]].split()[0] for name in ("make0", "make1", "judge0", "judge1")] == [
        "completed",
        "failed",
        "completed",
        "cancelled",
    ]


def test_copies_of_tasks_go_on_each_for_itself(tmp_path: Path) -> None:
    executor = slurm(tmp_path)
    crash = "echo x >>tries; [[ $(wc -l <tries) -gt 1 ]] || kill -KILL $$"
    codes = {"crash": crash, "bad": "echo x >>tries; exit 5", "good": "echo x >>tries", "long": STAY}
    handles = submitted(executor, *(work(name, code, copies=2) for name, code in codes.items()))
    assert len({handle.split(":")[2].split("_")[0] for handle in handles.values()}) == 1
    three = [handles[name] for name in ("crash", "bad", "good")]
    assert list(ended(executor, three).values()) == ["completed", "failed", "completed"], story(tmp_path / "crash")
    assert [(tmp_path / name / "tries").read_text() for name in ("crash", "bad", "good")] == [
        "x\nx\n",
        "x\n",
        "x\n",
    ]
    assert executor.state([handles["long"]]) == {handles["long"]: "running"}
    executor.cancel([handles["long"]])
    assert ended(executor, [handles["long"]]) == {handles["long"]: "cancelled"}


def test_single_tasks_can_be_cancelled(tmp_path: Path) -> None:
    executor = slurm(tmp_path)
    handles = submitted(executor, *(work(f"j{n}", "true", sbatch_kwargs={"begin": "now+1hour"}) for n in range(5)))
    executor.cancel([handles["j1"], handles["j3"]])
    states = executor.state(list(handles.values()))
    assert [states[handles[f"j{n}"]].split()[0] for n in range(5)] == [
        "pending",
        "cancelled",
        "pending",
        "cancelled",
        "pending",
    ]
    executor.cancel(list(handles.values()))
    assert set(ended(executor, list(handles.values())).values()) == {"cancelled"}


def test_running_tasks_may_save_their_work(tmp_path: Path) -> None:
    executor = slurm(tmp_path)
    handles = submitted(executor, work("a", SAVE), work("b", SAVE))
    until(lambda: (tmp_path / "a" / "here").exists() and (tmp_path / "b" / "here").exists(), "both tasks")
    executor.cancel([handles["a"]])
    assert ended(executor, [handles["a"]]) == {handles["a"]: "cancelled"}
    assert (tmp_path / "a" / "saved").exists()
    assert executor.state([handles["b"]]) == {handles["b"]: "running"}
    executor.cancel([handles["b"]])
    assert ended(executor, [handles["b"]]) == {handles["b"]: "cancelled"}
    assert (tmp_path / "b" / "saved").exists()


def test_an_array_that_is_removed_by_hand(tmp_path: Path) -> None:
    executor = slurm(tmp_path)
    handles = submitted(executor, *(work(f"j{n}", "true", sbatch_kwargs={"hold": True}) for n in range(3)))
    subprocess.run(["scancel", *ids(handles)], check=True)
    assert set(ended(executor, list(handles.values())).values()) == {"cancelled"}


def test_a_requeued_task_goes_on(tmp_path: Path) -> None:
    lives = "echo ${SLURM_RESTART_COUNT:-0} >>lives; [[ ${SLURM_RESTART_COUNT:-0} -gt 0 ]] || exec sleep 600"
    executor = slurm(tmp_path)
    handles = submitted(executor, work("a", lives), work("b", "true"))
    until((tmp_path / "a" / "lives").exists, "the first life")
    scontrol("requeue", handles["a"])
    until(lambda: executor.state([handles["a"]])[handles["a"]].startswith("requeued"), "the second life")
    scontrol("update", f"jobid={handles['a']}", "starttime=now+2")  # a second life in the same second is refused
    states = ended(executor, list(handles.values()))
    assert states == {handles["a"]: "completed", handles["b"]: "completed"}, story(tmp_path / "a")
    assert (tmp_path / "a" / "lives").read_text() == "0\n1\n"
    assert field(scontrol("show", "job", handles["a"]), "Restarts") == "1"


def test_logs_lie_where_the_user_wants_them(tmp_path: Path) -> None:
    plain = slurm(tmp_path / "jobs 100%")
    executor = Slurm(structs.replace(plain._site, log_dir=str(tmp_path / "logs")))
    handles = submitted(executor, work("a", "echo hello"), work("b", "true"))
    assert set(ended(executor, list(handles.values())).values()) == {"completed"}
    assert "hello" in (tmp_path / "logs" / "a" / "main.log").read_text()
    assert "job starts on" in (tmp_path / "logs" / "a" / f"a_{handles['a']}_sbatch.log").read_text()


def test_arrays_are_no_larger_than_the_cluster_takes() -> None:
    assert array_batches([[0, 1, 2, 3, 4], [5], [6, 7]], 2) == [
        ArrayBatch((0, 1), 0),
        ArrayBatch((2, 3), 1),
        ArrayBatch((4,)),
        ArrayBatch((5,)),
        ArrayBatch((6, 7), 2),
    ]
    assert array_batches([[0, 1]], 1) == [ArrayBatch((0,)), ArrayBatch((1,))]
