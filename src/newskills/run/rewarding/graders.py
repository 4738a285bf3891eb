# SPDX-License-Identifier: Apache-2.0
"""Graders as rewards: they stay warm from call to call, and verdicts are those of an evaluation.

`Rewarding` works on an event loop, for servers; `Verdicts` is the same for callers without one.
"""

from __future__ import annotations

import asyncio
import os
from asyncio import Future
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from types import TracebackType

from msgspec import Struct
from msgspec.structs import replace

from newskills.base.errors import DataError
from newskills.base.pool.loop import PoolOptions
from newskills.base.pool.workers import WorkerPool
from newskills.base.protocols import Kit
from newskills.base.records import Failure, Row, Score
from newskills.environments.config import EnvironmentConfig
from newskills.graders import cpu_seconds, is_executing, make_grader, needs_sandbox
from newskills.run.engine.build import RunBuilder
from newskills.run.engine.environments import EnvironmentPools
from newskills.run.engine.grader_pool import AT_ONCE, ExecutingGrading, Grading, PoolGrading, unscored_score
from newskills.run.engine.sandboxes import Sandboxes
from newskills.run.grade import LoopThread, cancel_others
from newskills.run.rewarding.judge import RewardJudge
from newskills.run.rewarding.pattern import NAME as PATTERN
from newskills.run.rewarding.reward import (
    RewardConfig,
    RewardItem,
    SampleMeasurements,
    answered_record,
    reward_of_verdict,
)
from newskills.sandbox.config import SandboxConfig
from newskills.train.loops.samples import Judged, Reward

Count = Callable[[str], int]
Record = Callable[[Row, str, str], Row]
"""(problem's row, text, finish_reason) → what the grader gets."""
"""Text → tokens."""
PATTERN_SECONDS = 1.0
ENVIRONMENT = "environment_reward"
"""The grader whose number is the reward of an environment, of which correct and wrong are only a reading."""


class Grades:
    """Scores by one `Grading` on the running loop, of which at most a window is under way; others wait."""

    def __init__(self, grading: Grading) -> None:
        self._grading = grading
        self._pending: set[Future[Score]] = set()

    async def scores(self, records: Sequence[Row]) -> list[Score]:
        """Return a score for each record, in order."""
        return [await future for future in [await self._begin(record) for record in records]]

    async def close(self) -> None:
        """Close the grading and cancel pending requests."""
        self._grading.close()
        for future in tuple(self._pending):
            future.cancel()

    async def _begin(self, record: Row) -> Future[Score]:
        if self._grading.full:
            await self._grading.until(lambda: not self._grading.full)
        future: Future[Score] = asyncio.get_running_loop().create_future()
        self._pending.add(future)
        future.add_done_callback(self._pending.discard)
        self._grading.submit(record, lambda score: None if future.done() else future.set_result(score))
        return future


class Capacity(Struct, frozen=True, kw_only=True):
    """`workers`: processes of a grader that computes, 0 = as many as CPUs; `at_once`: records of one that runs code.

    `environment`: where one that tests what agents did runs its tests.
    """

    workers: int = 0
    at_once: int = AT_ONCE
    environment: EnvironmentConfig = EnvironmentConfig()


class RewardGrader:
    """One grader at work on the running loop, with the sandbox that it may need."""

    def __init__(
        self,
        grader: str,
        config: Row,
        sandbox: SandboxConfig = SandboxConfig(),  # noqa: B008
        capacity: Capacity = Capacity(),  # noqa: B008
    ) -> None:
        """Make the grader; nothing is started. Raises UnknownNameError, ConfigError."""
        self._capacity = capacity
        self._made = make_grader(grader, config)
        self._target: Row = {"name": grader, "config": config}
        self._sandbox = sandbox
        self.label = f"{self._made.name}@{self._made.version}"
        self._builder = RunBuilder(os.environ)
        self._sandboxes = Sandboxes(self._builder)
        self._environments = EnvironmentPools(self._builder)
        self._grades: Grades | None = None
        self._rewarders: list[Rewarder] = []

    async def start(self) -> None:
        """Start the workers, or what code is run in. Raises ConfigError, SandboxError where code cannot be run here."""
        if is_executing(self._made):
            sandbox = self._sandboxes.get(self._sandbox)
            if needs_sandbox(self._made):
                await sandbox.start()
            kit = Kit(sandbox=sandbox, environments=self._environments.get(self._capacity.environment))
            self._grades = Grades(ExecutingGrading(self._made, kit, at_once=self._capacity.at_once))
        else:
            limits = PoolOptions(processes=self._capacity.workers, cpu_seconds=cpu_seconds(self._made))
            pool = WorkerPool("newskills.graders.worker:make", self._target, result_type=Score, options=limits)
            self._grades = Grades(PoolGrading(pool, self.label))

    async def scores(self, records: Sequence[Row]) -> list[Score]:
        """Return a score for each record, in order; where the grader failed it is unscored, never wrong."""
        assert self._grades is not None
        return await self._grades.scores(records)

    async def rewarder(self, config: RewardConfig, count: Count | None = None) -> Rewarder:
        """Return what makes rewards of these scores; it is closed with them. Raises as `RewardJudge`."""
        if config.value is None:
            config = replace(config, value=self._made.name == ENVIRONMENT)
        made = Rewarder(self, config, self._builder, count)
        self._rewarders.append(made)
        return made

    async def close(self) -> None:
        """End the workers, the sandbox and the judges' connections. May be called twice."""
        for rewarder in self._rewarders:
            await rewarder.close()
        self._rewarders.clear()
        grades, self._grades = self._grades, None
        if grades is not None:
            await grades.close()
        await self._environments.close()
        await self._sandboxes.close()
        self._builder.close()


