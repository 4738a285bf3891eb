# SPDX-License-Identifier: Apache-2.0
"""Verdicts for rows from anywhere, in constant memory, by the same workers that grade while generating."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from newskills.base.pool import PoolOptions, WorkerPool
from newskills.base.records import Row, Score
from newskills.graders import cpu_seconds, make_grader
from newskills.run.grading import as_score, verdict_fields


def grade_rows(rows: Iterable[Row], grader: str, config: Row) -> Iterator[Row]:
    """Rows with the verdict's fields merged in, in order. Verdict fields of an earlier grading are replaced.

    Raises UnknownNameError, ConfigError (grader or its settings) at once, and what `rows` raises.
    """
    made = make_grader(grader, config)
    limits = PoolOptions(cpu_seconds=cpu_seconds(made))
    return _graded(rows, f"{made.name}@{made.version}", {"name": grader, "config": config}, limits)


def _graded(rows: Iterable[Row], label: str, target: Row, limits: PoolOptions) -> Iterator[Row]:
    waiting: deque[Row] = deque()

    def feed() -> Iterator[Row]:
        for row in rows:
            waiting.append(row)
            yield row

    with WorkerPool("newskills.graders.worker:make", target, result_type=Score, options=limits) as pool:
        for result in pool.map(feed()):
            row = waiting.popleft()
            for stale in ("outcome_cause", "why"):
                row.pop(stale, None)
            yield row | verdict_fields(row, as_score(result, label))
