# SPDX-License-Identifier: Apache-2.0
"""A gateway from its start to its end: what it serves, and the records that it leaves."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from newskills.base.callbacks import PrintLine
from newskills.base.http.stopping import close_unless_hurried, stop_signals
from newskills.base.protocols import Tokenizer
from newskills.base.records import Request
from newskills.base.store import hold_lock, write_rows
from newskills.gateway.recording import LogRecorder
from newskills.gateway.routes import NamedTasks
from newskills.gateway.segments import conversation_rows
from newskills.gateway.server import Count, Gateway
from newskills.gateway.tasks import GatewayTask
from newskills.run.engine.threads import ready_for_threads
from newskills.run.gateway_server.model import LastingEndpoint

OUTPUT_FILE = "output.jsonl"
GRACE_SECONDS = 30.0
WRITE_EVERY = 2.0
"""Seconds between two writings of the conversations, where they have changed."""
WRITING_SHARE = 20
"""Writing takes one part in so many of the time, however long the conversations are."""


class GatewaySettings(Struct, frozen=True, kw_only=True):
    """Where a gateway listens, who may use it (`token`; empty: everybody), and where its records lie."""

    host: str
    port: int
    folder: Path
    socket: Path | None = None
    token: str = ""


async def serve_gateway(
    model: LastingEndpoint,
    make_task: Callable[[str], GatewayTask],
    settings: GatewaySettings,
    *,
    say: PrintLine,
    tokenizer: Tokenizer | None = None,
) -> str:
    """Serve until SIGINT or SIGTERM; then requests in work may finish, for 30 s, and a second signal ends them. Return
    where it was.

    Raises ConfigError, DataError, LockedError where another gateway has the folder, StorageError, ServerStartError.
    """
    ready_for_threads()
    stop, hurry = stop_signals()
    with hold_lock(settings.folder / ".gateway.lock", f"The folder {settings.folder}"):
        changed = asyncio.Event()
        recorder = LogRecorder(settings.folder, changed=lambda _: changed.set())

        def task_of(name: str) -> GatewayTask:
            task = make_task(name)
            recorder.resume(task)
            return task

        gateway = Gateway(NamedTasks(settings.token, task_of), recorder=recorder, count=_token_counter(tokenizer))
        try:
            server = await gateway.listen(settings.host, settings.port, settings.socket)
            _show_address(server.url, settings, model.name, say)
            writing = asyncio.create_task(_keep_written(recorder, settings.folder / OUTPUT_FILE, changed))
            await stop.wait()
            say("Stopping: requests in progress may finish (again: stop now).")
            await close_unless_hurried(gateway.close, GRACE_SECONDS, hurry)
            writing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await writing
            count = write_rows(settings.folder / OUTPUT_FILE, conversation_rows(recorder.log))
            say(f"Stopped after {gateway.requests:,} requests; {count:,} conversations in {settings.folder}.")
        finally:
            await model.close()
            recorder.close()
    return server.url


def _show_address(url: str, settings: GatewaySettings, model: str, say: PrintLine) -> None:
    """Say how programs reach the gateway."""
    say(f"Gateway at {url} before the model {model}, records in {settings.folder}; Ctrl-C stops it.")
    if settings.socket is not None:
        say(f"Also at the unix socket {settings.socket}.")
    key = "the gateway's token" if settings.token else "any"
    say(f"Tasks: {url}/NAME instead of {url}. Key: {key}. For the task 'demo':")
    say(f"  OpenAI     OPENAI_BASE_URL={url}/demo/v1")
    say(f"  Anthropic  ANTHROPIC_BASE_URL={url}/demo")
    say(f"  Gemini     GOOGLE_GEMINI_BASE_URL={url}/demo")


async def _keep_written(recorder: LogRecorder, path: Path, changed: asyncio.Event) -> None:
    """Write the conversations whenever they have changed, so that `ns view` shows them while they grow."""
    while True:
        await changed.wait()
        changed.clear()
        began = time.monotonic()
        log = recorder.log.snapshot()
        await asyncio.to_thread(write_rows, path, conversation_rows(log))
        await asyncio.sleep(max(WRITE_EVERY, WRITING_SHARE * (time.monotonic() - began)))


def _token_counter(tokenizer: Tokenizer | None) -> Count | None:
    """Return what counts the tokens of a request by the model's chat template; None where there is no tokenizer."""
    if tokenizer is None:
        return None

    async def count(request: Request) -> int:
        options = {"tools": request.tools} if request.tools else {}
        text = await asyncio.to_thread(lambda: tokenizer.render(request.messages or [], **options))
        return len(await asyncio.to_thread(tokenizer.encode, text))

    return count
