# SPDX-License-Identifier: Apache-2.0
"""`python -m newskills.launch.ray.supervisor FOLDER`: runs the jobs of one experiment on the Ray cluster it stands in.

It is the one Ray job of an experiment, and takes no resources. It waits for the jobs that others depend on, asks Ray
for a node for each job that may start (for a placement group where it wants several), tells it when its time is up, and
begins it again elsewhere where a node was lost. What it knows of a job it writes into `job.state` of the job's folder:
pending (why), running, and a last word.
FOLDER/.ray/jobs.json says what to do. Needs Ray and the standard library: it runs in images of others.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ray
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from newskills.launch.ray.files import (
    CANCELLED,
    FIRST_NODE,
    LIFE,
    PLAN,
    PRIVATE_FOLDER,
    SECRETS,
    STATE,
    STATE_OF_WORD,
    has_ended,
    node_folder,
)
from newskills.launch.ray.runner import JobRunner

POLL_SECONDS = 0.5
LOOK_AROUND = 5.0
"""Seconds between two looks at what changes slowly: nodes, jobs of other experiments."""
MAX_UNPLACED_JOBS = 200
"""Jobs that wait for a node at the same time; the others wait here."""
FENCE_SECONDS = 30.0
"""Seconds until what ran on a lost node has surely seen that it may not go on, where it does not say so itself."""


@dataclass(eq=False)
class RayJob:
    """One job.

    resources         as `ray.nodes()` names them
    more              the same, of each further node
    after             folders of other experiments' jobs
    seconds, warning  the time limit, and how long before it the job is told
    """

    name: str
    folder: str
    logs: str
    resources: dict[str, float]
    needs: list[str]
    after: list[str]
    seconds: float
    warning: float
    copies: int
    more: list[dict[str, float]] = field(default_factory=list)
    state: str = "pending"
    life: int = 0
    lost: int = 0
    runner: Any = None
    bundles: Any = None
    followers: list[Any] = field(default_factory=list)
    follows: list[Any] = field(default_factory=list)
    place: Any = None
    run: Any = None
    began: float = 0.0
    warned: bool = False
    overdue: bool = False
    cancels: int = 0
    not_before: float = 0.0
    looked: float = field(default=-LOOK_AROUND)

    @property
    def ended(self) -> bool:
        return has_ended(self.state)

    @property
    def nodes(self) -> list[dict[str, float]]:
        return [self.resources, *self.more]

    def begin_life(self, number: int) -> None:
        """Write the job's new life on all of its nodes: what has a smaller number ends itself."""
        for rank in range(len(self.more) + 1):
            _replace_file(Path(node_folder(self.folder, rank), LIFE), str(number))

    def become(self, state: str) -> None:
        """Write the state down, where it is new."""
        if state != self.state:
            self.state = state
            _replace_file(Path(self.folder, STATE), state)

    def mark(self) -> list[str]:
        """Return the words of job.exit, if it is there: code, state, why."""
        try:
            return Path(self.folder, "job.exit").read_text("utf-8", "replace").strip().split(" ", 2)
        except OSError:
            return []

    def close(self, code: int, word: str, why: str) -> None:
        """Record the end of a job that cannot record it itself."""
        with contextlib.suppress(OSError):
            _replace_file(Path(self.folder, "job.exit"), f"{code} {word} {why}")
        self.become(STATE_OF_WORD[word])


