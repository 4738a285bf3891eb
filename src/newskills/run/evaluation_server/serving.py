# SPDX-License-Identifier: Apache-2.0
"""A served evaluation server from its start to its end."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from newskills.base.http.hosts import own_names_only
from newskills.base.http.server import serve
from newskills.base.store import hold_lock
from newskills.run.engine.threads import ready_for_threads
from newskills.run.evaluation_server.jobs import LOCK_FILE, EvaluationJobs, JobLimits, Planner, last_sign
from newskills.run.evaluation_server.server import EvaluationServer

ALIVE_EVERY = 5.0
GRACE_SECONDS = 2.0
"""Seconds for clients to take their answers, once everything has ended."""


class EvaluationServerSettings(Struct, frozen=True, kw_only=True):
    """Where a server listens, who may use it (`token`; empty: everybody), and where its jobs lie."""

    host: str
    port: int
    root: Path
    token: str = ""


async def serve_until_stopped(
    planner: Planner, place: EvaluationServerSettings, limits: JobLimits, *, say: Callable[[str], None]
) -> str:
    """Serve until SIGINT or SIGTERM; then let requests in flight finish and save them; a second signal hurries. Return
    where it was.

    Raises ConfigError, LockedError where another server has the same root, StorageError, ServerStartError.
    """
    ready_for_threads()
    stopped = asyncio.Event()
    jobs = EvaluationJobs(planner, place.root, limits, say=say)

    def stop() -> None:
        if stopped.is_set():
            jobs.hurry()
        stopped.set()

    ended = last_sign(place.root)
    with hold_lock(place.root / LOCK_FILE, f"The output root {place.root}"):
        jobs.restore(ended)
        app = EvaluationServer(jobs, token=place.token)
        server = await serve(own_names_only(app.answer, place.host), place.host, place.port)
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop)
        say(f"Evaluation server at {server.url}, results in {place.root}; Ctrl-C stops it.")
        while not stopped.is_set():
            jobs.alive()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopped.wait(), ALIVE_EVERY)
        say("Stopping: requests in flight may finish, finished work is saved (again: stop now).")
        await jobs.close()
        await server.close(GRACE_SECONDS)
    return server.url
