# SPDX-License-Identifier: Apache-2.0
"""The engine: a bounded window of rows in flight over all units of a run, on one event loop.

Workers pull rows lazily, so memory does not grow with the input. A fatal error or a signal stops the pulling; what
is finished is on disk, and the same command goes on from there.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType

from msgspec import structs

from newskills.base.aio import await_guarded
from newskills.base.errors import BadRequestError, NewskillsError, SandboxError, WorkerStartError
from newskills.base.protocols import Kit, NeedsProbe
from newskills.base.records import Failure
from newskills.environments.config import EnvironmentConfig
from newskills.run.engine.asking.asked import AskedEndpoint
from newskills.run.engine.asking.retries import RetryPolicy
from newskills.run.engine.batches.endpoint import BatchEndpoint
from newskills.run.engine.batches.keys import ROW_REQUESTS, requests_of
from newskills.run.engine.batches.make import batch_window, make_batch_endpoint
from newskills.run.engine.budget import RunBudget, Spending
from newskills.run.engine.build import RunBuilder, grader_id, grades_by_running
from newskills.run.engine.early_stop import EarlyStop
from newskills.run.engine.endpoint import MAX_ALIKE_FAILURES, Endpoint
from newskills.run.engine.environments import EnvironmentPools
from newskills.run.engine.grader_pool import Grading
from newskills.run.engine.lanes import Lane, Turn, prepared_ahead, servers_of, turns_of
from newskills.run.engine.pace import Pace
from newskills.run.engine.preflight import PreparedUnit
from newskills.run.engine.progress import Progress, Snapshot
from newskills.run.engine.sandboxes import Sandboxes
from newskills.run.engine.supervision import is_waiting, run_supervision
from newskills.run.engine.tools import Toolboxes
from newskills.run.engine.trace import Trace
from newskills.run.engine.unit import PendingRow, UnitRun
from newskills.run.planning.config import EndpointConfig, GenerationConfig
from newskills.run.planning.spec import UnitResult
from newskills.run.records.log import Disk
from newskills.sandbox.config import SandboxConfig
from newskills.solve.chat import MAIN

GRACE_SECONDS = {signal.SIGINT: 60.0, signal.SIGTERM: 20.0}
TICK_SECONDS = 0.25
PATIENCE, FIRST_PATIENCE = 1800.0, 60.0
"""Seconds with an endpoint that is down, and with one that has never answered where somebody sits before it."""
ECHO_SECONDS = 2.0
"""Seconds within which a second SIGTERM is the first one again: schedulers send it to a job step more than once."""


class Engine:
    """Runs prepared units as far as it gets; `fatal` and `signal` then say why it stopped early."""

    def __init__(
        self,
        prepared: Sequence[PreparedUnit],
        builder: RunBuilder,
        progress: Progress,
        stops: Mapping[str, EarlyStop] = MappingProxyType({}),
        finished: Sequence[UnitResult] = (),
        supply: Iterator[PreparedUnit] | None = None,
        window: int | None = None,
    ) -> None:
        """Set up the run of `prepared`. `stops`: name of units → what says when they have enough answers. `finished`:
        units of the same run that have nothing left to do; they count for its budget. `supply`: units like the first
        one, taken when the rows of those before them are asked. `window`: requests in flight that this process has
        files for; None: any."""
        self._prepared = list(prepared)
        self._window = window
        self._builder, self._progress, self._stops = builder, progress, stops
        self._supervision = run_supervision()
        self._supply = supply
        self._disk = Disk(progress.say)
        self.fatal: NewskillsError | None = None
        self.signal: signal.Signals | None = None
        self._endpoints: dict[EndpointConfig, AskedEndpoint] = {}
        self._first_patience = PATIENCE if is_waiting(builder.environ) else FIRST_PATIENCE
        self._sandboxes = Sandboxes(builder, self._stop)
        self._toolboxes = Toolboxes(builder.environ, self._stop)
        self._environments = EnvironmentPools(builder)
        self._gradings: dict[tuple[str, SandboxConfig | None, EnvironmentConfig], Grading] = {}
        self._lanes: list[Lane] = []
        self._workers: list[asyncio.Task[None]] = []
        self._several = len({unit.run.unit.name for unit in prepared}) > 1
        self._pace = Pace()
        self._tokens_before = sum(unit.run.state.output_tokens or 0 for unit in prepared)
        self._before = Spending(
            rows=sum(unit.rows for unit in finished),
            tokens=sum((unit.input_tokens or 0) + (unit.output_tokens or 0) for unit in finished),
            cost=sum(unit.cost or 0.0 for unit in finished),
        )
        self._budget = RunBudget([unit.run.config for unit in prepared], self._spent)
        self._quiet_ticks = 0
        self._signalled_at = 0.0

    @property
    def used_up(self) -> NewskillsError | None:
        """Why no more rows were asked, where a budget forbade it."""
        return self._budget.used_up

    @property
    def retries(self) -> int:
        return sum(endpoint.retries for endpoint in self._endpoints.values())

    async def run(self) -> None:
        """Run all units to their end. Trouble with the work ends in `fatal`; anything that is raised is a defect
        of this program."""
        disk = self._disk
        with disk, self._signals(), self._supervision.listening(self._request_stop):
            ticker = asyncio.create_task(self._tick())
            try:
                self._lanes = [self._lane(prepared) for prepared in self._prepared]
                await self._start_instruments()
                await self._probe_servers()
                await self._watch(disk)
                await self._generate(disk)
                await self._finish()
                await self._finish_early()
            except NewskillsError as error:
                self._stop(error)
            finally:
                ticker.cancel()
                await self._close()
                self._progress.show(self._snapshot(), last=True)

    def _lane(self, prepared: PreparedUnit) -> Lane:
        config = prepared.run.config
        servers = servers_of(config)
        models = {
            role: self._builder.for_prompts_of(
                config, server, self._endpoint(config, server, prepared.run.kept > 0)
            )
            for role, server in servers.items()
        }
        sandbox = self._sandboxes.get(config.sandbox)
        kit = Kit(
            models=models,
            sandbox=sandbox,
            tools=self._toolboxes.get(config, sandbox),
            environments=self._environments.get(config.environment),
        )
        return Lane(prepared, kit, self._grading(config))

    async def _start_instruments(self) -> None:
        """Start sandboxes and tools before the first request, so that no answer is lost to one that cannot
        start."""
        for lane in self._lanes:
            config = lane.run.config
            sandbox = self._sandboxes.get(config.sandbox)
            answered = lane.run.index.done == lane.run.index.rows
            if grades_by_running(config) or (config.needs_sandbox and not answered):
                await sandbox.start(config.endpoint_patience or PATIENCE if config.wait_for_sandbox else 0.0)
            if answered:
                continue
            if (toolbox := self._toolboxes.get(config, sandbox)) is not None:
                await toolbox.open()

    async def _probe_servers(self) -> None:
        """Give up a benchmark that its server cannot serve before its first row; the others go on."""
        refusals: dict[tuple[type, int], str] = {}
        for lane in self._lanes:
            solver, model = lane.solver, lane.kit.models[MAIN]
            if not isinstance(solver, NeedsProbe) or lane.run.index.done == lane.run.index.rows:
                continue
            key = type(solver), id(model)
            if key not in refusals:
                refusals[key] = ""
                try:
                    await solver.probe(model)
                except BadRequestError as error:
                    refusals[key] = str(error)
            lane.run.given_up = refusals[key]

    def _endpoint(self, config: GenerationConfig, server: EndpointConfig, proven: bool) -> AskedEndpoint:
        config = structs.replace(config, server=server)
        server = server.endpoint()
        if server in self._endpoints:
            return self._endpoints[server]
        # Rows that wait for their turn are asked, too: not where somebody counts what is asked.
        counted = self._stops or self._budget.limited
        most = max(config.max_concurrent_requests, 0 if counted else config.most_concurrent_requests)
        concurrency = batch_window(config) if server.batch_api else self._concurrency_limit(config)
        most = max(concurrency, min(most, self._window or most, config.sandbox_window or most))
        policy = RetryPolicy(
            concurrency=concurrency,
            most=most,
            max_retries=server.max_retries,
            patience=config.endpoint_patience or PATIENCE,
            first_patience=config.endpoint_patience or self._first_patience,
            soft_fail=server.enable_soft_fail,
            stops_if_refused=not self._several,
        )
        context, say = self._builder.context_strategy(config), self._progress.say
        if server.batch_api:
            batches = make_batch_endpoint(self._builder, server, policy, context, say, self._stop)
            return self._endpoints.setdefault(server, batches)
        model = self._builder.model(server, most)
        endpoint = Endpoint(
            model,
            policy,
            say=say,
            on_fatal=self._stop,
            context=context,
            proven=proven,
            shared=self._supervision.limit,
            trace=Trace(model.name, self._progress.trace) if config.log_level == "debug" else None,
        )
        return self._endpoints.setdefault(server, endpoint)

    def _concurrency_limit(self, config: GenerationConfig) -> int:
        """Return how many requests may be in flight, and say so where that is less than was asked for."""
        wanted = window = config.max_concurrent_requests
        reason = ""
        if self._window is not None and self._window // len(servers_of(config)) < window:
            window = max(1, self._window // len(servers_of(config)))
            reason = "this process may open no more files. Raise the limit with `ulimit -n`."
        if config.sandbox_window is not None and config.sandbox_window < window:
            window = config.sandbox_window
            reason = f"the sandbox has {config.sandbox.max_sessions:,} sessions (++sandbox.max_sessions)."
        if window < wanted:
            self._progress.say(f"{window:,} requests are in flight at most, not {wanted:,}: {reason}")
        return window

    def _grading(self, config: GenerationConfig) -> Grading | None:
        if config.eval_type is None:
            return None
        name = grader_id(config), config.sandbox if grades_by_running(config) else None, config.environment
        if name not in self._gradings:
            environments = self._environments.get(config.environment)
            kit = Kit(sandbox=self._sandboxes.get(config.sandbox), environments=environments)
            self._gradings[name] = self._builder.grading(config, kit, self._stop)
        return self._gradings[name]

    async def _watch(self, disk: Disk) -> None:
        for lane in self._lanes:
            if (stop := self._stops.get(lane.run.unit.name)) is not None:
                lane.open(disk, self._stop)
                await lane.run.watch(stop)

    async def _generate(self, disk: Disk) -> None:
        turns = prepared_ahead(self._turns(disk), () if self._stops else self._lanes)
        todo = sum(lane.run.index.rows - lane.run.index.done for lane in self._lanes)
        at_once = sum(endpoint.policy.most for endpoint in self._endpoints.values())
        # Rows of many requests: few enough that each is finished soon, twice as many as keep the endpoints busy.
        requests = max(lane.run.config.answers_of_a_row for lane in self._lanes)
        rows = at_once if requests == 1 else -(-2 * at_once // requests)
        count = rows if self._supply is not None else max(1, min(rows, todo))
        self._workers = [asyncio.create_task(self._worker(turns)) for _ in range(count)]
        await asyncio.wait(self._workers, return_when=asyncio.FIRST_EXCEPTION)
        self._cancel()
        await asyncio.wait(self._workers)
        for worker in self._workers:
            if not worker.cancelled() and (error := worker.exception()) is not None:
                raise error

    def _turns(self, disk: Disk) -> Iterator[Turn]:
        begun = False
        for lanes in chain(self._lane_groups(), self._supply_lanes()):
            stop = self._stops.get(lanes[0].run.unit.name)
            if stop is None:
                lanes[0].open(disk, self._stop)
            for lane, turn in turns_of(lanes, stop):
                if isinstance(turn, PendingRow) and not begun:
                    begun = True
                    self._progress.begin()
                yield lane, turn
            if stop is not None:
                stop.wake()
                if stop.met:
                    self._progress.say(f"{lanes[0].run.unit.name}: {stop.record().sentence()}")
            for lane in lanes:
                self._finish_if_complete(lane)

    def _lane_groups(self) -> list[list[Lane]]:
        """Group the lanes that run together: one by one, but all seeds of a watched benchmark side by side."""
        groups: dict[object, list[Lane]] = {}
        for lane in self._lanes:
            name = lane.run.unit.name
            groups.setdefault(name if name in self._stops else lane, []).append(lane)
        return list(groups.values())

    def _supply_lanes(self) -> Iterator[list[Lane]]:
        for prepared in self._supply or ():
            self._prepared.append(prepared)
            self._tokens_before += prepared.run.state.output_tokens or 0
            self._lanes.append(self._lane(prepared))
            yield [self._lanes[-1]]

    async def _worker(self, turns: Iterator[Turn]) -> None:
        budget = self._budget if self._budget.limited else None
        while not self._is_stopping:
            if budget is not None and not await budget.admit():
                return
            turn = next(turns, None)
            if turn is not None:
                lane, pending = turn
                if pending is None:
                    await asyncio.sleep(0)
                elif isinstance(pending, EarlyStop):
                    await pending.await_change()
                else:
                    number = self._pace.begin()
                    answered = await self._attempt(lane, pending)
                    self._pace.end(number, answered=answered)
                    self._finish_if_complete(lane)
            if budget is not None:
                budget.leave()
            if turn is None:
                return

    async def _attempt(self, lane: Lane, pending: PendingRow) -> bool:
        """Ask for one row and book the result; return whether it got an answer."""
        run = lane.run
        if isinstance(pending.request, Failure):
            self._book_failure(run, pending, pending.request)
            return False
        ROW_REQUESTS.set(requests_of(run.unit, run.state.started, pending.sample))
        result = await await_guarded(lane.solver.solve(pending.sample, pending.request, lane.kit))
        if run.is_watched:
            await run.await_grader()
        if not isinstance(result, Failure):
            run.book_answer(pending.sample, result)
        elif self.fatal is None:
            self._book_failure(run, pending, result)
        if run.disk_is_slow:
            await run.flush_log()
        return not isinstance(result, Failure)

    def _book_failure(self, run: UnitRun, pending: PendingRow, failure: Failure) -> None:
        self._progress.journal.note_failure(run.unit.label, pending.sample.id, failure)
        run.book_failure(pending, failure)
        if self._several and failure.kind == BadRequestError.__name__:
            run.give_up_if_refused(MAX_ALIKE_FAILURES)

    def _finish_if_complete(self, lane: Lane) -> None:
        if lane.run.complete and not lane.run.failures and lane.finish is None:
            lane.finish = asyncio.create_task(lane.run.finish())

    async def _finish(self) -> None:
        tasks = [lane.finish for lane in self._lanes if lane.finish is not None]
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome

    async def _finish_early(self) -> None:
        """Finish units whose stopping rule is met and which have rows left."""
        watched = [lane for lane in self._lanes if lane.run.unit.name in self._stops]
        for lane in watched:
            if not self._is_stopping:
                await lane.run.await_verdicts()
        for lane in watched:
            stop = self._stops[lane.run.unit.name]
            if stop.met and not self._is_stopping and lane.run.status is None:
                await lane.run.finish_early(stop.positions())

    async def _close(self) -> None:
        with contextlib.suppress(NewskillsError):  # already in `fatal`, or about a unit that stays unfinished
            await self._finish()
        for grading in self._gradings.values():
            grading.close()
        for lane in self._lanes:
            await lane.run.close()
        for endpoint in self._endpoints.values():
            await endpoint.close()
        for failure in await self._toolboxes.close():
            self._progress.say(f"A tool did not stop properly: {failure.message}")
        for failure in await self._environments.close():
            self._progress.say(f"A container did not stop properly: {failure.message}")
        for failure in await self._sandboxes.close():
            self._progress.say(f"A sandbox did not stop properly: {failure.message}")

    @property
    def _is_stopping(self) -> bool:
        return self.fatal is not None or self.signal is not None

    def _stop(self, error: NewskillsError) -> None:
        """Give up requests in flight after a fatal error; finished work is kept.

        Without a sandbox or a worker process nothing more can be graded, either: that waits for the next process.
        """
        if self.fatal is None:
            self.fatal = error
        if isinstance(error, SandboxError | WorkerStartError):
            self._abandon()
        else:
            self._cancel()

    def _cancel(self) -> None:
        for worker in self._workers:
            worker.cancel()

    def _abandon(self) -> None:
        """Cancel grading and final files, which the next process can do, and stop waiting for space on a full
        disk."""
        self._cancel()
        self._disk.give_up()
        for lane in self._lanes:
            if lane.finish is not None:
                lane.finish.cancel()

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        for number in GRACE_SECONDS:
            loop.add_signal_handler(number, self._interrupt, number)
        try:
            yield
        finally:
            for number in GRACE_SECONDS:
                loop.remove_signal_handler(number)

    def _request_stop(self, at_once: bool) -> None:
        if self.signal is None:
            self._interrupt(signal.SIGTERM)
        if at_once:
            self._abandon()

    def _interrupt(self, number: signal.Signals) -> None:
        """Handle a signal: the first lets requests in flight finish, the second gives them up."""
        now = time.monotonic()
        if self.signal is number is signal.SIGTERM and now - self._signalled_at < ECHO_SECONDS:
            return
        if self.signal is not None:
            self._progress.say("Stopping now; finished rows are saved.")
            self._abandon()
            return
        self.signal, self._signalled_at = number, now
        for endpoint in self._endpoints.values():
            endpoint.drain()
        waiting = sum(endpoint.in_flight for endpoint in self._endpoints.values())
        self._progress.say(
            f"Stopping: {waiting} requests may finish within {GRACE_SECONDS[number]:.0f} s (Ctrl-C again: stop now)."
        )
        asyncio.get_running_loop().call_later(GRACE_SECONDS[number], self._abandon)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            self._supervision.snapshot = snapshot = self._snapshot()
            self._progress.show(snapshot)
            busy = any(endpoint.in_flight for endpoint in self._endpoints.values())
            self._quiet_ticks = self._quiet_ticks + 1 if self.signal is not None and not busy else 0
            if self._quiet_ticks > 1:
                self._cancel()

    def _spent(self) -> Spending:
        """Return the spending so far, in all processes of this run."""
        runs, before = [unit.run for unit in self._prepared], self._before
        return Spending(
            rows=before.rows + sum(run.index.done for run in runs),
            tokens=before.tokens + sum(run.tokens or 0 for run in runs),
            cost=before.cost + sum(run.cost or 0.0 for run in runs),
        )

    def _snapshot(self) -> Snapshot:
        runs, endpoints = [lane.run for lane in self._lanes], list(self._endpoints.values())
        tokens = [run.state.output_tokens for run in runs if run.state.output_tokens is not None]
        costs = [cost for run in runs if (cost := run.cost) is not None]
        slow = [slow_one for endpoint in endpoints if (slow_one := endpoint.slow) is not None]
        rows, done = sum(self._rows_to_ask(run) for run in runs), sum(run.index.done for run in runs)
        in_flight = sum(endpoint.in_flight for endpoint in endpoints)
        waiting = rows - done - self._pace.under_way - sum(run.failures for run in runs)
        return Snapshot(
            rows=rows,
            done=done,
            fresh=sum(run.generated_rows for run in runs),
            tokens=sum(tokens) if tokens else None,
            fresh_tokens=sum(tokens) - self._tokens_before,
            cost=sum(costs) if costs else None,
            left=self._pace.seconds_left(max(0, waiting)),
            waiting=in_flight > 0 and not any(endpoint.answered for endpoint in endpoints),
            stopping=self._is_stopping or self.used_up is not None,
            in_flight=in_flight,
            concurrency=sum(endpoint.concurrency for endpoint in endpoints),
            errors=sum((endpoint.errors for endpoint in endpoints), Counter[str]()),
            unscored=sum((run.lost for run in runs), Counter[str]()),
            batches=", ".join(e.doing for e in endpoints if isinstance(e, BatchEndpoint) and e.doing),
            paused_for=max((endpoint.paused_for for endpoint in endpoints), default=0.0),
            slow=max(slow, key=lambda slow: slow.left, default=None),
        )

    def _rows_to_ask(self, run: UnitRun) -> int:
        """Return how many rows a run has in the end: a rule may want fewer, but keeps all that are answered."""
        stop = self._stops.get(run.unit.name)
        if stop is None:
            return run.index.rows
        return max(run.index.done, stop.most)
