# SPDX-License-Identifier: Apache-2.0
"""From a pipeline to processes that run."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from msgspec import structs
from tests.launch.jobs import cluster, environment, job, pipeline
from tests.launch.repositories import repository, write

from newskills.base.errors import ConfigError, NewskillsError, UnknownNameError
from newskills.launch.experiments import Experiment, ExperimentRecords
from newskills.launch.machines.shell import LocalMachine
from newskills.launch.package import PackageOptions
from newskills.launch.place import PendingJob
from newskills.launch.states import experiment_states
from newskills.launch.submit import SubmitOptions, executor_of, submit_pipeline


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    repository(tmp_path / "repo", {"a.txt": "content\n"})
    monkeypatch.chdir(tmp_path / "repo")
    return tmp_path


def wait(experiment: Experiment, environ: dict[str, str]) -> dict[str, str]:
    """Job → state."""
    executor = executor_of(experiment, environ)
    executor.wait(experiment.handles)  # type: ignore[attr-defined]
    return {one.job.name: one.state for one in experiment_states(experiment, executor, LocalMachine())}


def test_runs_in_order_and_is_recorded(place: Path) -> None:
    environ = environment(place)
    plan = pipeline(
        "mine",
        job("second", f"cat a.txt {place}/first >{place}/second", depends_on=("first",)),
        job("first", f"sleep 0.3; echo 1 >{place}/first"),
    )
    done = submit_pipeline(plan, cluster(place), environ)
    assert [one.name for one in done.jobs] == ["first", "second"]
    assert wait(done, environ) == {"first": "completed", "second": "completed"}
    assert (place / "second").read_text() == "content\n1\n"
    assert ExperimentRecords(environ).find("mine") == done
    assert done.folder == f"{place}/jobs/mine/{done.stamp}"
    assert done.package.path == str(place / "repo")
    assert len(done.package.commit) == 40
    recorded = json.loads((place / "experiments" / "mine" / done.stamp / "plan.json").read_text())
    assert [one["name"] for one in recorded["jobs"]] == ["second", "first"]


def test_the_same_name_again_does_not_disturb_what_runs(place: Path) -> None:
    environ = environment(place)
    plan = pipeline("mine", job("one", "sleep 0.5"))
    first, second = (submit_pipeline(plan, cluster(place), environ) for _ in range(2))
    assert first.folder != second.folder
    assert wait(first, environ) == wait(second, environ) == {"one": "completed"}


def test_states_tell_codes_and_times(place: Path) -> None:
    environ = environment(place)
    done = submit_pipeline(
        pipeline("mine", job("bad", "sleep 0.2; exit 7"), job("good", "true")), cluster(place), environ
    )
    wait(done, environ)
    bad, good = experiment_states(done, executor_of(done, environ), LocalMachine())
    assert (bad.state, bad.exit_code, bad.code, good.exit_code, good.code) == ("failed", 7, 7, 0, 0)
    assert "ended with exit code 7" in bad.why
    assert bad.seconds is not None
    assert 0.1 < bad.seconds < 60


def test_dry_run_touches_nothing(place: Path) -> None:
    environ = environment(place)
    plan = pipeline("mine", job("one", f"touch {place}/ran"))
    planned = submit_pipeline(plan, cluster(place), environ, SubmitOptions(dry_run=True))
    assert [(one.name, one.handle, one.commands) for one in planned.jobs] == [("one", "", {"main": "client"})]
    assert sorted(os.listdir(place)) == ["repo"]


def test_what_is_wrong_is_said_before_anything_happens(place: Path) -> None:
    wrong = pipeline("mine", job("one", "true"), job("two", "true", depends_on=("nine",)))
    with pytest.raises(ConfigError, match="depends on 'nine'"):
        submit_pipeline(wrong, cluster(place), environment(place))
    assert sorted(os.listdir(place)) == ["repo"]


def test_runs_after_other_experiments(place: Path) -> None:
    environ = environment(place)
    slow = submit_pipeline(pipeline("slow", job("one", f"sleep 1; echo 1 >{place}/slow")), cluster(place), environ)
    after = submit_pipeline(
        pipeline("after", job("two", f"cp {place}/slow {place}/copy", run_after=("slow",))),
        cluster(place),
        environ,
    )
    assert after.jobs[0].after == slow.handles
    assert wait(after, environ) == {"two": "completed"}
    assert (place / "copy").read_text() == "1\n"
    third = submit_pipeline(
        pipeline("third", job("three", "true", run_after=("slow", slow.id))), cluster(place), environ
    )
    assert third.jobs[0].after == ()  # it has ended
    fourth = submit_pipeline(
        pipeline("fourth", job("four", "true", run_after=slow.handles)), cluster(place), environ
    )
    wait(third, environ)
    wait(fourth, environ)


def test_an_experiment_that_nobody_knows(place: Path) -> None:
    environ, said = environment(place), []  # type: ignore[var-annotated]
    submit_pipeline(pipeline("train", job("one", "true")), cluster(place), environ)
    plan = pipeline("mine", job("two", "true", run_after=("trian",)))
    with pytest.raises(UnknownNameError, match=r"did you mean 'train'\? --allow_missing_dependency"):
        submit_pipeline(plan, cluster(place), environ)
    options = SubmitOptions(allow_missing_dependency=True)
    done = submit_pipeline(plan, cluster(place), environ, options, say=said.append)
    assert done.jobs[0].after == ()
    assert any("trian" in line for line in said)
    wait(done, environ)


def test_afterok_on_what_has_failed(place: Path) -> None:
    environ, strict = environment(place), cluster(place, dependency_type="afterok")
    wait(submit_pipeline(pipeline("bad", job("one", "false")), strict, environ), environ)
    with pytest.raises(ConfigError, match="Job 'one' of 'bad' has ended as failed"):
        submit_pipeline(pipeline("mine", job("two", "true", run_after=("bad",))), strict, environ)


def test_another_cluster_cannot_be_waited_for(place: Path) -> None:
    environ = environment(place)
    done = submit_pipeline(pipeline("here", job("one", "true")), cluster(place), environ)
    elsewhere = Experiment(
        name="there",
        stamp="1",
        submitted_at=done.submitted_at,
        cluster=cluster(place, executor="slurm", name="far"),
        folder="/f",
        package=done.package,
        jobs=done.jobs,
    )
    ExperimentRecords(environ).create(elsewhere, pipeline("there"), [])
    with pytest.raises(ConfigError, match="submitted to cluster 'far'"):
        submit_pipeline(pipeline("mine", job("two", "true", run_after=("there",))), cluster(place), environ)


EXECUTOR = """
from newskills.launch.executors.none import Processes

