# SPDX-License-Identifier: Apache-2.0
"""A day of jobs that share one queue, in played time: nodes fail, jobs differ in speed, lost jobs come back.

What decides is the real code: `claim` and `offers` (which chunk a job takes), `first_place` (where each begins),
`staying` and `POLL` (who waits, and how often it looks). Played are the clock, the locks and the nodes. Failures per
node: Kokolis et al., "Revisiting Reliability in Large-Scale Machine Learning Research Clusters" (2024), the worse of
its two clusters.
"""

from __future__ import annotations

import heapq
import random
import time
from array import array
from collections.abc import Generator, Iterator

from msgspec import Struct

from bench.measure import BenchError, Line, Options
from newskills.base.errors import LockedError
from newskills.pipelines.units.jobs import first_place
from newskills.run.engine.execute import claim_work
from newskills.run.engine.work_queue import POLL, SLOWEST_POLL, OpenPlaces, places_to_try, staying_jobs

SIZES = (100, 1_000, 10_000)
NODES, CHUNKS = 8, 8
"""Of each job; chunks are what `--work_queue` cuts for each job where nothing is said."""
DAY = 86_400.0
FAILURES = 6.5 / 1000 / DAY
"""Of a node, per second."""
START_UP, AWAY, LEASE = 300.0, 900.0, 90.0
"""Seconds: a server loads its model; a lost job waits in the scheduler's queue; a dead node's locks on NFS end."""
IN_FLIGHT, RATE = 512, 40.0
"""Requests of a job, and rows per second of a usual one."""
SLOW, SLOWER = 0.01, 0.5
"""Share of jobs on a sick node, and their speed."""
EFFICIENCY = 90.0


class Outcome(Struct, kw_only=True):
    """Seconds are played ones. `working`: of answers that are kept; `held`: of jobs that had their nodes."""

    rows: int
    written: int = 0
    asked_again: int = 0
    failures: int = 0
    attempts: int = 0
    looks: int = 0
    working: float = 0.0
    held: float = 0.0
    ended: float = 0.0

    @property
    def efficiency(self) -> float:
        return 100 * self.working / self.held


class Campaign:
    """`jobs` share the chunks of a day's work."""

    def __init__(self, jobs: int, seed: int = 0) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self.left = array("I", [int(RATE * DAY / CHUNKS)]) * (jobs * CHUNKS)
        self.locks: dict[int, float] = {}
        """Chunk → when its lock ends; a job that lives holds it for ever."""
        self.waiting: dict[int, Life] = {}
        self.outcome = Outcome(rows=sum(self.left))
        self.starts = [first_place(len(self.left), jobs, number) for number in range(jobs)]
        self.fresh, self.open = Unmarked(len(self.left)), Unmarked(len(self.left))
        """Chunks that nobody has begun, and those that are not finished."""
        self.unfinished = len(self.left)
        self.speeds = [self.speed() for _ in range(jobs)]

    def speed(self) -> float:
        """Rows per second of a job."""
        return RATE * self.random.lognormvariate(0, 0.1) * (SLOWER if self.random.random() < SLOW else 1)

    def look(self, start: int) -> OpenPlaces:
        """Chunks as they are when they are come to, all around from `start`."""
        self.outcome.looks += 1
        begun = (chunk for chunk in self.open.around(start) if chunk not in self.fresh)
        return OpenPlaces(self.fresh.around(start), begun)

    def run(self) -> Outcome:
        """Plays until all jobs have ended."""
        events = [(self.random.uniform(0, 600), number) for number in range(len(self.speeds))]
        heapq.heapify(events)
        lives: dict[int, Life] = {}
        while events:
            self.now, number = heapq.heappop(events)
            life = lives.get(number)
            if life is None:
                life = lives[number] = Life(self, number)
            if (pause := life.step()) is None:
                del lives[number]
            elif pause < 0:
                del lives[number]
                heapq.heappush(events, (self.now + AWAY, number))
            else:
                heapq.heappush(events, (self.now + pause, number))
        self.outcome.ended = self.now
        return self.outcome


class Unmarked:
    """Numbers below `count` that are not marked yet; long stretches of marked ones are passed over at once."""

    def __init__(self, count: int) -> None:
        self.next = array("I", range(count + 1))
        """Number → itself, or one behind it before which all are marked."""

    def __contains__(self, number: int) -> bool:
        return self.next[number] == number

    def mark(self, number: int) -> None:
        self.next[number] = number + 1

    def around(self, start: int) -> Iterator[int]:
        """From `start` to the end, and then from 0."""
        for number, end in ((start, len(self.next) - 1), (0, start)):
            while (number := self.first(number)) < end:
                yield number
                number += 1

    def first(self, number: int) -> int:
        """`number`, or the first one behind it that is not marked."""
        last = number
        while self.next[last] != last:
            last = self.next[last]
        while self.next[number] != last:
            self.next[number], number = last, self.next[number]
        return last