class RaySupervisor:
    """All jobs of an experiment."""

    def __init__(self, folder: Path) -> None:
        plan = json.loads((folder / PRIVATE_FOLDER / PLAN).read_text("utf-8"))
        self.kind: str = plan["dependency_type"]
        self.lost_nodes: int = plan["lost_nodes"]
        self.jobs = [RayJob(**job) for job in plan["jobs"]]
        self.names = {job.name: job for job in self.jobs}
        self.secrets = _take_secrets(folder / PRIVATE_FOLDER / SECRETS)
        self._cancelled = folder / PRIVATE_FOLDER / CANCELLED
        self._nodes: list[Mapping[str, float]] = []
        self._looked = -LOOK_AROUND
        self.stopping = 0

    def stop(self, number: int, frame: Any) -> None:
        self.stopping += 1

    def run(self) -> int:
        """Run the jobs until all have ended; return 0 where all have completed, else 1."""
        while any(not job.ended for job in self.jobs):
            self._cancel()
            if time.monotonic() - self._looked > LOOK_AROUND:
                self._looked = time.monotonic()
                self._nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
            for job in self.jobs:
                if job.runner is None and not job.ended:
                    self._advance(job)
            self._handle_results()
        if all(job.state == "completed" for job in self.jobs):
            return 0
        return 1

    def _handle_results(self) -> None:
        """Wait a moment for results from Ray and handle them."""
        refs = {ref: job for job in self.jobs for ref in (job.run, job.place, *job.follows) if ref is not None}
        if not refs:
            time.sleep(POLL_SECONDS)
            return
        ready, _ = ray.wait(list(refs), num_returns=len(refs), timeout=POLL_SECONDS)
        for ref in ready:
            job = refs[ref]
            if ref is job.place:
                self._handle_placement(job)
            elif ref is job.run:
                self._handle_end(job)
            elif ref in job.follows:
                self._handle_follower(job, ref)
        for job in self.jobs:
            if job.runner is not None:
                self._watch(job)

    def _advance(self, job: RayJob) -> None:
        """Ask for a node, if the job may start."""
        if time.monotonic() < job.not_before and not _ended_itself(job):
            return
        if why := self._find_obstacle(job):
            job.close(143, "cancelled", why)
        elif not self._must_wait(job) and sum(other.place is not None for other in self.jobs) < MAX_UNPLACED_JOBS:
            job.life += 1
            job.begin_life(job.life)
            if job.more:
                bundles = [{name: amount for name, amount in node.items() if amount} for node in job.nodes]
                job.bundles = placement_group(bundles, strategy="STRICT_SPREAD")
            job.runner, *job.followers = [_start_runner(job, rank) for rank in range(len(job.nodes))]
            job.place = job.runner.node.remote()
            job.become("pending (resources)")

    def _must_wait(self, job: RayJob) -> bool:
        for need in job.needs:
            other = self.names[need]
            started = other.state == "running" and self.kind == "after"
            if not other.ended and not started:
                job.become(f"pending (after {need})")
                return True
        if job.after and time.monotonic() - job.looked > LOOK_AROUND:
            job.looked = time.monotonic()
            job.after = [folder for folder in job.after if not self._has_passed(folder)]
        if job.after:
            job.become("pending (after another experiment)")
        return bool(job.after)

    def _has_passed(self, folder: str) -> bool:
        """Return whether a job of another experiment has come so far that this one need not wait for it any
        more."""
        state = _read_state(folder)
        word = state.partition(" (")[0]
        if self.kind == "after" and word == "running":
            return True
        return has_ended(word) and not self._is_forbidden_by(word)

    def _find_obstacle(self, job: RayJob) -> str:
        """Return why this job must never start; empty where it may."""
        for need in job.needs:
            if self.names[need].ended and self._is_forbidden_by(self.names[need].state):
                return f"its dependency {need} is {self.names[need].state}"
        if time.monotonic() - job.looked <= LOOK_AROUND:
            return ""
        for folder in job.after:
            word = _read_state(folder).partition(" (")[0]
            if has_ended(word) and self._is_forbidden_by(word):
                return f"its dependency {folder} is {word}"
        return ""

    def _is_forbidden_by(self, state: str) -> bool:
        if self.kind in ("afterok", "aftercorr"):
            return state != "completed"
        return self.kind == "afternotok" and state == "completed"

    def _handle_placement(self, job: RayJob) -> None:
        place, job.place = job.place, None
        try:
            node, address = ray.get(place)
        except ray.exceptions.RayError as error:
            self._handle_failure(job, error)
            return
        job.began, job.warned, job.overdue = time.monotonic(), False, False
        variables, line = dict(self.secrets), f"{job.name} runs on {node}"
        if job.more:
            variables[FIRST_NODE] = address
            line += f" and {len(job.more)} more"
        job.run = job.runner.run.remote(variables)
        job.follows = [follower.run.remote(variables) for follower in job.followers]
        if job.life > 1:
            line += f", life {job.life}"
        _print_line(line)
        job.become("running")

    def _handle_end(self, job: RayJob) -> None:
        run, job.run = job.run, None
        try:
            ray.get(run)
        except ray.exceptions.RayError as error:
            self._handle_failure(job, error)
            return
        code, word, why = (*job.mark(), "", "", "")[:3]
        if word not in ("completed", "cancelled") and (lost := _lost_follower(job)) is not None:
            self._handle_failure(job, lost)
            return
        self._release(job)
        if word not in STATE_OF_WORD and job.overdue:
            word = "time"
        if word not in STATE_OF_WORD:
            job.close(1, "failed", "job.sh left no mark of its end")
        elif word == "time" and job.copies and not job.cancels:
            job.copies -= 1
            job.become("pending (goes on after the time limit)")
        elif job.overdue and not code:
            job.close(75, "time", "it did not stop in time")
        else:
            job.become(STATE_OF_WORD[word])
            line = f"{job.name} {word}, exit code {code}"
            if why:
                line += f": {why}"
            _print_line(line)

    def _handle_follower(self, job: RayJob, ref: Any) -> None:
        """Handle the end or the loss of one of its further nodes."""
        job.follows.remove(ref)
        try:
            ray.get(ref)
        except ray.exceptions.RayError as error:
            self._handle_failure(job, error)

    def _handle_failure(self, job: RayJob, error: Exception) -> None:
        """Handle a lost node, or a place that Ray could not make."""
        self._release(job)
        if job.cancels:
            job.close(143, "cancelled", "its node was lost while it was told to stop")
        elif isinstance(error, ray.exceptions.RayActorError) and job.lost < self.lost_nodes:
            job.lost += 1
            job.begin_life(job.life + 1)
            job.not_before = time.monotonic() + FENCE_SECONDS
            job.become("requeued (its node was lost)")
            _print_line(f"{job.name}: its node was lost ({type(error).__name__}); it begins again")
        else:
            lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
            job.close(1, "failed", lines[-1].strip()[:300])
            _print_line(f"{job.name} failed: {error}")

    def _release(self, job: RayJob) -> None:
        for runner in (job.runner, *job.followers):
            if runner is not None:
                ray.kill(runner)
        if job.bundles is not None:
            remove_placement_group(job.bundles)
        job.runner = job.place = job.run = job.bundles = None
        job.followers, job.follows = [], []

    def _watch(self, job: RayJob) -> None:
        """Enforce time limits, and note why a job has no node."""
        if job.place is not None:
            if time.monotonic() - job.looked > LOOK_AROUND:
                job.looked = time.monotonic()
                missing = _missing_resources(job.nodes, self._nodes)
                job.become(f"pending ({missing or 'resources'})")
            return
        ran = time.monotonic() - job.began
        if ran > job.seconds - job.warning and not job.warned:
            job.warned = True
            job.runner.tell.remote("out of time")
        if ran > job.seconds and not job.overdue:
            job.overdue = True
            job.runner.tell.remote("end")

    def _cancel(self) -> None:
        """Cancel the jobs that `ns cancel` has written down, or all where Ray was told to stop (`ray job stop`)."""
        try:
            names = self._cancelled.read_text("utf-8").split()
        except OSError:
            names = []
        for job in self.jobs:
            times = names.count(job.name) + self.stopping
            if job.ended or times <= job.cancels:
                continue
            job.cancels = times
            if job.run is not None:
                job.runner.tell.remote("stop")
            else:
                self._release(job)
                job.close(143, "cancelled", "before it started")


