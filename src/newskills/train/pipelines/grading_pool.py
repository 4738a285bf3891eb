# SPDX-License-Identifier: Apache-2.0
"""The grader of an evaluation inside the trainers of others: in killable processes, which this process starts once."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from newskills.base.errors import GraderError
from newskills.base.pool.loop import PoolOptions
from newskills.base.pool.workers import WorkerPool
from newskills.base.records import Failure, Row, Score

BROKEN = 20
"""So many failures in a row are not the answers' fault."""
Turns = Sequence[Mapping[str, Any]]


class GradingPool:
    """One pool of grading processes, made when it is first needed. May be called from any thread."""

    def __init__(self, grader: str = "math", config: Row | None = None, processes: int = 2) -> None:
        self._grader, self._config, self._processes = grader, config or {}, processes
        self._pool: WorkerPool[Score] | None = None
        self._lock = threading.Lock()
        self._failures = 0

    def scores(self, rows: Sequence[Row]) -> list[Score | None]:
        """Return a score for each row, in order; None: unscored. Raises GraderError where the grader fails again and
        again."""
        pool = self._start_pool()
        return [self._looked_at(future.result()) for future in [pool.submit(row) for row in rows]]

    def close(self) -> None:
        """End the processes."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def _start_pool(self) -> WorkerPool[Score]:
        with self._lock:
            if self._pool is None:
                target = {"name": self._grader, "config": self._config}
                options = PoolOptions(processes=self._processes)
                self._pool = WorkerPool(
                    "newskills.graders.worker:make", target, result_type=Score, options=options
                )
            return self._pool

    def _looked_at(self, result: Score | Failure) -> Score | None:
        if isinstance(result, Score) and result.outcome != "unscored":
            self._failures = 0
            return result
        self._failures += 1
        if self._failures >= BROKEN:
            why = result.message if isinstance(result, Failure) else result.why
            raise GraderError(f"The grader {self._grader} has failed for {BROKEN} answers in a row: {why}")
        return None


def answer_record(turns: Turns, metadata: Mapping[str, Any]) -> Row:
    """Return what the grader gets of a conversation: all that the model has said in it."""
    generation = "".join(str(turn["content"]) for turn in turns if turn["role"] == "assistant")
    return {"generation": generation, "expected_answer": str(metadata["ground_truth"]), "finish_reason": "stop"}


def verdict_text(score: Score | None) -> str:
    """Return the verdict as the environment says it."""
    return f"Environment: {'unscored' if score is None else score.outcome}"


def found_answer(score: Score | None) -> str | None:
    """Return the answer that the grader found; None where it found none."""
    if score is None or score.fields.get("predicted_answer") is None:
        return None
    return str(score.fields["predicted_answer"])
