# SPDX-License-Identifier: Apache-2.0
"""The end of a server: a first signal lets requests in work finish, a second one ends them."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable


def stop_signals() -> tuple[asyncio.Event, asyncio.Event]:
    """Return two events: SIGINT or SIGTERM sets the first, another of them the second."""
    stop, hurry = asyncio.Event(), asyncio.Event()

    def request_stop() -> None:
        if stop.is_set():
            hurry.set()
        else:
            stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, request_stop)
    return stop, hurry


async def close_unless_hurried(
    close: Callable[[float], Awaitable[None]], grace: float, hurry: asyncio.Event
) -> None:
    """Close a server, whose requests in work have `grace` seconds; none once `hurry` is set."""
    closing, hurried = asyncio.ensure_future(close(grace)), asyncio.ensure_future(hurry.wait())
    await asyncio.wait({closing, hurried}, return_when=asyncio.FIRST_COMPLETED)
    hurried.cancel()
    if not closing.done():
        closing.cancel()
        await close(0)
