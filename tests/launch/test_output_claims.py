# SPDX-License-Identifier: Apache-2.0
"""The same jobs submitted twice, while those of the first submission wait or run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.launch.jobs import cluster, environment, job, pipeline

from newskills.base.plan import Pipeline
from newskills.launch.executors.none import Processes
from newskills.launch.experiments import Experiment, ExperimentRecords
from newskills.launch.output_claims import UnfinishedJob, remaining_jobs
from newskills.launch.submit import SubmitOptions, executor_of, submit_pipeline

UNTIL = "until [[ -e {go} ]]; do sleep 0.05; done"


class Desk:
    def __init__(self, folder: Path) -> None:
        self.folder, self.environ, self.said = folder, environment(folder), []  # type: ignore[var-annotated]
        self.cluster = cluster(folder)

    def submit(self, plan: Pipeline, **options: object) -> Experiment:
        self.said = []
        return submit_pipeline(plan, self.cluster, self.environ, SubmitOptions(**options), say=self.said.append)

    def end(self, *done: Experiment) -> dict[str, str]:
        (self.folder / "go").touch()
        found: dict[Any, Any] = {}
        for one in done:
            executor = executor_of(one, self.environ)
            assert isinstance(executor, Processes)
            states = executor.wait(list(one.handles))
            found |= {job.name: states[job.handle] for job in one.jobs}
        return found

    def waiting(self) -> str:
        return UNTIL.format(go=self.folder / "go")


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.chdir(tmp_path)
    return Desk(tmp_path)


def test_the_same_again_submits_nothing(desk: Desk) -> None:
    plan = pipeline(
        "mine",
        job("a", desk.waiting(), makes=("/out/a",)),
        job("sum", "true", depends_on=("a",), makes=("/out/metrics.json",)),
    )
    first = desk.submit(plan)
    again = desk.submit(plan)
    assert again.jobs == ()
    assert desk.said[-1] == (
        f"2 of 2 jobs already wait or run, in {first.id}: nothing is submitted. "
        f"Look: ns status {first.id}  Cancel: ns cancel {first.id}"
    )
    assert [one.id for one in ExperimentRecords(desk.environ).all_of("mine")] == [first.id]
    assert desk.submit(plan, dry_run=True).jobs == ()
    assert set(desk.end(first).values()) == {"completed"}
    third = desk.submit(plan)
    assert len(third.jobs) == 2
    assert desk.said == []
    desk.end(third)


def test_only_what_nobody_does_is_submitted(desk: Desk) -> None:
    """One of two has failed; the other still runs, and the summary of the first submission would come too early."""
    first = desk.submit(
        pipeline("mine", job("a", "exit 3", makes=("/out/a",)), job("b", desk.waiting(), makes=("/out/b",)))
    )
    executor = executor_of(first, desk.environ)
    assert isinstance(executor, Processes)
    assert executor.wait([first.jobs[0].handle]) == {first.jobs[0].handle: "failed"}
    plan = pipeline(
        "mine",
        job("a", "true", makes=("/out/a",)),
        job("b", "exit 1", makes=("/out/b",)),
        job("sum", "true", depends_on=("a", "b"), makes=("/out/metrics.json",)),
    )
    again = desk.submit(plan)
    assert [one.name for one in again.jobs] == ["a", "sum"]
    assert again.jobs[1].after == (first.jobs[1].handle,)
    assert again.jobs[1].depends_on == ("a",)
    assert desk.said[-1].startswith(f"1 of 3 jobs already wait or run, in {first.id}: 2 are submitted.")
    assert desk.end(again) == {"a": "completed", "sum": "completed"}
    assert desk.end(first)["b"] == "completed"


def test_jobs_that_share_only_a_part_wait(desk: Desk) -> None:
    first = desk.submit(pipeline("mine", job("a", desk.waiting(), makes=("/out/a",))))
    both = desk.submit(pipeline("other", job("ab", "true", makes=("/out/a", "/out/b"))))
    assert both.jobs[0].after == first.handles
    assert executor_of(both, desk.environ).state(both.handles) == {both.handles[0]: "pending"}
    elsewhere = desk.submit(pipeline("third", job("c", "true", makes=("/out/c",)), job("d", "true")))
    assert desk.said == []
    assert [one.after for one in elsewhere.jobs] == [(), ()]
    desk.end(first, both, elsewhere)


def test_a_summary_that_would_come_too_early_is_repeated() -> None:
    plan = pipeline(
        "mine",
        job("a", "", makes=("/a",)),
        job("b", "", makes=("/b",)),
        job("sum", "", depends_on=("a", "b"), makes=("/m",)),
    )
    busy = {"/b": UnfinishedJob("x/1", "11"), "/m": UnfinishedJob("x/1", "12")}
    left = remaining_jobs(plan, busy)
    assert [one.name for one in left.pipeline.jobs] == ["a", "sum"]
    assert left.after == {"a": (), "sum": ("12", "11")}
    assert left.pipeline.jobs[1].depends_on == ("a",)


TOGETHER = """
import sys
from pathlib import Path
from tests.launch.jobs import cluster, environment, job, pipeline
from newskills.launch.submit import submit_pipeline
folder = Path(sys.argv[1])
work = job("a", f"until [[ -e {folder}/go ]]; do sleep 0.05; done", makes=("/out/a",))
done = submit_pipeline(pipeline("mine", work), cluster(folder), environment(folder))
print(len(done.jobs))
"""


def test_two_at_once_submit_once(desk: Desk) -> None:
    asking = [
        subprocess.Popen(
            [sys.executable, "-c", TOGETHER, str(desk.folder)],
            stdout=subprocess.PIPE,
            text=True,
            env={**desk.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        )
        for _ in range(3)
    ]
    assert sorted(one.communicate()[0] for one in asking) == ["0\n", "0\n", "1\n"]
    desk.end(*ExperimentRecords(desk.environ).all_of("mine"))
