# SPDX-License-Identifier: Apache-2.0
"""Calls within a running event loop: awaited, or as a notebook makes them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from newskills.commands.command import Command
    from newskills.run.engine.supervision import Supervision


def within_loop() -> bool:
    """Return whether this thread runs an event loop, as the cells of a notebook do."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def on_a_thread(work: Callable[[], Any], command: Command[Any]) -> Any:
    """Run `work`, a call of `command`, on a thread of its own, and return its result; cancelling stops it. Raises what
    it raises."""
    running, supervision = _start_call(work, command)
    awaited = asyncio.wrap_future(running)
    try:
        return await asyncio.shield(awaited)
    except asyncio.CancelledError:
        supervision.stop()
        await asyncio.wait([awaited])
        if not awaited.cancelled():
            awaited.exception()  # that of being stopped
        raise


def beside_loop(work: Callable[[], Any], command: Command[Any]) -> Any:
    """Run `work`, a call of `command`, while the loop of this thread waits; an interrupt of a cell stops it. Raises
    what it raises."""
    running, supervision = _start_call(work, command, attended=True)
    try:
        return running.result()
    except KeyboardInterrupt:
        supervision.stop()
        running.exception()  # what is done is on disk once it has ended
        raise


def _start_call(
    work: Callable[[], Any], command: Command[Any], *, attended: bool = False
) -> tuple[Future[Any], Supervision]:
    from newskills.run.engine.supervision import Supervision
    from newskills.run.engine.threads import ready_for_threads

    import_module(str(command.result).partition(":")[0])
    ready_for_threads()
    supervision = Supervision(attended=attended)

    def supervised() -> Any:
        with supervision.installed():
            return work()

    thread = ThreadPoolExecutor(1, "newskills-call")  # the loop's own threads are the caller's
    running = thread.submit(supervised)
    thread.shutdown(wait=False)
    return running, supervision
