# SPDX-License-Identifier: Apache-2.0
"""Verdicts for rows from anywhere, in constant memory, by the same means that grade while generating."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future
from itertools import islice
from types import TracebackType
from typing import Any, TypeVar

from newskills.base.aio import new_event_loop
from newskills.base.errors import ConfigError, DataError, NewskillsError
from newskills.base.pool.loop import PoolOptions
from newskills.base.pool.workers import WorkerPool
from newskills.base.protocols import ExecutingGrader, Grader, Kit, NeedsCheck
from newskills.base.records import Row, Score
from newskills.environments.config import EnvironmentConfig
from newskills.graders import cpu_seconds, is_executing, make_grader, needs_sandbox
from newskills.graders.reading.record_faults import missing_answer
from newskills.run.engine.build import RunBuilder
from newskills.run.engine.environments import EnvironmentPools
from newskills.run.engine.grader_pool import AT_ONCE, as_score, execute_grader, verdict_fields
from newskills.run.engine.sandboxes import Sandboxes
from newskills.sandbox.config import SandboxConfig
from newskills.solve.reasoning import split_reasoning

T = TypeVar("T")


def grade_rows(
    rows: Iterable[Row],
    grader: str,
    config: Row,
    sandbox: SandboxConfig = SandboxConfig(),  # noqa: B008 - frozen
    environment: EnvironmentConfig = EnvironmentConfig(),  # noqa: B008 - frozen
    *,
    processes: int = 0,
) -> Iterator[Row]:
    """Yield the rows in order, with the verdict's fields merged in. Verdict fields of an earlier grading are
    replaced.

    `processes` of a grader that runs no code; 0: one for each CPU.
    `sandbox` is where a grader that runs code runs it, `environment` where it runs tests of repositories. Raises
    UnknownNameError, ConfigError (grader or its settings) at once, what `rows` raises, DataError for a row without the
    field that the grader grades, and SandboxError where the sandbox is not to be had at all.
    """
    made = make_grader(grader, config)
    rows = with_answers(((f"row {number}", row) for number, row in enumerate(rows, 1)), made)
    if is_executing(made):
        return _grade_by_execution(rows, made, sandbox, environment)
    limits = PoolOptions(cpu_seconds=cpu_seconds(made), processes=processes)
    return _grade_rows(rows, f"{made.name}@{made.version}", {"name": grader, "config": config}, limits)


def with_answers(rows: Iterable[tuple[str, Row]], grader: Grader | ExecutingGrader) -> Iterator[Row]:
    """Yield the rows of (place, row). Raises DataError for one without the field that `grader` grades: nobody has
    answered there, which is no fault of a model. Rows whose answer was lost may be without."""
    for place, row in rows:
        missing = missing_answer(grader, row)
        if missing and not (row.get("outcome") == "unscored" and row.get("error")):
            raise DataError(
                f"{place} has no {missing}, so there is no answer to grade; its keys are "
                f"{', '.join(sorted(row)) or 'none'}.",
                hint="Generate answers first (ns generate), or rename the field that has them to `generation`.",
            )
        yield row


def without_reasoning(rows: Iterable[Row], end: str) -> Iterator[Row]:
    """Yield rows as `ns generate ++parse_reasoning=true` writes them: `generation` is what follows the last `end`.

    Rows whose reasoning stands in a field of its own, or was taken out before, stay as they are.
    """
    for row in rows:
        text = row.get("generation")
        apart = row.get("reasoning_content") or row.get("_generation_finished_thinking") is True
        if isinstance(text, str):
            row |= split_reasoning(text, "generation", end, separate=bool(apart))
        yield row


def _grade_rows(rows: Iterable[Row], label: str, target: Row, limits: PoolOptions) -> Iterator[Row]:
    waiting: deque[Row] = deque()

    def feed() -> Iterator[Row]:
        for row in rows:
            waiting.append(row)
            yield row

    with WorkerPool("newskills.graders.worker:make", target, result_type=Score, options=limits) as pool:
        for result in pool.map(feed()):
            yield _judged_row(waiting.popleft(), as_score(result, label))


def _grade_by_execution(
    rows: Iterable[Row], grader: ExecutingGrader, config: SandboxConfig, environment: EnvironmentConfig
) -> Iterator[Row]:
    with ExecutedGrading() as grading:
        yield from grading.grade_rows(rows, grader, config, environment)


class ExecutedGrading:
    """Grades rows by running code; sandboxes and containers are started when first needed, and kept until the end of
    the `with` block, for one set of rows after another.
    """

    def __init__(self) -> None:
        self._fatal: list[NewskillsError] = []
        self._loop = LoopThread()

    def __enter__(self) -> ExecutedGrading:
        self._loop.__enter__()
        builder = RunBuilder(os.environ)
        self._sandboxes = self._loop.run(_make_on_loop(lambda: Sandboxes(builder, self._fatal.append)))
        self._pools = self._loop.run(_make_on_loop(lambda: EnvironmentPools(builder)))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.run(cancel_others())
        self._loop.run(self._pools.close())
        self._loop.run(self._sandboxes.close())
        self._loop.__exit__(kind, value, trace)

    def grade_rows(
        self,
        rows: Iterable[Row],
        grader: ExecutingGrader,
        config: SandboxConfig = SandboxConfig(),  # noqa: B008 - frozen
        environment: EnvironmentConfig = EnvironmentConfig(),  # noqa: B008 - frozen
    ) -> Iterator[Row]:
        """Yield the rows with their verdicts, as `grade_rows` does. Raises ConfigError, and SandboxError where the
        sandbox is not to be had."""
        if isinstance(grader, NeedsCheck):
            grader.check()
        self._fatal.clear()
        sandbox = self._sandboxes.get(config)
        kit = Kit(sandbox=sandbox, environments=self._pools.get(environment))
        if needs_sandbox(grader):
            self._loop.run(sandbox.start())
        source = iter(rows)
        waiting: deque[tuple[Row, Future[Score]]] = deque()
        try:
            while True:
                for row in islice(source, AT_ONCE - len(waiting)):
                    waiting.append((row, self._loop.begin(execute_grader(grader, row, kit))))
                if not waiting:
                    return
                row, verdict = waiting.popleft()
                score = verdict.result()
                if self._fatal:
                    raise self._fatal[0]
                yield _judged_row(row, score)
        finally:
            for _, verdict in waiting:
                verdict.cancel()


def _judged_row(row: Row, score: Score) -> Row:
    for stale in ("outcome_cause", "why"):
        row.pop(stale, None)
    return row | verdict_fields(row, score)


async def _make_on_loop(make: Callable[[], T]) -> T:
    return make()


class LoopThread:
    """An event loop in a thread of its own, so that a caller may have one running already."""

    def __init__(self) -> None:
        self._loop = new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="newskills-grade", daemon=True)

    def begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin `work` on the loop of the thread. Raises ConfigError outside the `with` block, where nothing would
        ever answer."""
        if not self._thread.is_alive():
            work.close()
            raise ConfigError("Its workers are not running: use it inside its `with` block.")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.begin(work).result()

    def __enter__(self) -> LoopThread:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
