# SPDX-License-Identifier: Apache-2.0
"""The gateway: a request of a program, in whichever protocol, becomes one of the run's model, and its reply goes back.

The run's model retries, keeps to its concurrency and waits out failures; a program that streams gets signs of life
meanwhile. Where its task is live, it gets the reply while the model writes it; a reply that has begun is not asked for
again.
"""

from __future__ import annotations

import asyncio
import secrets
import time
import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol

import msgspec

from newskills.base.aio import await_guarded
from newskills.base.callbacks import REPLY_LISTENER
from newskills.base.errors import (
    AuthError,
    BadRequestError,
    ContentFilterError,
    ContextLimitError,
    HttpError,
    NewskillsError,
    RateLimitError,
    UserError,
)
from newskills.base.http.access import BROWSER_HEADERS
from newskills.base.http.hosts import own_names_only
from newskills.base.http.messages import ChunkedResponse, HttpRequest, Response, error_response, wrong_method
from newskills.base.http.server import Server, ServerLimits, serve, serve_at
from newskills.base.records import Reply, Request, Row
from newskills.gateway.form import (
    GatewayProblem,
    ProgramProtocol,
    ProgramRequest,
    ReplyHead,
    Served,
    bad_request,
    encode_json,
)
from newskills.gateway.routes import Route, SecretTasks, model_list, route_of
from newskills.gateway.streams import LiveReply
from newskills.gateway.tasks import GatewayTask

LARGEST = 100_000_000
LIMITS = ServerLimits(body=LARGEST, receive=3600.0)
SILENCE = 10.0
"""Seconds without a byte after which a program that streams gets a sign of life."""
BYTES_PER_TOKEN = 4
"""By which tokens are estimated where the backend has no tokenizer."""
EVENTS = "text/event-stream"
BROKEN_OFF = " The reply had begun, so it was not asked for again."
DIFFERS = "the program got a reply in parts that differ from the recorded whole"
"""Note in the record; servers should not tell two things."""

Count = Callable[[Request], Awaitable[int]]
"""Counts the tokens of a request."""


class Tasks(Protocol):
    """Knows which task a request belongs to."""

    def task(self, request: HttpRequest, route: Route) -> GatewayTask:
        """Return the task. Raises GatewayProblem for a request that may not ask."""
        ...


class Recorder(Protocol):
    """Keeps what was asked and answered."""

    def record(self, exchange: GatewayExchange) -> None: ...


class GatewayExchange(msgspec.Struct, frozen=True, kw_only=True):
    """A request of a task with its reply or its problem; times in seconds since 1970."""

    task: GatewayTask
    number: int
    protocol: str
    program: ProgramRequest
    request: Request
    reply: Reply | None
    problem: GatewayProblem | None
    began: float
    ended: float


