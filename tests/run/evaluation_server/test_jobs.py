# SPDX-License-Identifier: Apache-2.0
"""Jobs with work that is made for the test: what is a repetition, what is kept, what a new server finds."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from newskills.base.errors import DataError, NewskillsError, UnknownNameError
from newskills.base.records import Row
from newskills.run.engine.supervision import Supervision
from newskills.run.evaluation_server.job import JOB_FILE, EvaluationJob, State, load_job
from newskills.run.evaluation_server.jobs import AT_ONCE, LOCK_FILE, EvaluationJobs, JobLimits, last_sign
from newskills.run.evaluation_server.wire import BenchmarkOrder, EvaluationRequest, read_request

T = TypeVar("T")


class Piece:
    """Done when `release` is set; a stop ends it. Names: `bad` fails, `odd` is a defect."""

    def __init__(self, name: str, folder: Path, planner: Toy) -> None:
        self.command = f"toy {name}"
        self.name, self.folder, self.planner = name, folder, planner

    def run(self, supervision: Supervision) -> None:
        self.planner.ran.append(self.name)
        while not self.planner.release.wait(0.01):
            if supervision.stopping:
                raise NewskillsError("Stopped.")
        if self.name == "bad":
            raise NewskillsError("It is bad.\ud800")
        if self.name == "odd":
            raise ZeroDivisionError("by 0")
        place = self.folder / "eval-results" / self.name / "metrics.json"
        place.parent.mkdir(parents=True)
        place.write_text(json.dumps({self.name: {"pass@1": {"symbolic_correct": 50.0}}}))


class Toy:
    settings = ""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.release = threading.Event()

    def plan(self, request: EvaluationRequest, order: BenchmarkOrder, folder: Path) -> Piece:
        if order.name == "unknown":
            raise UnknownNameError("benchmark", order.name, ["good"])
        if order.name.startswith("raw"):
            raise DataError(f"{order.name} is not prepared.", hint=f"Run: ns prepare_data {order.name}")
        return Piece(order.name, folder, self)


def asked(*names: str, rollout: int = 1) -> EvaluationRequest:
    benchmarks = [{"name": name} for name in names]
    body = {"rollout_id": rollout, "router_url": "http://u:p@h:1", "benchmarks": benchmarks}
    return read_request(json.dumps(body).encode())


def play(
    root: Path, scene: Callable[[EvaluationJobs, Toy], Awaitable[T]], *, attach: float = 300, done: bool = True
) -> T:
    """A server's life around `scene`; `done`: work ends at once."""

    async def life() -> T:
        toy = Toy()
        if done:
            toy.release.set()
        jobs = EvaluationJobs(toy, root, JobLimits(attach_seconds=attach), say=lambda text: None)
        jobs.restore(last_sign(root))
        try:
            return await scene(jobs, toy)
        finally:
            await jobs.close()

    return asyncio.run(life())


async def finished(jobs: EvaluationJobs, request: EvaluationRequest) -> tuple[int, dict[str, Any]]:
    job = await jobs.obtain(request)
    await jobs.await_end(job)
    jobs.note_client(job, delivered=True)
    return job.answer()


def test_what_passed_what_failed_and_what_is_a_defect(tmp_path: Path) -> None:
    async def scene(jobs: EvaluationJobs, toy: Toy) -> tuple[int, dict[str, Any]]:
        return await finished(jobs, asked("good", "bad", "odd"))

    status, answer = play(tmp_path, scene)
    assert status == 200
    assert answer["raw_metrics"] == {"good": {"pass@1": {"symbolic_correct": 50.0}}}
    assert answer["errors"] == {"bad": "It is bad.?", "odd": "ZeroDivisionError: by 0"}
    assert "It is bad." in Path(answer["runs"][1]["log_path"]).read_text()


def test_where_all_fail_the_logs_are_in_the_answer(tmp_path: Path) -> None:
    async def scene(jobs: EvaluationJobs, toy: Toy) -> tuple[int, dict[str, Any]]:
        return await finished(jobs, asked("bad"))

    status, answer = play(tmp_path, scene)
    assert (status, answer["raw_metrics"]) == (500, {})
    assert answer["error"].splitlines()[-2:] == ["$ toy bad", "It is bad.?"]


