# SPDX-License-Identifier: Apache-2.0
"""Work that is done once however often it is asked for: a client that lost its answer may ask again."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from newskills_sandbox.errors import ExecutionRefusedError, SandboxError

T = TypeVar("T")

KEEP_SECONDS = 300.0
KEEP_BYTES = 64 << 20
ORPHAN_SECONDS = 5.0
"""How long work goes on after everyone who waited for it left: a broken connection comes back within this."""


class _SharedCall(Generic[T]):
    def __init__(self, task: asyncio.Task[T], content: int) -> None:
        self.task, self.content = task, content
        self.waiting = 0
        self.orphaned: asyncio.TimerHandle | None = None


class SharedCalls(Generic[T]):
    """Results are kept for `KEEP_SECONDS`, or until all kept ones have `KEEP_BYTES`; failures are not kept."""

    def __init__(self, size_of: Callable[[T], int]) -> None:
        self._size_of = size_of
        self._pieces: dict[str, _SharedCall[T]] = {}
        self._orphans: dict[str, _SharedCall[T]] = {}
        self._finished: deque[tuple[float, str, int]] = deque()
        self._bytes = 0

    async def do(self, key: str, content: bytes, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the result of `work` for this `key`, begun here or earlier; `content` must be the same each time.

        Raises ExecutionRefusedError where it is not, SandboxError where the work was cancelled since nobody waited,
        and what `work` raises. Leaving cancels it, after `ORPHAN_SECONDS` without anyone else.
        """
        piece = self._pieces.get(key) or self._begin_call(key, content, work)
        if piece.content != hash(content):
            raise ExecutionRefusedError(
                "This request id was used for another request; use a new id for each request."
            )
        piece.waiting += 1
        if self._orphans.pop(key, None) is not None and piece.orphaned is not None:
            piece.orphaned.cancel()
        try:
            return await asyncio.shield(piece.task)
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if piece.task.cancelled() and current is not None and not current.cancelling():
                raise SandboxError("The execution was cancelled because its client had left.") from None
            raise
        finally:
            piece.waiting -= 1
            if piece.waiting == 0 and not piece.task.done():
                self._orphans[key] = piece
                piece.orphaned = asyncio.get_running_loop().call_later(ORPHAN_SECONDS, piece.task.cancel)

    async def drop(self, ending: str = "") -> None:
        """Cancel at once the work that nobody waits for, where its key has this `ending`."""
        tasks = [piece.task for key, piece in self._orphans.items() if key.endswith(ending)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin_call(self, key: str, content: bytes, work: Callable[[], Coroutine[Any, Any, T]]) -> _SharedCall[T]:
        task = asyncio.get_running_loop().create_task(work())
        piece = self._pieces[key] = _SharedCall(task, hash(content))
        task.add_done_callback(lambda done: self._end_call(key, done))
        return piece

    def _end_call(self, key: str, task: asyncio.Task[T]) -> None:
        orphan = self._orphans.pop(key, None)
        if orphan is not None and orphan.orphaned is not None:
            orphan.orphaned.cancel()
        if not task.cancelled() and task.exception() is not None:
            del self._pieces[key]
            return
        now = asyncio.get_running_loop().time()
        size = 0 if task.cancelled() else self._size_of(task.result())
        self._finished.append((now, key, size))
        self._bytes += size
        while self._finished and (self._finished[0][0] < now - KEEP_SECONDS or self._bytes > KEEP_BYTES):
            _, old, freed = self._finished.popleft()
            self._bytes -= freed
            del self._pieces[old]