class Failing(Processes):
    def submit(self, job, *, after=()):
        if job.name == "third":
            raise RuntimeError("no third one")
        return super().submit(job, after=after)

class Whole(Processes):
    def submit_all(self, jobs):
        handles = {}
        for one in jobs:
            handles[one.job.name] = self.submit(one.job, after=[*one.after, *(handles[n] for n in one.needs)])
        return handles

def failing(site):
    return Failing(site)

def whole(site):
    return Whole(site)
"""


@pytest.mark.nightly
def test_all_or_none(place: Path) -> None:
    """Where one cannot be submitted, those before it are stopped."""
    write(place, {"mine.py": EXECUTOR})
    environ = environment(place)
    names = ("first", "second", "third")
    plan = pipeline("mine", *(job(name, "sleep 60") for name in names))
    with pytest.raises(RuntimeError, match="no third one"):
        submit_pipeline(plan, cluster(place, executor=f"{place}/mine.py::failing"), environ)
    found = ExperimentRecords(environ).find("mine")
    assert [bool(one.handle) for one in found.jobs] == [True, True, False]
    executor = executor_of(found, environ)
    executor.wait(found.handles)  # type: ignore[attr-defined]
    assert [one.state for one in experiment_states(found, executor, LocalMachine())] == [
        "cancelled",
        "cancelled",
        "not submitted",
    ]


def test_an_executor_may_take_all_at_once(place: Path) -> None:
    write(place, {"mine.py": EXECUTOR})
    environ = environment(place)
    plan = pipeline("mine", job("b", f"cat {place}/a", depends_on=("a",)), job("a", f"sleep 0.2; touch {place}/a"))
    done = submit_pipeline(plan, cluster(place, executor=f"{place}/mine.py::whole"), environ)
    assert wait(done, environ) == {"a": "completed", "b": "completed"}
    assert PendingJob(plan.jobs[0], needs=("a",)).after == ()


def test_no_secret_is_recorded(place: Path) -> None:
    environ = environment(place, MY_TOKEN="hush" + "-1234567", OPENAI_API_KEY="hush" + "-7654321")
    mine = cluster(place, env_vars=["MY_TOKEN", "PLAIN=x"], required_env_vars=["MY_TOKEN"])
    plan = pipeline("mine", job("one", f'printf %s "$MY_TOKEN$OPENAI_API_KEY$PLAIN" >{place}/seen'))
    done = submit_pipeline(plan, mine, environ)
    assert wait(done, environ) == {"one": "completed"}
    assert (place / "seen").read_text() == "hush-1234567hush-7654321x"
    (place / "seen").unlink()
    for file in place.rglob("*"):
        if file.is_file():
            assert b"hush" not in file.read_bytes(), file
    without = {name: value for name, value in environ.items() if name != "MY_TOKEN"}
    assert executor_of(done, without).state(done.handles)  # looking needs no secrets


def test_reuses_the_package_of_an_experiment(place: Path) -> None:
    """Also where files have changed since."""
    environ = environment(place)
    packing = cluster(place, executor=f"{place}/mine.py::whole")
    write(place, {"mine.py": EXECUTOR})
    options = SubmitOptions(packaging=PackageOptions(folder=place / "repo"))
    first = submit_pipeline(pipeline("first", job("one", "cat a.txt")), packing, environ, options)
    assert first.package.hash
    write(place / "repo", {"a.txt": "changed\n"})
    with pytest.raises(ConfigError, match="not committed"):
        submit_pipeline(pipeline("second", job("one", "true")), packing, environ, options)
    again = SubmitOptions(reuse_code_exp="first")
    second = submit_pipeline(pipeline("second", job("one", f"cat a.txt >{place}/seen")), packing, environ, again)
    assert second.package == structs.replace(first.package, copied=0)
    wait(first, environ)
    assert wait(second, environ) == {"one": "completed"}
    assert (place / "seen").read_text() == "content\n"
    with pytest.raises(NewskillsError, match="is not on cluster"):
        submit_pipeline(
            pipeline("third", job("one", "true")),
            cluster(place, executor="local", containers={"a": "b:1"}),
            environ,
            again,
        )


def test_a_beginning_of_a_name_is_not_waited_for(place: Path) -> None:
    environ = environment(place)
    done = submit_pipeline(pipeline("train-big", job("one", "true")), cluster(place), environ)
    with pytest.raises(UnknownNameError, match=r"Unknown experiment to run after 'train'"):
        submit_pipeline(pipeline("mine", job("two", "true", run_after=("train",))), cluster(place), environ)
    with pytest.raises(UnknownNameError):
        submit_pipeline(pipeline("mine", job("two", "true", run_after=(done.id[:-1],))), cluster(place), environ)
    wait(done, environ)


@pytest.mark.nightly
def test_a_failed_attempt_hides_no_experiment(place: Path) -> None:
    """Nor is it one that could be waited for."""
    write(place, {"mine.py": EXECUTOR})
    environ, failing = environment(place), cluster(place, executor=f"{place}/mine.py::failing")
    running = submit_pipeline(pipeline("mine", job("one", "exec sleep 600")), cluster(place), environ)
    for name in ("mine", "other"):
        with pytest.raises(RuntimeError, match="no third one"):
            submit_pipeline(pipeline(name, job("third", "true")), failing, environ)
    records = ExperimentRecords(environ)
    assert records.find("mine") == running
    assert records.find("other").handles == ()
    failed = next(one for one in records.latest() if one.name == "mine")
    assert (failed.handles, records.find(failed.id)) == ((), failed)
    plan = pipeline("after", job("two", "true", run_after=("other",)))
    with pytest.raises(UnknownNameError, match=r"'other'\. None of its jobs was submitted\."):
        submit_pipeline(plan, cluster(place), environ)
    after = submit_pipeline(pipeline("after", job("two", "true", run_after=("mine",))), cluster(place), environ)
    assert after.jobs[0].after == running.handles
    executor_of(running, environ).cancel(running.handles)
    assert wait(after, environ) == {"two": "completed"}