def _start_runner(job: RayJob, rank: int) -> Any:
    """Start an actor that takes what the job needs of that node."""
    wanted = job.nodes[rank]
    more = {name: amount for name, amount in wanted.items() if name not in ("CPU", "GPU", "memory")}
    place = {}
    if job.bundles is not None:
        place["scheduling_strategy"] = PlacementGroupSchedulingStrategy(
            job.bundles, placement_group_bundle_index=rank
        )
    options = ray.remote(JobRunner).options(
        num_cpus=wanted.get("CPU", 0),
        num_gpus=wanted.get("GPU", 0),
        memory=wanted.get("memory") or None,
        resources=more,
        max_restarts=0,
        max_concurrency=4,
        **place,
    )
    return options.remote(node_folder(job.folder, rank), job.logs, job.life)


def _lost_follower(job: RayJob) -> Exception | None:
    """Return the RayActorError of a further node that does not answer any more, which the first may have noticed
    before Ray."""
    try:
        ray.get([follower.node.remote() for follower in job.followers], timeout=FENCE_SECONDS)
    except ray.exceptions.GetTimeoutError as error:
        lost: Exception = ray.exceptions.ActorUnavailableError(str(error), None)
    except ray.exceptions.RayError as error:
        lost = error
    else:
        return None
    return lost


def _missing_resources(wanted: Sequence[Mapping[str, float]], nodes: Sequence[Mapping[str, float]]) -> str:
    """Describe the resources that too few nodes have; empty where enough do."""
    for at, resources in enumerate(wanted):
        fitting = sum(all(node.get(name, 0) >= amount for name, amount in resources.items()) for node in nodes)
        needed = len(wanted) if at else 1
        if fitting < needed:
            shown = ", ".join(f"{name}: {amount:g}" for name, amount in resources.items() if amount)
            if not fitting:
                return f"no node has {shown}"
            return f"{fitting} of {needed} nodes have {shown}"
    return ""


def _ended_itself(job: RayJob) -> bool:
    """Return whether what ran on a lost node has said that nothing of it is left."""
    try:
        return int(Path(job.folder, "job.ended").read_text("ascii")) >= job.life
    except (OSError, ValueError):
        return False


def _read_state(folder: str) -> str:
    try:
        return Path(folder, STATE).read_text("utf-8", "replace").strip()
    except OSError:
        return "pending"


def _take_secrets(path: Path) -> dict[str, str]:
    """Read the secrets and delete the file, so that nobody finds them in it afterwards."""
    try:
        values: dict[str, str] = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    path.unlink(missing_ok=True)
    return values


def _replace_file(path: Path, text: str) -> None:
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.write_text(f"{text}\n", "utf-8")
    new.rename(path)


def _print_line(text: str) -> None:
    sys.stdout.write(f"{time.strftime('%F %T')} {text}\n")
    sys.stdout.flush()


def main(argv: Sequence[str]) -> int:
    supervisor = RaySupervisor(Path(argv[0]))
    ray.init(log_to_driver=False, logging_level="ERROR")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, supervisor.stop)
    return supervisor.run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