def test_what_is_refused_leaves_no_folder(tmp_path: Path) -> None:
    async def scene(jobs: EvaluationJobs, toy: Toy) -> list[str]:
        with pytest.raises(UnknownNameError):
            await jobs.obtain(asked("good", "unknown"))
        return toy.ran

    assert play(tmp_path, scene) == []
    assert list(tmp_path.iterdir()) == []


def test_data_that_are_missing_are_the_failure_of_their_benchmark(tmp_path: Path) -> None:
    async def scene(jobs: EvaluationJobs, toy: Toy) -> tuple[int, dict[str, Any]]:
        return await finished(jobs, asked("raw1", "good", "raw2"))

    status, answer = play(tmp_path, scene)
    assert (status, set(answer["raw_metrics"])) == (200, {"good"})
    assert set(answer["errors"]) == {"raw1", "raw2"}
    assert "ns prepare_data raw1" in answer["errors"]["raw1"]
    assert answer["command"].splitlines()[0] == "ns prepare_data raw1"


def test_where_all_data_are_missing_nothing_begins(tmp_path: Path) -> None:
    async def scene(jobs: EvaluationJobs, toy: Toy) -> list[str]:
        with pytest.raises(DataError, match="raw1 is not prepared"):
            await jobs.obtain(asked("raw1", "raw2"))
        return toy.ran

    assert play(tmp_path, scene) == []
    assert list(tmp_path.iterdir()) == []


def test_folders_of_one_second_are_apart(tmp_path: Path) -> None:
    async def scene(jobs: EvaluationJobs, toy: Toy) -> list[EvaluationJob]:
        return [await jobs.obtain(asked(name)) for name in ("a", "b", "c", "d")]

    names = sorted(Path(job.output_dir).name for job in play(tmp_path, scene))
    assert len(set(names)) == 4
    assert all(name.split("-", 1)[1].startswith("rollout-1") for name in names)


def test_no_password_is_written_down(tmp_path: Path) -> None:
    async def scene(jobs: EvaluationJobs, toy: Toy) -> EvaluationJob:
        return await jobs.obtain(asked("good"))

    job = play(tmp_path, scene)
    assert "u:p" not in Path(job.output_dir, JOB_FILE).read_text()


def test_a_repetition_is_the_same_job_until_it_is_late(tmp_path: Path) -> None:
    async def scene(
        jobs: EvaluationJobs, toy: Toy
    ) -> tuple[EvaluationJob, EvaluationJob, EvaluationJob, EvaluationJob, list[str]]:
        request = asked("good")
        first = await jobs.obtain(request)
        await jobs.await_end(first)
        again = await jobs.obtain(request)
        jobs.note_client(first, delivered=True)
        soon = await jobs.obtain(request)
        first.contact -= 61  # delivered: a minute is late
        late = await jobs.obtain(request)
        await jobs.await_end(late)
        return first, again, soon, late, toy.ran

    first, again, soon, late, ran = play(tmp_path, scene)
    assert first is again is soon
    assert late.job_id != first.job_id
    assert ran == ["good", "good"]


def test_a_running_job_whose_client_is_long_gone_is_stopped_for_the_new_one(tmp_path: Path) -> None:
    async def scene(jobs: EvaluationJobs, toy: Toy) -> tuple[EvaluationJob, EvaluationJob]:
        request = asked("good")
        old = await jobs.obtain(request)
        while old.state != "running":
            await asyncio.sleep(0.01)
        assert await jobs.obtain(request) is old
        old.contact -= 301
        new = await jobs.obtain(request)
        while old.state == "running":
            await asyncio.sleep(0.01)
        toy.release.set()  # type: ignore[unreachable]  # the job's state changes while this sleeps
        await jobs.await_end(new)
        return old, new

    old, new = play(tmp_path, scene, done=False)
    assert (old.state, new.state) == ("interrupted", "completed")
    assert old.output_dir != new.output_dir


