# SPDX-License-Identifier: Apache-2.0
"""Graders as rewards: workers stay warm from call to call, verdicts are those of an evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType

from newskills.base.errors import ConfigError
from newskills.base.pool import PoolOptions, WorkerPool
from newskills.base.records import Row, Score
from newskills.graders import cpu_seconds, executes, make_grader
from newskills.run.grading import as_score


class Verdicts:
    """Scores of records by one grader, batch after batch. A context manager: the workers end with it."""

    def __init__(self, grader: str, config: Row) -> None:
        """Raises UnknownNameError, ConfigError: also for a grader that runs code, which needs a sandbox."""
        made = make_grader(grader, config)
        if executes(made):
            raise ConfigError(
                f"The grader {grader} runs code; as a reward only graders that compute can be used yet."
            )
        self.label = f"{made.name}@{made.version}"
        self._stack = ExitStack()
        self._pool: WorkerPool[Score] = WorkerPool(
            "newskills.graders.worker:make",
            {"name": grader, "config": config},
            result_type=Score,
            options=PoolOptions(cpu_seconds=cpu_seconds(made)),
        )

    def __call__(self, records: Sequence[Row]) -> list[Score]:
        """A score for each record, in order; where the grader failed it is unscored, never wrong."""
        return [as_score(future.result(), self.label) for future in self._pool.submit_many(list(records))]

    def __enter__(self) -> Verdicts:
        self._stack.enter_context(self._pool)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