class Life:
    """A job from its start to its end or to the failure of one of its nodes."""

    def __init__(self, campaign: Campaign, number: int) -> None:
        self.campaign, self.speed = campaign, campaign.speeds[number]
        self.start = campaign.starts[number]
        self.began = campaign.now
        self.fails = campaign.now + campaign.random.expovariate(NODES * FAILURES)
        self.chunk, self.since = -1, 0.0
        self.course = self.work()

    def step(self) -> float | None:
        """Seconds until something happens; negative: it has failed; None: it has ended."""
        now = self.campaign.now
        if now >= self.fails:
            self.lose()
        else:
            pause = next(self.course, None)
            if pause is not None:
                return min(pause, self.fails - now)
        self.campaign.outcome.held += now - self.began
        self.campaign.waiting = {place: life for place, life in self.campaign.waiting.items() if life is not self}
        return -1.0 if now >= self.fails else None

    def work(self) -> Generator[float]:
        """As `execute_shared`, with pauses for what takes time."""
        tried: set[int] = set()
        until = self.campaign.now + START_UP
        while self.campaign.now < until:
            yield until - self.campaign.now
        pause, place = POLL, -1
        while self.campaign.unfinished:
            before = len(tried)
            chunks = places_to_try(lambda: self.campaign.look(self.start), tried, lambda: self.campaign.now)
            for chunk, rows in claim_work(chunks, tried, self.take):
                self.chunk, self.since = chunk, self.campaign.now
                yield rows / self.speed
                self.keep(rows)
            if len(tried) > before:
                pause = POLL
                continue
            places = staying_jobs(self.campaign.unfinished)
            if place < 0:
                place = next((place for place in range(places) if place not in self.campaign.waiting), places)
            if place >= places:
                break
            self.campaign.waiting[place] = self
            yield pause
            pause = min(2 * pause, SLOWEST_POLL)

    def take(self, chunk: int) -> int:
        """Locks it; rows that are left. Raises LockedError."""
        campaign = self.campaign
        campaign.outcome.attempts += 1
        if campaign.locks.get(chunk, 0.0) > campaign.now:
            raise LockedError("taken")
        campaign.locks[chunk] = float("inf")
        if chunk in campaign.fresh:
            campaign.fresh.mark(chunk)
        return campaign.left[chunk]

    def keep(self, rows: int) -> None:
        """Writes so many rows of the chunk and gives it back."""
        campaign = self.campaign
        campaign.left[self.chunk] -= rows
        campaign.outcome.written += rows
        campaign.outcome.working += rows / self.speed
        if not campaign.left[self.chunk]:
            campaign.open.mark(self.chunk)
            campaign.unfinished -= 1
        campaign.locks[self.chunk] = campaign.now
        self.chunk = -1

    def lose(self) -> None:
        """Answers are in the log; requests in flight are asked again by whoever takes the chunk next."""
        outcome = self.campaign.outcome
        outcome.failures += 1
        if self.chunk >= 0:
            chunk, done = self.chunk, int((self.campaign.now - self.since) * self.speed)
            flying = min(IN_FLIGHT, self.campaign.left[chunk] - done)
            outcome.asked_again += flying
            self.keep(done)
            self.campaign.locks[chunk] = self.campaign.now + LEASE


def bench(options: Options) -> Iterator[Line]:
    for jobs in SIZES[:2] if options.quick else SIZES:
        begun = time.process_time()
        outcome = Campaign(jobs).run()
        if outcome.written != outcome.rows:
            raise BenchError(f"{outcome.written:,} rows are written, expected {outcome.rows:,}.")
        note = (
            f"{outcome.rows:,} rows, {outcome.failures:,} failures, {outcome.asked_again:,} requests asked again, "
            f"{outcome.attempts:,} locks tried, {outcome.looks:,} looks at the folder, "
            f"{time.process_time() - begun:.0f} CPU-s to play"
        )
        line = Line(
            bench="simulation", what=f"queue of {jobs:,} jobs × {NODES} nodes", ours=outcome.efficiency, unit="%"
        )
        line.target, line.met, line.note = f"≥ {EFFICIENCY:g} %", outcome.efficiency >= EFFICIENCY, note
        yield line
