# SPDX-License-Identifier: Apache-2.0
"""A gateway in a thread, before a model that answers by a list of replies and keeps what it was asked."""

from __future__ import annotations

import asyncio
import copy
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from newskills.base.errors import NewskillsError
from newskills.base.records import Inference, Reply, Request, TokenPrices
from newskills.gateway.routes import NamedTasks
from newskills.gateway.server import Count, Gateway, Recorder
from newskills.gateway.tasks import Backend, GatewayTask, TaskLimits

T = TypeVar("T")
LEFT = frozenset({"top_k"})
"""The program decides all that it may."""
NO_LIMITS, NO_PRICES, CHAT = TaskLimits(), TokenPrices(), Backend()
UNSET = Inference(temperature=None, top_p=None, random_seed=None)


class ScriptedModel:
    """Answers with the next of `replies`, the last one again and again; an error is raised. Keeps what it was asked."""

    name = "scripted"

    def __init__(self, *replies: Reply | NewskillsError, delay: float = 0.0) -> None:
        self.replies, self.delay = list(replies), delay
        self.requests: list[Request] = []

    async def complete(self, request: Request) -> Reply:
        self.requests.append(request)
        reply = self.replies[min(len(self.requests), len(self.replies)) - 1]
        await asyncio.sleep(self.delay)
        if isinstance(reply, Exception):
            raise reply
        return copy.deepcopy(reply)

    async def close(self) -> None:
        pass


class RunningGateway:
    """`url` without a version; `tasks` by name."""

    def __init__(self, gateway: Gateway, tasks: NamedTasks, loop: asyncio.AbstractEventLoop) -> None:
        self.gateway, self.tasks, self.loop = gateway, tasks, loop
        self.url = ""

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)


@contextmanager
def running(
    model: Any,
    *,
    token: str = "",
    limits: TaskLimits = NO_LIMITS,
    prices: TokenPrices = NO_PRICES,
    backend: Backend = CHAT,
    recorder: Recorder | None = None,
    count: Count | None = None,
    socket: Path | None = None,
    request: Request | None = None,
    forced: frozenset[str] = LEFT,
) -> Iterator[RunningGateway]:
    """Yield a gateway at work in a thread of its own."""

    def make(name: str) -> GatewayTask:
        return GatewayTask(
            model=model,
            request=request or Request(inference=UNSET),
            name=name,
            forced=forced,
            limits=limits,
            prices=prices,
            backend=backend,
        )

    tasks = NamedTasks(token, make)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    served = RunningGateway(Gateway(tasks, recorder=recorder, count=count), tasks, loop)
    try:
        served.url = served.call(served.gateway.listen(socket=socket)).url
        yield served
    finally:
        served.call(served.gateway.close())
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
        loop.close()


def call(identity: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


Replies = Sequence[Reply]
Ask = Callable[[str], Any]