def test_a_job_with_a_client_is_never_late(tmp_path: Path) -> None:
    async def scene(jobs: EvaluationJobs, toy: Toy) -> None:
        request = asked("good")
        job = await jobs.obtain(request)
        waiting = asyncio.create_task(jobs.await_end(job))
        await asyncio.sleep(0.05)
        job.contact -= 10_000
        assert await jobs.obtain(request) is job
        toy.release.set()
        await waiting

    play(tmp_path, scene, done=False)


def test_a_failed_job_does_the_rest_when_it_is_asked_for_again(tmp_path: Path) -> None:
    async def scene(jobs: EvaluationJobs, toy: Toy) -> tuple[bool, list[str]]:
        first = await finished(jobs, asked("bad"))
        second = await finished(jobs, asked("bad"))
        return first[1]["job_id"] == second[1]["job_id"], toy.ran

    assert play(tmp_path, scene) == (True, ["bad", "bad"])


def test_a_job_in_the_queue_is_cancelled_at_once(tmp_path: Path) -> None:
    async def scene(jobs: EvaluationJobs, toy: Toy) -> tuple[set[State], int, EvaluationJob | None]:
        names = [f"b{number}" for number in range(AT_ONCE + 4)]
        job = await jobs.obtain(asked(*names))
        while len(toy.ran) < AT_ONCE or job.state != "running":
            await asyncio.sleep(0.01)
        await asyncio.wait_for(jobs.cancel(job), 20)
        states = {part.state for part in job.parts}
        await jobs.cancel(job)
        return states, len(toy.ran), jobs.get(job.job_id)

    assert play(tmp_path, scene, done=False) == ({"cancelled"}, AT_ONCE, None)


def test_the_end_of_a_server_interrupts_and_the_next_one_goes_on(tmp_path: Path) -> None:
    async def scene(jobs: EvaluationJobs, toy: Toy) -> EvaluationJob:
        toy.release.set()
        await finished(jobs, asked("good", rollout=2))
        toy.release.clear()
        job = await jobs.obtain(asked("slow"))
        while job.state != "running":
            await asyncio.sleep(0.01)
        return job

    old = play(tmp_path, scene, done=False)
    assert old.state == "interrupted"
    assert old.answer()[0] == 503

    async def later(jobs: EvaluationJobs, toy: Toy) -> tuple[dict[int, State], tuple[int, Row], list[str]]:
        known = {job.request.rollout_id: job.state for job in jobs.list_jobs()}
        answer = await finished(jobs, asked("slow"))
        return known, answer, toy.ran

    known, (status, answer), ran = play(tmp_path, later)
    assert known == {1: "interrupted", 2: "completed"}
    assert (status, answer["job_id"], ran) == (200, old.job_id, ["slow"])


@pytest.mark.parametrize(("ago", "same"), [(10, True), (400, False)])
def test_a_server_that_died_long_ago_left_nothing_to_go_on_with(tmp_path: Path, ago: int, same: bool) -> None:
    """A job that a client waited for is as old as the last sign of life."""

    async def scene(jobs: EvaluationJobs, toy: Toy) -> EvaluationJob:
        job = await jobs.obtain(asked("good"))
        await jobs.await_end(job)
        return job

    job = play(tmp_path, scene)
    job.waiting, job.parts[0].state, job.contact = True, "running", 0.0
    job.save()
    alive = tmp_path / LOCK_FILE
    alive.touch()
    os.utime(alive, (time.time() - ago,) * 2)
    again = play(tmp_path, scene)
    assert (again.job_id == job.job_id) == same


def test_a_spoiled_file_is_told_of_and_left(tmp_path: Path) -> None:
    (tmp_path / "1-rollout-1").mkdir()
    (tmp_path / "1-rollout-1" / JOB_FILE).write_text("{")

    async def scene(jobs: EvaluationJobs, toy: Toy) -> list[EvaluationJob]:
        return jobs.list_jobs()

    assert play(tmp_path, scene) == []


def test_a_job_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    async def scene(jobs: EvaluationJobs, toy: Toy) -> EvaluationJob:
        job = await jobs.obtain(asked("good", "bad"))
        await jobs.await_end(job)
        return job

    job = play(tmp_path, scene)
    assert load_job(Path(job.output_dir, JOB_FILE)) == msgspec.convert(msgspec.to_builtins(job), EvaluationJob)
