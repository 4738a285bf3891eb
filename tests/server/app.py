# SPDX-License-Identifier: Apache-2.0
"""The server itself: connections, routes, faults and records, on one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec import Struct, field

from tests.server import http, wire
from tests.server.answers import (
    Body,
    Completion,
    Vocabulary,
    answer_text,
    complete,
    max_tokens_of,
    prompt_of,
    tokens_of,
)
from tests.server.script import Fault, Log, Record, Script

AnswerFunction = Callable[[Body], str]
_JSON = "application/json"


class Play(Struct):
    """A script under way: what its conditions count starts anew with each script."""

    script: Script
    requests: int = 0
    sightings: Counter[str] = field(default_factory=Counter)


class Connection(Struct):
    """One client connection and its number."""

    number: int
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class ModelCall(Struct):
    """A model request at work: what was asked, and which rules of the script hold for it."""

    endpoint: wire.Endpoint
    body: Body
    record: Record
    script: Script
    number: int
    sighting: int

    @property
    def faults(self) -> list[Fault]:
        facts = {"index": self.number, "sighting": self.sighting, "in_flight": self.record.in_flight}
        prompt, seed = self.record.prompt, self.script.seed
        return [fault for fault in self.script.faults if fault.holds(**facts, prompt=prompt, seed=seed)]


_ACCEPTING = 0.01


class Application:
    """All state lives on the event loop's thread, but for `play`, which may be replaced from any."""

    def __init__(self, script: Script, answer: AnswerFunction | None = None) -> None:
        self.play = Play(script)
        self.answer = answer
        self.log = Log()
        self.address = ("127.0.0.1", 0)
        self._vocabulary = Vocabulary()
        self._in_flight = 0
        self._indices = 0
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._rising: asyncio.Task[None] | None = None

    async def listen(self) -> None:
        """Accepts connections; after the first time on the same port again."""
        self._server = await asyncio.start_server(
            self._connection, *self.address, limit=http.MAX_HEAD, backlog=4096
        )
        self.address = self._server.sockets[0].getsockname()[:2]

    async def close(self) -> None:
        """Stops listening and resets all connections."""
        server, self._server = self._server, None
        if server is not None:
            for listening in server.sockets:
                asyncio.get_running_loop().remove_reader(listening.fileno())
            # A server that is closed loses what it has accepted and not yet made a connection of, without closing it.
            await asyncio.sleep(_ACCEPTING)
            server.close()
        for writer in list(self._writers):
            http.reset(writer)

    async def down(self, seconds: float) -> None:
        """Refuses connections for that long, then listens again. Returns once it refuses them."""
        await self.close()
        self._rising = asyncio.create_task(self._rise(seconds))

    async def _rise(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self.listen()

    async def _control_down(self, seconds: float) -> None:
        await asyncio.sleep(0.05)  # so that the reply to whoever asked for it still gets out
        await self.down(seconds)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.log.connections += 1
        connection = Connection(self.log.connections, reader, writer)
        self._writers.add(writer)
        try:
            while (request := await http.read_request(reader)) is not None:
                if not await self._request(request, connection) or not request.keep_alive:
                    break
        except (ConnectionError, asyncio.CancelledError):
            # The client has left, or the server is closing: nobody is there to be told.
            pass
        finally:
            self._writers.discard(writer)
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _request(self, request: http.HttpRequest, connection: Connection) -> bool:
        """Answers one request; False when the connection must not be used any more."""
        path = request.path.split("?")[0]
        if path.startswith("/_control/"):
            await self._reply(connection, 200, self._control(path.removeprefix("/_control/"), request.body))
            return True
        record = self._record(request, connection)
        endpoint = wire.endpoint_of(path)
        if endpoint is None or request.method != "POST":
            status, body = self._other_route(path, record)
            record.outcome, record.ended = str(status), time.monotonic()
            await self._reply(connection, status, body)
            return True
        self._in_flight += 1
        self._indices += 1
        record.index, record.in_flight = self._indices, self._in_flight
        self.log.max_in_flight = max(self.log.max_in_flight, self._in_flight)
        try:
            return await self._model_call(endpoint, record, connection)
        except (ConnectionError, asyncio.CancelledError):
            record.outcome = record.outcome or "client left"
            raise
        finally:
            self._in_flight -= 1
            record.ended = time.monotonic()

    def _record(self, request: http.HttpRequest, connection: Connection) -> Record:
        try:
            body = msgspec.json.decode(request.body) if request.body else None
        except msgspec.DecodeError:
            body = request.body.decode(errors="replace")
        record = Record(
            index=0,
            method=request.method,
            path=request.path,
            headers=request.headers,
            body=body,
            prompt=prompt_of(body, self._vocabulary) if isinstance(body, dict) else "",
            started=time.monotonic(),
            connection=connection.number,
        )
        self.log.records.append(record)
        return record

    def _control(self, what: str, body: bytes) -> Any:
        if what == "script" and body:
            self.play = Play(msgspec.json.decode(body, type=Script))
        elif what == "down":
            self._rising = asyncio.create_task(self._control_down(float(msgspec.json.decode(body)["seconds"])))
        elif what == "log":
            return self.log
        return self.play.script

    def _other_route(self, path: str, record: Record) -> tuple[int, Any]:
        script, route, body = self.play.script, path.rstrip("/").rsplit("/", 1)[-1], record.body
        if route == "health":
            return (200, {"status": "ok"}) if script.healthy else (503, wire.error(503, "Loading model"))
        if not _key_fits(script, record):
            return 401, wire.error(401, "Incorrect API key provided.", code="invalid_api_key")
        if route == "models":
            shown = [{"id": name, "object": "model", "owned_by": "fake"} for name in script.models]
            return 200, {"object": "list", "data": shown}
        if route == "tokenize" and isinstance(body, dict):
            ids = self._vocabulary.encode(record.prompt)
            return 200, {"tokens": ids, "count": len(ids), "max_model_len": script.context_tokens or 1 << 20}
        if route == "detokenize" and isinstance(body, dict):
            text = self._vocabulary.decode(body["tokens"])
            return 200, {"prompt": text, "content": text}
        if route in wire.REWARD_ROUTES and isinstance(body, dict):
            return 200, wire.reward(route, script, body)
        return 404, wire.error(404, f"No route {path}")

    async def _model_call(self, endpoint: wire.Endpoint, record: Record, connection: Connection) -> bool:
        if not isinstance(record.body, dict):
            return await self._refuse(connection, record, 400, wire.error(400, "The body is not a JSON object."))
        play = self.play
        play.requests += 1
        play.sightings[record.prompt] += 1
        sighting = play.sightings[record.prompt]
        call = ModelCall(endpoint, record.body, record, play.script, play.requests, sighting)
        holding = call.faults
        delay = play.script.latency.draw(play.script.seed, call.number)
        delay += sum(fault.seconds for fault in holding if fault.kind == "delay")
        if delay:
            await asyncio.sleep(delay)
        if (refusal := _refusal(call)) is not None:
            return await self._refuse(connection, record, *refusal)
        drip = next((fault.seconds for fault in holding if fault.kind == "drip"), None)
        ending = next((fault for fault in holding if fault.kind not in ("drip", "delay")), None)
        if ending is None:
            record.outcome = "200"
            await http.send(connection.writer, self._payload(call, whole=drip is None), pause=drip)
            return True
        record.outcome = "context_limit" if ending.kind == "context_limit" else ending.kind
        return await self._misbehave(ending, call, connection)

    async def _misbehave(self, fault: Fault, call: ModelCall, connection: Connection) -> bool:
        match fault.kind:
            case "status":
                call.record.outcome = str(fault.status)
                text = fault.body if fault.body is not None else _fault_body(fault)
                headers = [("Content-Type", fault.content_type)]
                if fault.retry_after is not None:
                    headers.append(("Retry-After", http.retry_after(fault.retry_after, as_date=fault.http_date)))
                await http.send(connection.writer, _framed(fault.status, text.encode(), headers))
            case "context_limit":
                limit, asked = call.script.context_tokens or 8, max_tokens_of(call.body) or 16
                prompt = max(limit + 1, len(self._vocabulary.encode(call.record.prompt)))
                await self._reply(connection, 400, wire.context_error(fault.context_shape, limit, prompt, asked))
            case "malformed":
                await http.send(connection.writer, _framed(200, b'{"id": "fake-1", "choices": [{"mess'))
            case "empty_choices" | "no_content":
                await self._reply(connection, 200, _hollow(fault, call, self._choices(call)))
            case _:
                return await self._break(fault, call, connection)
        return True

    async def _break(self, fault: Fault, call: ModelCall, connection: Connection) -> bool:
        """The faults after which the connection is gone."""
        if fault.kind == "hang":
            with contextlib.suppress(TimeoutError):
                # A client that sends nothing more can only end this read by leaving.
                await asyncio.wait_for(connection.reader.read(1), fault.seconds or None)
        if fault.kind in ("reset_mid_body", "truncate"):
            payload = b"".join(self._payload(call, whole=True))
            start = payload.index(b"\r\n\r\n") + 4
            await http.send(connection.writer, [payload[: (start + len(payload)) // 2]])
            # Lets the client see the first half before the reset overtakes it.
            await asyncio.sleep(0.02)
        if fault.kind == "down":
            await self.down(fault.seconds)
        elif fault.kind != "truncate":
            http.reset(connection.writer)
        return False

    def _choices(self, call: ModelCall) -> list[Completion]:
        count, prompt = int(call.body.get("n") or 1), call.record.prompt
        if self.answer is not None:
            texts = [self.answer(call.body) for _ in range(count)]
        else:
            texts = [answer_text(call.script.answer, call.body, prompt, call.sighting, i) for i in range(count)]
        return [complete(call.script, call.body, text, prompt) for text in texts]

    def _payload(self, call: ModelCall, *, whole: bool) -> Iterable[bytes]:
        """The right reply in pieces: events of a stream; else all at once, or byte by byte."""
        choices = self._choices(call)
        if call.body.get("stream"):
            headers = [("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked")]
            events = wire.stream(call.endpoint, call.script, call.body, choices)
            return [http.head(200, headers), *http.chunked(events)]
        pieces = _framed(200, msgspec.json.encode(wire.reply(call.endpoint, call.script, call.body, choices)))
        if whole:
            return [b"".join(pieces)]
        return (bytes([byte]) for piece in pieces for byte in piece)

    async def _refuse(self, connection: Connection, record: Record, status: int, body: Body) -> bool:
        record.outcome = str(status)
        await self._reply(connection, status, body)
        return True

    async def _reply(self, connection: Connection, status: int, body: Any) -> None:
        await http.send(connection.writer, _framed(status, msgspec.json.encode(body)))


def _framed(
    status: int, body: bytes, headers: Iterable[tuple[str, str]] = (("Content-Type", _JSON),)
) -> list[bytes]:
    return [http.head(status, [*headers, ("Content-Length", str(len(body)))]), body]


def _key_fits(script: Script, record: Record) -> bool:
    sent = record.headers.get("authorization", "").removeprefix("Bearer "), record.headers.get("api-key")
    return not script.api_key or script.api_key in sent


def _refusal(call: ModelCall) -> tuple[int, Body] | None:
    """What a server that is in order would refuse."""
    script, asked = call.script, max_tokens_of(call.body)
    if not _key_fits(script, call.record):
        return 401, wire.error(401, "Incorrect API key provided.", code="invalid_api_key")
    name = call.body.get("model")
    if script.strict_model and name not in script.models:
        return 404, wire.error(404, f"The model `{name}` does not exist.", code="model_not_found")
    if call.body.get("echo") and script.echo == "refused":
        return 400, wire.error(400, "Only no echo is supported")
    prompt = len(tokens_of(call.record.prompt))
    if script.context_tokens and prompt + (asked or 1) > script.context_tokens:
        return 400, wire.context_error(script.context_shape, script.context_tokens, prompt, asked or 1)
    return None


def _fault_body(fault: Fault) -> str:
    text = fault.message or f"scripted error {fault.status}"
    return msgspec.json.encode(wire.error(fault.status, text, code=fault.code or None)).decode()


def _hollow(fault: Fault, call: ModelCall, choices: list[Completion]) -> Body:
    body = wire.reply(call.endpoint, call.script, call.body, choices)
    if call.endpoint == "responses":
        return {**body, "output": []}
    if fault.kind == "empty_choices":
        return {**body, "choices": []}
    for choice in body["choices"]:
        if call.endpoint == "chat":
            choice["message"]["content"] = None
        else:
            choice["text"] = None
    return body
