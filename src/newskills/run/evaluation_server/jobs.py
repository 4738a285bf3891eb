# SPDX-License-Identifier: Apache-2.0
"""The jobs of a server: begun once, attached to by repetitions of their request, kept on disk, run, stopped.

Is a request a repetition or a new evaluation? Nothing in it tells, and the same request of a restarted trainer means
other weights. It is a repetition while a client waits for the job, and for `attach_seconds` after the last one left
without its answer (`DELIVERED_SECONDS` where it had it; a client of slime is back within 30 s). Later it is a new
evaluation in a folder of its own, and what still runs of the old one is stopped.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import time
import uuid
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from newskills.base.errors import DataError, NewskillsError, StorageError, guard, storage_error
from newskills.base.records import Failure
from newskills.run.engine.supervision import SharedLimit, Supervision
from newskills.run.engine.threads import ready_for_threads
from newskills.run.evaluation_server.job import (
    JOB_FILE,
    LOG_FILE,
    OPEN_STATES,
    BenchmarkEvaluation,
    EvaluationJob,
    load_job,
    read_metrics,
)
from newskills.run.evaluation_server.wire import BenchmarkOrder, EvaluationRequest
from newskills.run.planning.spec import mask_addresses

DELIVERED_SECONDS = 60.0
MAX_KEPT_JOBS = 1000
"""Jobs that are known; the files of older ones stay."""
AT_ONCE = 16
"""Benchmarks that run at once: each has a thread, and workers that grade. Others wait."""
NEVER_BEGUN = Failure(kind="Stopped", cause="harness", message="It was stopped before it started.")
CONTACT_EVERY = 30.0
"""Seconds after which a job's last contact is written down again."""
LOCK_FILE = ".serve_evals.lock"
"""File of the output root that is locked while a server lives, and touched now and then."""

_COUNT = re.compile(r"[0-9]+(?=\]?$)")


def last_sign(root: Path) -> float:
    """Return when a server with this root was last alive, in seconds since 1970; 0 if there was none."""
    try:
        return (root / LOCK_FILE).stat().st_mtime
    except OSError:
        return 0.0


class BenchmarkWork(Protocol):
    """One benchmark, ready to run. `command` is what to type for the same."""

    @property
    def command(self) -> str: ...

    def run(self, supervision: Supervision) -> None:
        """Run the benchmark; block until its metrics.json is there. Raises NewskillsError."""
        ...


class Planner(Protocol):
    """Makes work of orders; `settings` tell apart servers whose results are not interchangeable."""

    @property
    def settings(self) -> str: ...

    def plan(self, request: EvaluationRequest, order: BenchmarkOrder, folder: Path) -> BenchmarkWork:
        """Plan a benchmark's evaluation without writing anything. Raises NewskillsError for what cannot be
        done."""
        ...


class UnpreparedBenchmark(Struct, frozen=True, kw_only=True):
    """A benchmark whose data are not there, beside others that can run: its own failure, as any later one."""

    command: str
    error: DataError

    def run(self, supervision: Supervision) -> None:
        raise self.error


class JobLimits(Struct, frozen=True, kw_only=True):
    """requests: in flight over all jobs; attach_seconds: see the top of this file."""

    requests: int = 512
    attach_seconds: float = 300.0


