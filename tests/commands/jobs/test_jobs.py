# SPDX-License-Identifier: Apache-2.0
"""`ns status`, `logs`, `cancel`, `experiments`, as a person types them, on jobs that really run."""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path

import pytest
from tests.commands.running import ns
from tests.launch.jobs import cluster, environment, job, pipeline

from newskills.base.plan import Job, Pipeline
from newskills.launch.experiments import Experiment, ExperimentRecords, JobRecord
from newskills.launch.package import Package
from newskills.launch.submit import submit_pipeline

TRAP = "trap 'echo saved; exit 0' TERM; echo begun; for i in {1..3000}; do sleep 0.02; done"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEWSKILLS_EXPERIMENTS_DIR", str(tmp_path / "experiments"))
    return tmp_path


def start(place: Path, name: str, *jobs: Job) -> Experiment:
    return submit_pipeline(pipeline(name, *jobs), cluster(place), environment(place))


def test_from_begin_to_end(place: Path) -> None:
    start(
        place, "mine", job("good", "echo hello; sleep 0.3"), job("bad", "echo oops; exit 9", depends_on=("good",))
    )
    done = ns("ns logs -f mine --command=main", cwd=place)
    assert done.returncode == 9
    assert sorted(done.stdout.splitlines()) == ["[bad] oops", "[good] hello"]  # each log has its own reader
    done = ns("ns status mine", cwd=place)
    assert done.returncode == 0
    head, titles, good, bad = done.stdout.splitlines()
    assert re.match(r"mine/\S+ on cluster none, no git repository, submitted 20", head)
    assert titles.split() == ["job", "state", "exit", "seconds", "logs"]
    assert re.match(r"good +completed +0 +\d+ +/.*/good/logs$", good)
    assert re.match(r"bad +failed: client 'main' ended with exit code 9 +9 +\d+ +/.*/bad/logs$", bad)
    assert ns("ns logs mi --job=bad --command=main", cwd=place).stdout == "oops\n"
    assert "FAILED: client 'main' ended with exit code 9" in ns("ns logs mine --command job", cwd=place).stdout
    assert ns("ns logs -f mine --job=good", cwd=place).returncode == 0


def test_cancel(place: Path) -> None:
    done = start(place, "long", job("one", TRAP), job("two", "true", depends_on=("one",)))
    log = Path(done.jobs[0].logs, "main.log")
    until = time.monotonic() + 300
    while not (log.exists() and "begun" in log.read_text()) and time.monotonic() < until:
        time.sleep(0.05)
    assert re.search(r"^one +running .*\n^two +pending ", ns("ns status long", cwd=place).stdout, re.MULTILINE)
    assert ns("ns status", cwd=place).stdout.splitlines()[1].endswith("1 running, 1 pending")
    cancelled = ns("ns cancel long", cwd=place)
    assert (cancelled.returncode, cancelled.stdout.endswith(": cancelled one, two\n")) == (0, True)
    followed = ns("ns logs -f long", cwd=place)
    assert followed.returncode == 143
    assert "[one/main] saved" in followed.stdout
    assert ns("ns cancel long", cwd=place).stdout.endswith(": no job is running or waiting\n")
    assert ns("ns status", cwd=place).stdout.splitlines()[1].endswith("2 cancelled")


def test_lists_without_asking(place: Path) -> None:
    assert "no experiment has been submitted" in ns("ns experiments", cwd=place).stdout
    assert "nothing has been submitted" in ns("ns status", cwd=place).stdout
    first = start(place, "first", job("one", "true"))
    second = start(place, "second", job("one", "true"), job("two", "true"))
    done = ns("ns experiments", cwd=place)
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["experiment", second.id, first.id]
    only = ns("ns experiments first", cwd=place).stdout.splitlines()
    assert [line.split()[0] for line in only] == ["experiment", first.id]
    assert len(ns("ns experiments --last=1", cwd=place).stdout.splitlines()) == 2
    ns("ns logs -f second", cwd=place)


def test_hostile_logs_do_not_reach_the_terminal(place: Path) -> None:
    shell = r"printf '\033]0;owned\007\033[2J\342\200\256x\000\033[31mred\033[0m\n'"
    start(place, "mine", job("one", shell))
    done = ns("ns logs -f mine --command=main", cwd=place)
    assert done.stdout == "\\x1b]0;owned\\x07\\x1b[2J\\u202ex\\x00red\n"


def test_nothing_printed_yet(place: Path) -> None:
    done = start(place, "quiet", job("one", "true"))
    ns("ns logs -f quiet", cwd=place)
    silent = ns("ns logs quiet --command=main", cwd=place)
    assert (silent.returncode, silent.stdout) == (0, "")
    assert done.jobs[0].logs in silent.stderr


def test_what_is_not_there(place: Path) -> None:
    start(place, "mine", job("one", "true"))
    for words in ("status mien", "logs mien", "cancel mien"):
        done = ns(f"ns {words}", cwd=place)
        assert (done.returncode, done.stdout) == (2, "")
        assert "did you mean 'mine'?" in done.stderr
    done = ns("ns logs mine --job=on", cwd=place)
    assert (done.returncode, "did you mean 'one'?" in done.stderr) == (2, True)
    assert "NAME is missing" in ns("ns logs", cwd=place).stderr
    ns("ns logs -f mine", cwd=place)


def many(place: Path, count: int) -> Experiment:
    """A record of jobs that have ended, every hundredth of them badly."""
    jobs = []
    for number in range(count):
        folder = place / "many" / f"j{number}"
        folder.mkdir(parents=True)
        (folder / "supervisor").write_text(f"1\n{folder}\n")
        (folder / "job.started").write_text("here 1\n")
        (folder / "job.exit").write_text("5 failed it broke\n" if number % 100 == 7 else "0 completed\n")
        jobs.append(JobRecord(name=f"j{number}", folder=str(folder), logs=str(folder), handle=str(folder)))
    found = Experiment(
        name="many",
        stamp="20260101-a",
        submitted_at="2026-01-01T00:00:00+00:00",
        cluster=cluster(place),
        folder=str(place / "many"),
        package=Package(path=""),
        jobs=tuple(jobs),
    )
    ExperimentRecords(environment(place)).create(found, Pipeline(name="many", jobs=()), [])
    return found


def test_a_thousand_jobs_fit_on_a_screen(place: Path) -> None:
    many(place, 1000)
    done = ns("ns status many", cwd=place)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[1] == "1,000 jobs: 990 completed, 10 failed"
    assert [line.split()[:2] for line in lines[4:14]] == [[f"j{n}", "failed:"] for n in range(7, 1000, 100)]
    assert len(lines) <= 24
    assert lines[-1] == "… and 982 more: ns status many --all"
    everything = ns("ns status many --all", cwd=place).stdout.splitlines()
    assert [line.split()[0] for line in everything[2:]] == [f"j{n}" for n in range(1000)]
    assert ns("ns status many --job=j7", cwd=place).stdout.splitlines()[2].startswith("j7")


def test_no_process_for_each_job(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many(place, 60)
    programs, calls = place / "bin", place / "calls"
    programs.mkdir()
    (programs / "stat").write_text(f'#!/bin/bash\necho x >>"{calls}"\nexec {shutil.which("stat")} "$@"\n')
    (programs / "stat").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    done = ns("ns status many --all", cwd=place)
    assert done.stdout.count(" completed ") == 59, done.stderr
    assert calls.read_text().count("x") == 1