class Gateway:
    """Answers requests of programs. Its address is `url` and, where it has one, `socket`."""

    def __init__(self, tasks: Tasks, *, recorder: Recorder | None = None, count: Count | None = None) -> None:
        self._tasks, self._recorder, self._count = tasks, recorder, count
        self._servers: list[Server] = []
        self.requests = 0
        self.failures = 0

    async def listen(self, host: str = "127.0.0.1", port: int = 0, socket: Path | None = None) -> Server:
        """Listen, at `socket` as well where it is not None. Raises ConfigError, ServerStartError."""
        server = await serve(own_names_only(self.answer, host), host, port, limits=LIMITS)
        self._servers.append(server)
        if socket is not None:
            self._servers.append(await serve_at(self.answer, socket, limits=LIMITS))
        return server

    async def close(self, grace: float = 0.0) -> None:
        """Listen no more; requests in work have `grace` seconds."""
        for server in self._servers:
            if isinstance(server.host, str) and server.host.startswith("/"):
                Path(server.host).unlink(missing_ok=True)
            await server.close(grace=grace)

    async def answer(self, request: HttpRequest) -> Response | ChunkedResponse:
        """Answer one request; whatever is wrong with it is an error in the words of its protocol."""
        route = route_of(request)
        if route is None:
            if request.path in ("", "/"):
                return wrong_method(request, "GET") or _json_reply(
                    {"newskills": "gateway", "requests": self.requests}
                )
            return error_response(404, f"This gateway has nothing at {request.path[:200]}.")
        if any(name in request.headers for name in BROWSER_HEADERS):
            return error_response(403, "Web pages may not use the gateway.")
        try:
            task = self._tasks.task(request, route)
            if route.operation == "models":
                return wrong_method(request, "GET") or _json_reply(model_list(route.protocol, task.model.name))
            if (wrong := wrong_method(request, "POST")) is not None:
                return wrong
            program = _read_program(request, route, task)
            if route.operation == "count":
                return await self._count_request(route.protocol, task, program)
            task.admit()
            self.requests += 1
        except GatewayProblem as problem:
            return _problem_response(route.protocol, problem)
        return await self._reply_to(route.protocol, task, program)

    async def _count_request(
        self, protocol: ProgramProtocol, task: GatewayTask, program: ProgramRequest
    ) -> Response:
        request = task.to_send(program)
        counted = None
        if self._count is not None:
            counted = await await_guarded(self._count(request))
        if isinstance(counted, int):
            return _json_reply(protocol.count(counted))
        size = len(encode_json([request.messages, request.tools]))
        body = encode_json(protocol.count(max(1, size // BYTES_PER_TOKEN)))
        return Response(200, body, headers=(("x-newskills-tokens", "estimated"),))

    async def _reply_to(
        self, protocol: ProgramProtocol, task: GatewayTask, program: ProgramRequest
    ) -> Response | ChunkedResponse:
        head = ReplyHead(request=program, task=task.name, number=task.requests, created=int(time.time()))
        live = LiveReply(protocol.stream(head))
        work = asyncio.create_task(self._ask_model(protocol, task, head, live))
        work.add_done_callback(lambda _: live.wake())
        try:
            if program.stream:
                await live.wait(SILENCE)
                if not work.done():
                    return ChunkedResponse(_reply_events(protocol, live, work), content_type=EVENTS)
            outcome = await work
        except asyncio.CancelledError:
            work.cancel()
            raise
        if isinstance(outcome, GatewayProblem):
            return _problem_response(protocol, outcome)
        if program.stream:
            return Response(200, live.events(), EVENTS, (("Cache-Control", "no-cache"),))
        return _json_reply(protocol.answer(outcome))

    async def _ask_model(
        self, protocol: ProgramProtocol, task: GatewayTask, head: ReplyHead, live: LiveReply
    ) -> Served | GatewayProblem:
        """Ask the model; record and return what came of it. A program that streams gets parts meanwhile, and the rest
        once the reply is recorded."""
        began, program = time.time(), head.request
        request = task.to_send(program)
        if program.stream and task.live:
            REPLY_LISTENER.set(live)
        reply: Reply | None = None
        problem: GatewayProblem | None = None
        try:
            async with asyncio.timeout(task.seconds_left):
                reply = await task.model.complete(request)
            reply.started, reply.ended = reply.started or began, reply.ended or time.time()
            task.book(reply)
        except TimeoutError:
            problem = bad_request(
                f"This task has used up its limit of {task.limits.seconds:g} seconds.", "task_limit"
            )
        except ContentFilterError as error:
            reply = Reply(text="", finish_reason="content_filter")
            task.failure = error
        except NewskillsError as error:
            task.failure, problem = error, problem_of(error)
            if live.begun:
                problem.message += BROKEN_OFF
        except asyncio.CancelledError:
            problem = GatewayProblem("server", "The program did not wait for the reply.", status=499)
            raise
        finally:
            self.failures += problem is not None
            if reply is not None and program.stream and not live.end(reply):
                program.note(DIFFERS)
            if self._recorder is not None:
                self._recorder.record(
                    GatewayExchange(
                        task=task,
                        number=head.number,
                        protocol=protocol.name,
                        program=program,
                        request=request,
                        reply=reply,
                        problem=problem,
                        began=began,
                        ended=time.time(),
                    )
                )
        if problem is not None:
            live.fail(problem)
            return problem
        assert reply is not None
        return Served(request=program, reply=reply, task=task.name, number=head.number, created=head.created)


async def _reply_events(
    protocol: ProgramProtocol, live: LiveReply, work: asyncio.Task[Served | GatewayProblem]
) -> AsyncGenerator[bytes, None]:
    """Yield the events of a reply as they come, and signs of life where none do."""
    try:
        if not live.begun:
            yield protocol.ping
        while not work.done():
            if await live.wait(SILENCE):
                yield live.events()
            else:
                yield protocol.ping
        work.result()
        yield live.events()
    finally:
        work.cancel()


def problem_of(error: NewskillsError) -> GatewayProblem:
    """Return what a program is told of a failed request. What only the gateway's owner can change is final."""
    status = error.status if isinstance(error, HttpError) else None
    if isinstance(error, ContextLimitError):
        return GatewayProblem("context", str(error), status=400, final=True)
    if isinstance(error, RateLimitError):
        return GatewayProblem("rate", str(error), status=429, retry_after=error.retry_after)
    if isinstance(error, AuthError):
        return GatewayProblem("server", f"The gateway cannot use its model: {error}", status=502, final=True)
    if isinstance(error, BadRequestError):
        if status not in (400, 413, 422):
            status = 400
        return GatewayProblem("request", str(error), status=status, final=True)
    if isinstance(error, UserError):  # a setting of the program's that the backend cannot honour
        return GatewayProblem("request", str(error), status=400, final=True)
    if status in (503, 529):
        return GatewayProblem("overloaded", str(error), status=status)
    if not error.retryable:
        return GatewayProblem("server", str(error), status=502, final=True)
    if status is None or status < 500:
        status = 502
    return GatewayProblem("server", str(error), status=status)


def _read_program(request: HttpRequest, route: Route, task: GatewayTask) -> ProgramRequest:
    """Read a request; the task remembers why one cannot be read. Raises GatewayProblem."""
    try:
        program = route.protocol.read(_request_body(request), route.model, route.stream)
    except GatewayProblem as problem:
        task.refusal = problem.message
        raise
    task.refusal = ""
    return program


def _problem_response(protocol: ProgramProtocol, problem: GatewayProblem) -> Response:
    headers: list[tuple[str, str]] = []
    if problem.retry_after is not None:
        headers.append(("Retry-After", str(max(1, round(problem.retry_after)))))
    if problem.final:
        headers.append(("x-should-retry", "false"))
    return Response(problem.status, encode_json(protocol.error(problem)), headers=headers)


def _json_reply(value: Any) -> Response:
    return Response(200, encode_json(value))


def _request_body(request: HttpRequest) -> Row:
    """Return the body as an object. Raises GatewayProblem."""
    packed = request.headers.get("content-encoding", "identity").lower()
    data = request.body
    if packed in ("gzip", "deflate"):
        unpacker = zlib.decompressobj(zlib.MAX_WBITS | 32)
        try:
            data = unpacker.decompress(data, LARGEST)
        except zlib.error as error:
            raise bad_request(f"The body is not {packed}: {error}.") from error
        if unpacker.unconsumed_tail:
            raise GatewayProblem("too_large", f"A body has {LARGEST:,} bytes at most.", status=413, final=True)
    elif packed != "identity":
        raise GatewayProblem(
            "request", f"Bodies packed by {packed[:50]} are not supported.", status=415, final=True
        )
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise bad_request(f"The body is not JSON: {error}.") from error
    if not isinstance(value, dict):
        raise bad_request("The body is not a JSON object.")
    return value


class RunGateway:
    """The gateway of a run's own programs, while it is entered; tasks are opened by token."""

    def __init__(self, *, socket: Path | None = None, recorder: Recorder | None = None) -> None:
        self._secret = secrets.token_urlsafe(16)
        self._tasks = SecretTasks(self._secret)
        self._gateway = Gateway(self._tasks, recorder=recorder)
        self._socket = socket
        self._server: Server | None = None

    async def __aenter__(self) -> RunGateway:
        """Begin to listen. Raises ServerStartError."""
        self._server = await self._gateway.listen(socket=self._socket)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._gateway.close()

    @property
    def path(self) -> str:
        """Path of the chat API for programs that name their task by the header X-Session-ID."""
        return f"{self._secret}/v1"

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"{self._server.url}/{self.path}"

    def begin(self, token: str, task: GatewayTask) -> None:
        """Open `task` to those who have the token."""
        self._tasks.add(token, task)

    def end(self, task: GatewayTask) -> None:
        self._tasks.remove(task)
