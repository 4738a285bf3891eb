# SPDX-License-Identifier: Apache-2.0
"""The model behind a gateway: the endpoint of runs, which is made anew after an error that would end a run."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from newskills.base.aio import await_guarded
from newskills.base.callbacks import PrintLine
from newskills.base.errors import ContextLimitError, HttpError, NewskillsError
from newskills.base.protocols import Model, Tokenizer
from newskills.base.records import Reply, Request
from newskills.models import check_inference, make_model
from newskills.models.config import ServerConfig
from newskills.models.context import shorten_request
from newskills.run.engine.adapters import SystemMergingModel
from newskills.run.engine.asking.retries import RetryPolicy
from newskills.run.engine.endpoint import Endpoint

PATIENCE, FIRST_PATIENCE = 1800.0, 60.0


class LastingEndpoint:
    """A Model for programs that come and go: retries and waits as a run does, but nothing ends it.

    Where a run would stop (a refused key, a server that is gone for longer than the patience), the requests in work get
    the error, and the next one finds a new endpoint.
    """

    def __init__(
        self,
        server: ServerConfig,
        concurrency: int,
        environ: Mapping[str, str],
        *,
        say: PrintLine,
        patience: float | None = None,
        tokenizer: Tokenizer | None = None,
    ) -> None:
        self._server, self._concurrency, self._environ = server, concurrency, environ
        self._say, self._patience, self._tokenizer = say, patience, tokenizer
        self._plain = make_model(server, concurrency=1, environ=environ)
        self.name = self._plain.name
        self._endpoint: Endpoint | None = None
        self._broken: asyncio.Future[NewskillsError] | None = None
        self._closing: set[asyncio.Task[object]] = set()

    async def complete(self, request: Request) -> Reply:
        """Return the reply, after retries. Raises the HttpError family; ConfigError for a setting that the backend
        cannot honour."""
        check_inference(self._plain, request.inference, tools=bool(request.tools))
        endpoint, broken = self._running_endpoint()
        work = asyncio.ensure_future(endpoint.complete(request))
        try:
            futures: list[asyncio.Future[Any]] = [work, broken]
            await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not work.done():
                work.cancel()
        if broken.done() and not (work.done() and not work.cancelled() and work.exception() is None):
            with contextlib.suppress(asyncio.CancelledError, NewskillsError):
                await work
            raise broken.result()
        return await work

    async def close(self) -> None:
        """Close the connections; requests in work fail."""
        if self._endpoint is not None:
            await self._endpoint.close()
        for task in tuple(self._closing):
            await task
        await self._plain.close()

    def _running_endpoint(self) -> tuple[Endpoint, asyncio.Future[NewskillsError]]:
        if self._endpoint is None or self._broken is None or self._broken.done():
            broken = self._broken = asyncio.get_running_loop().create_future()

            def give_up(error: NewskillsError) -> None:
                if not broken.done():
                    self._say(str(error))
                    broken.set_result(error)
                    self._retire(endpoint)

            endpoint = self._endpoint = self._make(give_up)
        return self._endpoint, self._broken

    def _make(self, give_up: Callable[[NewskillsError], None]) -> Endpoint:
        model: Model = make_model(self._server, concurrency=self._concurrency, environ=self._environ)
        if self._server.merge_system:
            model = SystemMergingModel(model)
        policy = RetryPolicy(
            concurrency=self._concurrency,
            most=self._concurrency,
            max_retries=self._server.max_retries,
            patience=self._patience or PATIENCE,
            first_patience=self._patience or FIRST_PATIENCE,
            soft_fail=True,
            stops_if_refused=False,
        )
        return Endpoint(model, policy, say=self._say, on_fatal=give_up, context=self._fit)

    def _retire(self, endpoint: Endpoint) -> None:
        task: asyncio.Task[object] = asyncio.create_task(await_guarded(endpoint.close()))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _fit(self, request: Request, error: ContextLimitError) -> Request | None:
        """Return a request that asks for fewer tokens: programs ask for more than small contexts have."""
        strategy = self._server.context_limit_retry_strategy or "reduce_generation"
        try:
            return shorten_request(
                strategy, request, error, self._tokenizer, self._server.num_special_tokens_budget
            )
        except HttpError:
            return None
