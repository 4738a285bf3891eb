# SPDX-License-Identifier: Apache-2.0
"""A chat endpoint on loopback for programs that bring their own client: what they ask goes to the run's model.

So the run's concurrency, retries, sampling parameters and token counts hold for them as well. The address holds a
secret; a request says by the header `X-Session-ID` for which sample it is.
Shapes: https://platform.openai.com/docs/api-reference/chat
"""

from __future__ import annotations

import secrets
import time
from typing import Any

import msgspec
from msgspec import Struct

from newskills.base.errors import HttpError, NewskillsError
from newskills.base.http.messages import HttpRequest, Response, json_response, not_found, wrong_method
from newskills.base.http.server import Server, ServerLimits, serve
from newskills.base.protocols import Model
from newskills.base.records import Message, Reply, Request, Row
from newskills.solve.chat import ask

PATH = "/chat/completions"
HEADER = "x-session-id"
LIMITS = ServerLimits(body=100_000_000, receive=3600.0)


class ChatSession(Struct, kw_only=True, eq=False):
    """What one sample asked. `request` holds the sampling parameters; `failure`: of the last request, if it failed;
    `tools`: those that it named last."""

    model: Model
    request: Request
    replies: list[Reply] = []
    failure: NewskillsError | None = None
    tools: list[Row] | None = None


class ChatEndpoint:
    """Listens while it is entered."""

    def __init__(self) -> None:
        self._server: Server | None = None
        self._secret = secrets.token_urlsafe(16)
        self._sessions: dict[str, ChatSession] = {}

    async def __aenter__(self) -> ChatEndpoint:
        """Begin to listen. Raises ServerStartError."""
        self._server = await serve(self._answer, limits=LIMITS)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        await self._server.close(grace=0.0)

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"{self._server.url}/{self._secret}/v1"

    def begin(self, identity: str, session: ChatSession) -> None:
        """Assign requests with this identity to `session`."""
        self._sessions[identity] = session

    def end(self, session: ChatSession) -> None:
        for identity in [identity for identity, other in self._sessions.items() if other is session]:
            del self._sessions[identity]

    async def _answer(self, http_request: HttpRequest) -> Response:
        session = self._sessions.get(http_request.headers.get(HEADER, ""))
        if session is None or http_request.path != f"/{self._secret}/v1{PATH}":
            return not_found(http_request)
        if (refusal := wrong_method(http_request, "POST")) is not None:
            return refusal
        try:
            request = _request(msgspec.json.decode(http_request.body), session.request)
        except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
            return _refused(400, f"The request is not one of chat completions: {error}.")
        session.tools = request.tools
        try:
            reply = await ask(session.model, request)
        except NewskillsError as error:
            session.failure = error
            status = error.status if isinstance(error, HttpError) and error.status else 502
            return _refused(status, str(error))
        session.failure = None
        session.replies.append(reply)
        return json_response(_completion(reply, session.model.name, len(session.replies)))


class _RequestBody(Struct):
    """Of the body: what the program decides. Sampling parameters are the run's."""

    messages: list[Message]
    tools: list[Row] | None = None
    stop: str | list[str] | None = None
    response_format: Row | None = None
    tool_choice: Any = None


def _request(body: Any, run: Request) -> Request:
    """Return the request of `body` with the parameters of `run`. Raises ValidationError."""
    body_read = msgspec.convert(body, _RequestBody)
    stop = [body_read.stop] if isinstance(body_read.stop, str) else list(body_read.stop or ())
    choice = {} if body_read.tool_choice in (None, "auto") else {"tool_choice": body_read.tool_choice}
    return msgspec.structs.replace(
        run,
        messages=body_read.messages,
        tools=body_read.tools or None,
        stop=[*run.stop, *stop],
        response_format=body_read.response_format or run.response_format,
        extra_body={**run.extra_body, **choice},
    )


def _completion(reply: Reply, model: str, number: int) -> Row:
    message: Row = {"role": "assistant", "content": reply.text}
    if reply.tool_calls:
        message["tool_calls"] = reply.tool_calls
    if reply.reasoning is not None:
        message["reasoning_content"] = reply.reasoning
    read, written = reply.usage.input_tokens or 0, reply.usage.output_tokens or 0
    finish = reply.finish_reason or ("tool_calls" if reply.tool_calls else "stop")
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written},
    }


def _refused(status: int, sentence: str) -> Response:
    error = {"message": sentence.encode("utf-8", "replace").decode(), "type": "invalid_request_error"}
    return json_response({"error": error}, status)
