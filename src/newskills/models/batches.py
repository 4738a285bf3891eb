# SPDX-License-Identifier: Apache-2.0
"""Single questions gathered into batches, for models that run in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from newskills.base.aio import await_guarded
from newskills.base.errors import ModelError, NewskillsError
from newskills.base.records import Failure, Inference, Reply, Request, Row

Work = Callable[[list[Row]], Sequence[str]]
"""Questions → a text for each. Runs in a thread, one batch at a time."""


class BatchModel:
    """A Model whose requests are the fields of `extra_body`; what waits when a batch is done is the next batch."""

    def __init__(self, name: str, work: Work, *, size: int) -> None:
        self.name = name
        self._work, self._size = work, size
        self._waiting: list[tuple[Row, asyncio.Future[str]]] = []
        self._task: asyncio.Task[None] | None = None

    def check(self, inference: Inference, *, tools: bool = False) -> None:
        """Accept every setting, since nothing is sampled."""

    async def complete(self, request: Request) -> Reply:
        """Return the answer of `work` for the row. Raises ModelError for whatever goes wrong with the row, and errors
        of our own family that `work` raises."""
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting.append((request.extra_body, future))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        return Reply(text=await future, model=self.name)

    async def close(self) -> None:
        """Wait for a batch under way: a thread cannot be stopped."""
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[: self._size], self._waiting[self._size :]
            answers = await self._answers([row for row, _ in batch])
            for (_, future), answer in zip(batch, answers, strict=True):
                if future.done():
                    continue
                if isinstance(answer, str):
                    future.set_result(answer)
                else:
                    future.set_exception(answer)

    async def _answers(self, rows: list[Row]) -> Sequence[str | NewskillsError]:
        """Return an answer or an error for each row. A batch that fails is tried again row by row: one row must not
        make others fail."""
        outcome = await await_guarded(self._run_batch(rows))
        if not isinstance(outcome, Failure):
            return outcome
        if len(rows) > 1:
            return [answer for row in rows for answer in await self._answers([row])]
        return [ModelError(f"{self.name} failed: {outcome.message}")]

    async def _run_batch(self, rows: list[Row]) -> Sequence[str | NewskillsError]:
        try:
            answers = list(await asyncio.to_thread(self._work, rows))
        except NewskillsError as error:
            return [error for _ in rows]
        if len(answers) != len(rows):
            raise ValueError(f"{len(answers)} answers for {len(rows)} rows")
        return answers