class Rewarder:
    """Samples → rewards, by one configuration. `count` counts tokens of samples that come without their number."""

    def __init__(
        self, grader: RewardGrader, config: RewardConfig, builder: RunBuilder, count: Count | None
    ) -> None:
        self.config = config
        self._grader, self._count = grader, count
        self._judge = RewardJudge(config.judge, builder) if config.judges else None
        self._patterns: Grades | None = None
        if config.format.pattern:
            target, limits = {PATTERN: config.format.pattern}, PoolOptions(cpu_seconds=PATTERN_SECONDS)
            pool = WorkerPool("newskills.run.rewarding.pattern:make", target, result_type=Score, options=limits)
            self._patterns = Grades(PoolGrading(pool, PATTERN))

    async def judge(self, samples: Sequence[RewardItem]) -> list[Judged]:
        """Judge samples in order. Raises DataError where tokens count, and a sample neither has their number nor
        can be counted."""
        samples = await self._count_tokens(samples)
        scores = await self._grader.scores([sample.record for sample in samples])
        measurements = await asyncio.gather(*map(self._measure, samples, scores))
        judged = []
        for sample, score, measurement in zip(samples, scores, measurements, strict=True):
            if isinstance(measurement, Failure):
                unscored = unscored_score(measurement, score.grader, score.fields)
                judged.append(reward_of_verdict(unscored, sample, self.config))
            else:
                judged.append(reward_of_verdict(score, sample, self.config, measurement))
        return judged

    async def close(self) -> None:
        if self._judge is not None:
            await self._judge.close()
        if self._patterns is not None:
            await self._patterns.close()

    async def _measure(self, sample: RewardItem, score: Score) -> SampleMeasurements | Failure:
        if score.outcome == "unscored":
            return SampleMeasurements()
        there = False
        if self._patterns is not None:
            (look,) = await self._patterns.scores([{"text": sample.text}])
            if look.outcome == "unscored":
                return Failure(kind="Pattern", cause="grader", message=f"the pattern: {look.why}")
            there = look.outcome == "correct"
        if self._judge is None:
            return SampleMeasurements(pattern=there)
        mark = await self._judge.mark(sample.record)
        if isinstance(mark, Failure):
            return mark
        return SampleMeasurements(mark=mark, pattern=there)

    async def _count_tokens(self, samples: Sequence[RewardItem]) -> Sequence[RewardItem]:
        if not self.config.counts_tokens or all(sample.tokens is not None for sample in samples):
            return samples
        count = self._count
        if count is None:
            raise DataError(
                "The reward counts tokens, but a sample has no num_generated_tokens.",
                hint="Send num_generated_tokens, or give a --tokenizer.",
            )
        return await asyncio.to_thread(
            lambda: [
                sample if sample.tokens is not None else replace(sample, tokens=count(sample.text))
                for sample in samples
            ]
        )


class BatchGrader:
    """Scores and rewards of records by one grader, batch after batch, from any thread.

    A context manager: the workers and the sandbox end with it.
    """

    def __init__(
        self,
        grader: str,
        config: Row,
        sandbox: SandboxConfig = SandboxConfig(),  # noqa: B008
        capacity: Capacity = Capacity(),  # noqa: B008
    ) -> None:
        """Create the grader; `sandbox` is where a grader that runs code runs it. Raises UnknownNameError,
        ConfigError."""
        self._rewarding = RewardGrader(grader, config, sandbox, capacity)
        self.label = self._rewarding.label
        self._stack = ExitStack()
        self._loop = LoopThread()

    def __call__(self, records: Sequence[Row]) -> list[Score]:
        """Return a score for each record, in order; where the grader failed it is unscored, never wrong."""
        return self._loop.run(self._rewarding.scores(records))

    def reward(
        self, config: RewardConfig, count: Count | None = None, record: Record | None = answered_record
    ) -> Reward:
        """Return a function: samples → rewards; `record` makes what the grader gets of a sample; None: its row is a
        whole record.

        Raises ConfigError, UnknownNameError, AuthError (a judge that cannot be asked).
        """
        rewarder = self._loop.run(self._rewarding.rewarder(config, count))

        def judge(samples: Sequence[tuple[Row, str, str]]) -> list[Judged]:
            if record is None:
                made = [
                    RewardItem(record=row, written=text, tokens=row.get("num_generated_tokens"))
                    for row, text, _ in samples
                ]
            else:
                made = [
                    RewardItem(record=record(row, text, reason), written=text) for row, text, reason in samples
                ]
            return self._loop.run(rewarder.judge(made))

        return judge

    def __enter__(self) -> BatchGrader:
        """Start the grader. Raises ConfigError, SandboxError where code cannot be run here."""
        with ExitStack() as stack:
            stack.enter_context(self._loop)
            stack.callback(lambda: self._loop.run(self._rewarding.close()))
            stack.callback(lambda: self._loop.run(cancel_others()))
            self._loop.run(self._rewarding.start())
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
