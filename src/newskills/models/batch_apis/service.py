# SPDX-License-Identifier: Apache-2.0
"""What a provider's batches have in common, and what is shared by those over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from newskills.base.errors import HttpError, RedirectError, ServerError
from newskills.base.http.client import JSON_TYPE, HeaderList, HttpClient
from newskills.base.http.connection import HttpResponse
from newskills.base.records import Reply, Request
from newskills.models.errors import error_from, redirect_error
from newskills.models.wire import HttpModel, encode_body

CALL_SECONDS, FILE_SECONDS = 60.0, 1800.0
"""Timeouts of a call, and of a file that is sent or received."""
CLOCKS_DIFFER = 300.0
"""Seconds by which the provider's clock may be behind or ahead."""


class UnansweredError(ServerError):
    """A request that its batch, which ended in `state`, has left without an answer; another batch asks it again."""

    def __init__(self, state: str) -> None:
        super().__init__(f"The batch left this request without an answer (state: {state}).")
        self.state = state


class BatchLook(Struct, frozen=True, kw_only=True):
    """What a provider says of a batch.

    state       in its own words
    done        requests that are answered, as far as it tells
    files       what `download` reads, once it has `ended`
    refusal     why it took none of the requests
    full        it is refused only for now, because too much waits already
    bad_rows    number of a request, from 0 → why it is refused, and the others with it
    """

    state: str
    ended: bool = False
    done: int = 0
    files: tuple[str, ...] = ()
    refusal: str = ""
    full: bool = False
    bad_rows: Mapping[int, str] = {}


class RowResult(Struct, kw_only=True):
    """What came of one request: a body as its own endpoint would have sent it, or an error."""

    key: str
    body: bytes = b""
    error: HttpError | None = None


class BatchService(Protocol):
    """Batches of one model, `name`, at `address`. Raises the HttpError family; retries belong to the caller."""

    @property
    def name(self) -> str: ...

    @property
    def address(self) -> str: ...

    def encoded(self, key: str, request: Request) -> tuple[str, bytes]:
        """Return (endpoint, line of the file). Requests of a batch have one endpoint. Raises ConfigError."""
        ...

    def decoded(self, request: Request, body: bytes) -> Reply:
        """Return the reply that the body of a result holds. Raises ModelError."""
        ...

    async def submit(self, name: str, endpoint: str, path: Path, rows: int) -> str:
        """Submit the file at `path` as the batch `name`; return the provider's name of it."""
        ...

    async def find(self, name: str, rows: int, since: float) -> list[str]:
        """Return the provider's names of batches that may be `name`, submitted after `since`; the likeliest first."""
        ...

    async def look(self, handle: str) -> BatchLook: ...

    def download(self, handle: str, file: str) -> AsyncIterator[bytes]:
        """Yield a file of results, in pieces."""
        ...

    def result(self, line: bytes) -> RowResult:
        """Read one line of results. Raises msgspec.MsgspecError for one that is damaged."""
        ...

    async def close(self) -> None: ...


class HttpBatches:
    """Calls to a provider's API, with the key and the address of `model`."""

    def __init__(self, model: HttpModel, http: HttpClient | None = None, query: str = "") -> None:
        self.model, self.http, self._query = model, http or model.http, query
        self.name, self.address = model.name, model.endpoint.address

    def decoded(self, request: Request, body: bytes) -> Reply:
        """Return the reply that the body of a result holds. Raises ModelError."""
        return self.model.decoded(request, body)

    async def close(self) -> None:
        await self.http.close()
        await self.model.close()

    async def call(self, method: str, path: str, body: object = None) -> Any:
        """Return the decoded reply to a call. Raises the HttpError family."""
        if body is None:
            data = None
        else:
            data = body if isinstance(body, bytes) else encode_body(body)
        return decode_json(await self.send(self.http, method, path, data), self.address)

    async def send(
        self,
        http: HttpClient,
        method: str,
        path: str,
        body: bytes | None,
        *,
        headers: HeaderList = (),
        content_type: bytes = JSON_TYPE,
    ) -> HttpResponse:
        """Return the reply with status 2xx. Raises the HttpError family."""
        timeout = CALL_SECONDS if body is None else FILE_SECONDS
        try:
            response = await http.request(
                method,
                self._with_query(path),
                timeout,
                body=body,
                headers=headers,
                content_type=content_type,
                once=body is not None,  # what makes a batch must not make two
            )
        except RedirectError as error:
            raise redirect_error(error, self.model.endpoint) from error
        if not 200 <= response.status < 300:
            raise error_from(response, self.model.endpoint)
        return response

    async def pieces(self, http: HttpClient, path: str) -> AsyncIterator[bytes]:
        """Yield a file in pieces. Raises the HttpError family."""
        async with http.stream(self._with_query(path), None, FILE_SECONDS) as response:
            if response.status != 200:
                whole = HttpResponse(response.status, response.headers, await response.read())
                raise error_from(whole, self.model.endpoint)
            async for piece in response.chunks():
                yield piece

    def _with_query(self, path: str) -> str:
        if "?" in path and self._query:
            return f"{path}&{self._query}"
        if self._query:
            return f"{path}?{self._query}"
        return path


def decode_json(response: HttpResponse, address: str) -> Any:
    """Return the JSON object of a response. Raises ServerError for anything else."""
    try:
        return msgspec.json.decode(response.body, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ServerError(f"{address} did not answer with a JSON object ({error}).", status=200) from error
