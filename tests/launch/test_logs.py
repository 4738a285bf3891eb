# SPDX-License-Identifier: Apache-2.0
"""Logs of real files and jobs, here and over a real ssh server."""

from __future__ import annotations

import contextlib
import os
import shlex
import threading
import time
from pathlib import Path

import pytest
from tests.launch.jobs import cluster, environment, job, pipeline
from tests.launch.sshd import remote, sshd

from newskills.base.errors import ConfigError
from newskills.launch.clusters.config import ClusterConfig
from newskills.launch.experiments import Experiment, JobRecord
from newskills.launch.logs import clean_line, follow_logs, log_files, read_logs
from newskills.launch.machines.shell import LocalMachine, Shell
from newskills.launch.package import Package
from newskills.launch.states import JobWatch, experiment_states
from newskills.launch.submit import executor_of, submit_pipeline

__all__ = ["remote", "sshd"]


@pytest.fixture(params=["here", "remote"])
def shell(request: pytest.FixtureRequest) -> Shell:
    return LocalMachine() if request.param == "here" else request.getfixturevalue("remote")


def experiment(folder: str) -> Experiment:
    jobs = [("train", {"main": "client", "server": "server"}), ("judge", {"main": "client"})]
    return Experiment(
        name="mine",
        stamp="1",
        submitted_at="",
        cluster=ClusterConfig(),
        folder=folder,
        package=Package(path=""),
        jobs=tuple(JobRecord(name=n, folder=f"{folder}/{n}", logs=f"{folder}/{n}", commands=c) for n, c in jobs),
    )


def pattern(path: Path) -> str:
    return f"{shlex.quote(str(path)[:-1])}[{path.name[-1]}]"


def test_labels_tell_apart_what_has_to_be() -> None:
    mine = experiment("/x")
    assert [label for label, _ in log_files(mine, None, None)] == [
        "train/main",
        "train/server",
        "train/job",
        "judge/main",
        "judge/job",
    ]
    assert log_files(mine, "judge", None) == [
        ("main", "/x/judge/main.lo[g]"),
        ("job", "/x/judge/job.lo[g] /x/judge/judge_*_sbatch.log"),
    ]
    assert log_files(mine, None, "server") == [("train", "/x/train/server.lo[g]")]
    assert log_files(mine, "train", "main") == [("", "/x/train/main.lo[g]")]
    with pytest.raises(ConfigError, match="no job 'jugde'; did you mean 'judge'"):
        log_files(mine, "jugde", None)
    with pytest.raises(ConfigError, match="command 'sever'; did you mean 'server'"):
        log_files(mine, None, "sever")


def test_reads_what_is_there(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "a b'c.log").write_text("one\ntwo")
    (tmp_path / "x.log").write_bytes(b"\xff\x1b[31mred\x1b[0m\n10%\r20%\r30%\nwindows\r\n")
    files = [
        ("job/a", pattern(tmp_path / "a b'c.log")),
        ("none", pattern(tmp_path / "none")),
        ("", pattern(tmp_path / "x.log")),
    ]
    lines = list(read_logs(shell, files))
    assert lines == ["[job/a] one", "[job/a] two", "\ufffdred", "30%", "windows"]


def test_logs_of_slurm_jobs_have_a_number(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "judge").mkdir()
    (tmp_path / "judge" / "judge_17_sbatch.log").write_text("first life\n")
    (tmp_path / "judge" / "judge_18_sbatch.log").write_text("second life\n")
    files = log_files(experiment(str(tmp_path)), "judge", "job")
    assert list(read_logs(shell, files)) == ["first life", "second life"]
    assert list(follow_logs(shell, files, lambda: True)) == ["first life", "second life"]


def test_follows_until_it_is_over(shell: Shell, tmp_path: Path) -> None:
    """Files that appear later, and lines written right before the end, are all shown."""
    over, seen, late = threading.Event(), [], tmp_path / "late.log"
    (tmp_path / "early.log").write_text("first\n")
    files = [("early", pattern(tmp_path / "early.log")), ("late", pattern(late))]
    for line in follow_logs(shell, files, over.is_set):
        seen.append(line)
        if line == "[early] first":
            late.write_text("appeared\n")
        if line == "[late] appeared":
            with late.open("a") as file:
                file.write("".join(f"{i}\n" for i in range(1000)))
            over.set()
    assert seen[:2] == ["[early] first", "[late] appeared"]
    assert seen[2:] == [f"[late] {i}" for i in range(1000)]


def test_nothing_stays_when_the_listener_leaves(shell: Shell, tmp_path: Path) -> None:
    log = tmp_path / "left-behind.log"
    log.write_text("one\n")
    lines = follow_logs(shell, [("", pattern(log))], lambda: False)
    assert next(lines) == "one"
    assert tails(log)
    lines.close()  # type: ignore[attr-defined]
    until = time.monotonic() + 300
    while tails(log) and time.monotonic() < until:
        time.sleep(0.05)
    assert not tails(log)


def tails(log: Path) -> list[str]:
    """Process ids of those that have `log` in their argv."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if words[0] == b"tail" and os.fsencode(log) in words:
                found.append(process.name)
    return found


def test_what_goes_wrong_while_following_is_said(shell: Shell, tmp_path: Path) -> None:
    def over() -> bool:
        raise ConfigError("lost")

    with pytest.raises(ConfigError, match="lost"):
        list(follow_logs(shell, [("", pattern(tmp_path / "x"))], over))


def test_follows_a_job_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    environ = environment(tmp_path)
    work = "for i in 1 2 3; do echo line $i; sleep 0.2; done; exit 5"
    done = submit_pipeline(pipeline("mine", job("one", work)), cluster(tmp_path), environ)
    executor = executor_of(done, environ)
    watch = JobWatch(done.jobs, executor, LocalMachine())
    lines = list(follow_logs(LocalMachine(), log_files(done, "one", "main"), watch.all_ended))
    assert lines == ["line 1", "line 2", "line 3"]
    assert [one.code for one in experiment_states(done, executor, LocalMachine())] == [5]


def test_a_job_without_a_mark_ends_the_following(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The executor knows that it has ended, though there is no job.exit."""
    monkeypatch.chdir(tmp_path)
    environ = environment(tmp_path)
    done = submit_pipeline(pipeline("mine", job("one", "echo begun; sleep 600")), cluster(tmp_path), environ)
    executor = executor_of(done, environ)
    watch = JobWatch(done.jobs, executor, LocalMachine())
    assert not watch.all_ended()
    executor.cancel(done.handles)
    executor.wait(done.handles)  # type: ignore[attr-defined]
    os.unlink(f"{done.jobs[0].folder}/job.exit")
    watch._asked = -1e9
    assert watch.all_ended()


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("a\x1b[1;31mb\x1b[m", "ab"),
        ("10%\r100%", "100%"),
        ("x\r", "x"),
        ("\x1b]0;t\x07", "\x1b]0;t\x07"),
        ("", ""),
    ],
)
def test_clean(line: str, shown: str) -> None:
    assert clean_line(line) == shown