class EvaluationJobs:
    """All methods belong to one event loop; the work itself runs on threads."""

    def __init__(self, planner: Planner, root: Path, limits: JobLimits, *, say: Callable[[str], None]) -> None:
        self.root, self.limits = root, limits
        self.closing = False
        self._planner, self._say = planner, say
        self._limit = SharedLimit(limits.requests)
        self._known: dict[str, EvaluationJob] = {}
        self._latest: dict[str, str] = {}
        self._clients: Counter[str] = Counter()
        self._beginning: dict[str, asyncio.Task[EvaluationJob]] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._supervisions: dict[tuple[str, str], Supervision] = {}
        self._turns: dict[tuple[str, str], Future[dict[str, Any] | Failure]] = {}
        self._planning = ThreadPoolExecutor(1, "newskills-planning")
        self._threads = ThreadPoolExecutor(AT_ONCE, "newskills-evaluation")

    def restore(self, ended: float) -> None:
        """Restore jobs of earlier servers, the last of which `ended` then (seconds since 1970).

        What they had not finished is interrupted; clients that waited left when that server did.
        """
        paths = sorted(self.root.glob(f"*/{JOB_FILE}"), key=lambda path: path.stat().st_mtime)
        for path in paths[-MAX_KEPT_JOBS:]:
            job = guard(partial(load_job, path))
            if isinstance(job, Failure):
                self._say(job.message)
                continue
            if job.waiting:
                job.contact, job.waiting = max(job.contact, ended), False
            for part in job.parts:
                if part.state in OPEN_STATES:
                    part.state = "interrupted"
            self._keep(job)

    def list_jobs(self) -> list[EvaluationJob]:
        """Return all jobs, the latest first."""
        return sorted(self._known.values(), key=lambda job: job.created, reverse=True)

    def get(self, job_id: str) -> EvaluationJob | None:
        return self._known.get(job_id)

    def progress(self, job: EvaluationJob) -> dict[str, dict[str, int]]:
        """Return benchmark → rows and how many of them are done, for the benchmarks that run."""
        progress = {}
        for part in job.parts:
            supervision = self._supervisions.get((job.job_id, part.name))
            if supervision is not None and supervision.snapshot is not None:
                progress[part.name] = {"rows": supervision.snapshot.rows, "done": supervision.snapshot.done}
        return progress

    async def obtain(self, request: EvaluationRequest) -> EvaluationJob:
        """Return the job of this request: the one that it repeats, or a new one, begun.

        Raises NewskillsError where a part of it cannot be done; then nothing of it is. Data that are missing for some
        of several benchmarks are the failure of these alone.
        """
        key = self._key(request)
        job = self._find_repeated(key)
        if job is not None and job.state not in ("failed", "interrupted"):
            self.note_client(job)
            return job
        if key not in self._beginning:
            task = asyncio.create_task(self._begin(request, key, job))
            self._beginning[key] = task
            task.add_done_callback(partial(self._begin_job, key))
        return await asyncio.shield(self._beginning[key])

    async def await_end(self, job: EvaluationJob) -> None:
        """Return when nothing of the job runs any more. Leaving early (cancellation) is a client's leaving."""
        self._clients[job.job_id] += 1
        self.note_client(job)
        try:
            if (task := self._running.get(job.job_id)) is not None:
                await asyncio.shield(task)
        finally:
            self._clients[job.job_id] -= 1
            self.note_client(job)

    def note_client(self, job: EvaluationJob, *, delivered: bool = False) -> None:
        """Note that a client has come, asked or left; `delivered`: it has its answer."""
        now, waiting = time.time(), self._clients[job.job_id] > 0
        news = waiting != job.waiting or delivered > job.delivered or now - job.contact > CONTACT_EVERY
        job.contact, job.waiting, job.delivered = now, waiting, job.delivered or delivered
        if news:
            self._save(job)

    async def cancel(self, job: EvaluationJob) -> None:
        """Stop what runs of the job and return when it has ended; forget an ended job (its files stay)."""
        if (task := self._running.get(job.job_id)) is None:
            self._forget(job)
            return
        job.cancelled = True
        self._stop(job, at_once=True)
        await asyncio.shield(task)

    async def close(self) -> None:
        """Stop every run, wait for its end, and begin no other."""
        self.closing = True
        for job in self._known.values():
            self._stop(job, at_once=False)
        while self._running or self._beginning:
            await asyncio.gather(*self._running.values(), *self._beginning.values(), return_exceptions=True)
            await asyncio.sleep(0)
        self._threads.shutdown()
        self._planning.shutdown()

    def hurry(self) -> None:
        """Give up the requests in flight."""
        for job in self._known.values():
            self._stop(job, at_once=True)

    def alive(self) -> None:
        """Touch the sign of life that the next server reads."""
        guard(lambda: os.utime(self.root / LOCK_FILE))

    # Beginning

    def _key(self, request: EvaluationRequest) -> str:
        return hashlib.sha256(msgspec.json.encode([request, self._planner.settings])).hexdigest()

    def _find_repeated(self, key: str) -> EvaluationJob | None:
        """Return the job that a request repeats."""
        job = self._known.get(self._latest.get(key, ""))
        if job is None or self._clients[job.job_id]:
            return job
        patience = self.limits.attach_seconds
        if job.delivered and job.state not in OPEN_STATES:
            patience = min(patience, DELIVERED_SECONDS)
        if time.time() - job.contact <= patience:
            return job
        return None

    async def _begin(self, request: EvaluationRequest, key: str, before: EvaluationJob | None) -> EvaluationJob:
        """Begin a job: `before` is the job to go on with, None a new one. An old job of the same key is
        stopped."""
        if before is None and (old := self._known.get(self._latest.get(key, ""))) is not None:
            self._stop(old, at_once=True)
        folder = Path(before.output_dir) if before else self._new_folder(request)
        works: dict[str, BenchmarkWork] = {}
        try:
            works = await self._plan(request, folder)
        finally:
            if not works and before is None:
                guard(folder.rmdir)
        now = time.time()
        job = before or EvaluationJob(
            job_id=uuid.uuid4().hex,
            key=key,
            request=msgspec.structs.replace(request, router_url=mask_addresses(request.router_url)),
            output_dir=str(folder),
            parts=[
                BenchmarkEvaluation(name=name, command=work.command, output_dir=str(folder / name))
                for name, work in works.items()
            ],
            created=now,
            contact=now,
        )
        job.delivered, job.ended = False, None
        for part in job.parts:
            if part.state != "completed":
                part.state, part.error, part.command = "queued", "", works[part.name].command
        job.save()
        self._keep(job)
        if self.closing:
            for part in job.parts:
                if part.state == "queued":
                    part.state = "interrupted"
        else:
            task = asyncio.create_task(self._run(job, works))
            self._running[job.job_id] = task
            task.add_done_callback(lambda _: self._running.pop(job.job_id))
        return job

    def _begin_job(self, key: str, task: asyncio.Task[EvaluationJob]) -> None:
        del self._beginning[key]
        if not task.cancelled():
            task.exception()  # seen, also where every client has left

    async def _plan(self, request: EvaluationRequest, folder: Path) -> dict[str, BenchmarkWork]:
        def plan() -> dict[str, BenchmarkWork]:
            works: dict[str, BenchmarkWork] = {}
            for order in request.benchmarks:
                try:
                    works[order.name] = self._planner.plan(request, order, folder / order.name)
                except DataError as error:
                    works[order.name] = UnpreparedBenchmark(command=f"ns prepare_data {order.name}", error=error)
            missing = [work for work in works.values() if isinstance(work, UnpreparedBenchmark)]
            if works and len(missing) == len(works):
                raise missing[0].error
            ready_for_threads()  # now with the plug-ins that these benchmarks brought
            return works

        return await asyncio.get_running_loop().run_in_executor(self._planning, plan)

    def _new_folder(self, request: EvaluationRequest) -> Path:
        """Create the folder `<unix seconds>-rollout-N`, unique to this job. Raises StorageError."""
        stem, number = f"{int(time.time())}-rollout-{request.rollout_id}", 1
        while True:
            folder_name = stem if number == 1 else f"{stem}-{number}"
            folder = self.root / folder_name
            try:
                folder.mkdir(parents=True)
            except FileExistsError:
                number += 1
            except OSError as error:
                raise storage_error(error, folder) from error
            else:
                return folder

    # Running

    async def _run(self, job: EvaluationJob, works: dict[str, BenchmarkWork]) -> None:
        names = ", ".join(part.name for part in job.parts if part.state == "queued")
        self._say(f"{_job_title(job)}: {names} at {job.request.router_url}, in {job.output_dir}")
        todo = [part for part in job.parts if part.state == "queued"]
        for part in todo:  # now, so that a stop before its turn reaches it
            self._supervisions[job.job_id, part.name] = Supervision(limit=self._limit)
        await asyncio.gather(*(self._run_part(job, part, works[part.name]) for part in todo))
        job.ended = time.time()
        self._save(job)
        self._say(f"{_job_title(job)}: {job.state} after {job.ended - job.created:.1f} s")

    async def _run_part(self, job: EvaluationJob, part: BenchmarkEvaluation, work: BenchmarkWork) -> None:
        supervision = self._supervisions[job.job_id, part.name]

        def begun() -> None:
            part.state, part.started = "running", time.time()

        call = asyncio.get_running_loop().call_soon_threadsafe
        turn = self._threads.submit(guard, lambda: _run_part(work, part, supervision, lambda: call(begun)))
        self._turns[job.job_id, part.name] = turn
        await asyncio.wait([asyncio.wrap_future(turn)])
        result = NEVER_BEGUN if turn.cancelled() else turn.result()
        del self._turns[job.job_id, part.name]
        part.ended = time.time()
        del self._supervisions[job.job_id, part.name]
        if not isinstance(result, Failure):
            part.state, part.metrics = "completed", result
            self._log_metrics(job, part)
        elif supervision.stopping and not job.cancelled:
            part.state = "interrupted"
        else:
            part.state = "cancelled" if supervision.stopping else "failed"
            if supervision.stopping:
                part.error = "It was cancelled."
            else:
                part.error = _replace_surrogates(result.message)
            self._say(f"{_job_title(job)}: {part.name} {part.state}: {part.error} See {part.log_path}")
        self._save(job)

    def _log_metrics(self, job: EvaluationJob, part: BenchmarkEvaluation) -> None:
        """Log one line for each kind of mode: `pass@4`, not `pass@2`."""
        deepest = {_COUNT.sub("", mode): mode for mode in part.metrics}
        for mode in deepest.values():
            if isinstance(metrics := part.metrics[mode], dict):
                numbers = (f"{k}={v:g}" for k, v in metrics.items() if isinstance(v, int | float))
                self._say(f"{_job_title(job)}: {part.name}/{mode} {' '.join(numbers)}")

    def _stop(self, job: EvaluationJob, *, at_once: bool) -> None:
        places = [(job.job_id, part.name) for part in job.parts]
        for place in places:  # before anything that runs is stopped, which would make room for the next
            if (turn := self._turns.get(place)) is not None:
                turn.cancel()  # has an effect only where it has not come yet
        for place in places:
            if (supervision := self._supervisions.get(place)) is not None:
                supervision.stop(at_once=at_once)

    # Keeping

    def _keep(self, job: EvaluationJob) -> None:
        self._known[job.job_id] = job
        self._latest[job.key] = job.job_id
        over = [stored_job for stored_job in self._known.values() if stored_job.job_id not in self._running]
        for old in over[: max(0, len(self._known) - MAX_KEPT_JOBS)]:
            self._forget(old)

    def _forget(self, job: EvaluationJob) -> None:
        del self._known[job.job_id]
        if self._latest.get(job.key) == job.job_id:
            del self._latest[job.key]

    def _save(self, job: EvaluationJob) -> None:
        """Save the job. A full disk takes the memory of a restarted server, not the answer of this one."""
        try:
            job.save()
        except StorageError as error:
            self._say(f"{_job_title(job)}: {error}")


def _run_part(
    work: BenchmarkWork, part: BenchmarkEvaluation, supervision: Supervision, begun: Callable[[], object]
) -> dict[str, Any]:
    """Run the work in a thread of its own with its log; return the metrics. Raises NewskillsError."""
    from rich.console import Console

    folder = Path(part.output_dir)
    begun()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        log = (folder / LOG_FILE).open("a", encoding="utf-8", errors="replace", buffering=1)
    except OSError as error:
        raise storage_error(error, folder) from error
    with log:
        log.write(f"$ {work.command}\n")
        supervision.console = Console(file=log, width=200)
        with supervision.installed():
            failure = guard(lambda: work.run(supervision))
        if isinstance(failure, Failure):
            log.write(f"{failure.message}\n")
            raise NewskillsError(failure.message)
        return read_metrics(folder, part.name)


def _replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which a model's text may have and JSON cannot hold, by `?`."""
    return text.encode("utf-8", "replace").decode()


def _job_title(job: EvaluationJob) -> str:
    return f"rollout {job.request.rollout_id} ({job.job_id[:8]})"
