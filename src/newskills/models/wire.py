# SPDX-License-Identifier: Apache-2.0
"""What every HTTP backend shares: the client, the key, errors by status, and bodies encoded once per setting."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Any

import msgspec

from newskills.base.callbacks import REPLY_LISTENER, HearPiece
from newskills.base.errors import AuthError, ConfigError, ModelError, RedirectError
from newskills.base.http.client import HeaderList, HttpClient, split_url
from newskills.base.http.connection import Headers, HttpResponse, StreamedResponse, find_header
from newskills.base.http.proxy import proxy_for
from newskills.base.records import Inference, Reply, Request, Row
from newskills.models.config import DEFAULT_HOST, DEFAULT_PORT, ServerConfig, key_of
from newskills.models.decode import page_error
from newskills.models.errors import EndpointIdentity, error_from, redirect_error
from newskills.models.tunnel import PortForward

CONNECTIONS_FOR_PROBES = 2
PROBE_TIMEOUT = 20.0
MOST_SETTINGS = 64
"""Objects of settings whose share of a request is remembered."""
TEMPLATE = "chat_template_kwargs"
"""Key of a request's arguments for the chat template, which several settings share."""

_encoder = msgspec.json.Encoder()


class HttpModel:
    """A model behind HTTP. Subclasses add the shape of requests and replies."""

    def __init__(
        self, endpoint: EndpointIdentity, *, concurrency: int, environ: Mapping[str, str], headers: HeaderList
    ) -> None:
        self.name = endpoint.model
        self.endpoint = endpoint
        self._streamed: dict[int, tuple[Inference, Inference]] = {}
        self._tunnel: PortForward | None = None
        self._client_at = partial(
            HttpClient,
            limit=concurrency + CONNECTIONS_FOR_PROBES,
            headers=headers,
            proxy=proxy_for(endpoint.address, environ),
        )
        self.http = self._client_at(endpoint.address)

    def route_through(self, server: str, key_path: str | None) -> None:
        """Reach the endpoint through an SSH host. Raises ConfigError, TransportError."""
        _, host, port, _ = split_url(self.endpoint.address)
        self._tunnel = PortForward(server, key_path, host, port)
        self.http.connect_to = ("127.0.0.1", self._tunnel.port)

    def check(self, inference: Inference, *, tools: bool = False) -> None:
        """Raise ConfigError for a setting that this backend cannot honour."""

    def encoded(self, request: Request) -> tuple[str, bytes]:
        """Return the path and the body of `request`. Raises ConfigError."""
        raise NotImplementedError

    def decoded(self, request: Request, body: bytes) -> Reply:
        """Return the reply to `request` that `body` holds. Raises ModelError."""
        raise NotImplementedError

    def client_at(self, address: str) -> HttpClient:
        """Return a client for another path of the same host, with the same key; whoever asks for it closes it."""
        client = self._client_at(address)
        client.connect_to = self.http.connect_to
        return client

    async def close(self) -> None:
        await self.http.close()
        if self._tunnel is not None:
            self._tunnel.close()

    def _as_heard(self, request: Request) -> tuple[Request, HearPiece | None]:
        """Return the request, and who listens to its reply: then it is streamed, where the backend streams with these
        settings."""
        listener, inference = REPLY_LISTENER.get(), request.inference
        if listener is None:
            return request, None
        if inference.stream:
            return request, listener.hear
        entry = self._streamed.get(id(inference))
        if entry is None or entry[0] is not inference:
            streamed = msgspec.structs.replace(inference, stream=True)
            with contextlib.suppress(ConfigError):  # it comes whole
                self.check(streamed)
                inference = streamed
            if len(self._streamed) >= MOST_SETTINGS:
                self._streamed.clear()
            entry = self._streamed[id(request.inference)] = (request.inference, inference)
        return msgspec.structs.replace(request, inference=entry[1]), listener.hear

    async def _post(self, path: str, body: bytes, timeout: float) -> bytes:
        try:
            response = await self.http.post(path, body, timeout)
        except RedirectError as error:
            raise redirect_error(error, self.endpoint) from error
        if response.status != 200:
            raise await self._refusal_error(response)
        return response.body

    @contextlib.asynccontextmanager
    async def _open_stream(self, path: str, body: bytes, timeout: float) -> AsyncIterator[StreamedResponse]:
        """Yield a stream of events. Raises the error that the status stands for, and an error for a page that came in
        place of events."""
        try:
            async with self.http.stream(path, body, timeout) as response:
                if response.status != 200:
                    raise await self._refusal_error(
                        HttpResponse(response.status, response.headers, await response.read())
                    )
                if "text/html" in (find_header(response.headers, "content-type") or ""):
                    raise page_error(self.endpoint.address)
                yield response
        except RedirectError as error:
            raise redirect_error(error, self.endpoint) from error

    async def _refusal_error(self, response: HttpResponse) -> ModelError:
        return error_from(response, self.endpoint)


class BodyCache:
    """Request bodies whose constant part is encoded once per `Inference` object.

    Keys of `extra_body` win over ours, the request's over the setting's; so does each argument of the chat template.
    """

    def __init__(self, dynamic_keys: frozenset[str]) -> None:
        self._dynamic = dynamic_keys
        self._known: dict[int, tuple[Inference, Row, bytes]] = {}

    def knows(self, inference: Inference) -> bool:
        """Return whether the constant part for this very object was put in."""
        entry = self._known.get(id(inference))
        return entry is not None and entry[0] is inference

    def put(self, inference: Inference, constant: Row) -> None:
        """Keep the constant part of bodies with this `inference`; `constant` must not be empty."""
        if len(self._known) >= MOST_SETTINGS:
            self._known.clear()
        merged = _merge_keys(constant, inference.extra_body)
        prefix = b"" if self._dynamic & merged.keys() else encode_body(merged)[:-1] + b","
        self._known[id(inference)] = (inference, constant, prefix)

    def body(self, request: Request, dynamic: Row) -> bytes:
        """Encode the body of a request; `dynamic` must not be empty."""
        _, constant, prefix = self._known[id(request.inference)]
        if prefix and not request.extra_body:
            return prefix + encode_body(dynamic)[1:]
        return encode_body(_merge_keys({**constant, **dynamic}, request.inference.extra_body, request.extra_body))


def _merge_keys(ours: Row, *more: Row) -> Row:
    merged = dict(ours)
    for keys in more:
        template = merged.get(TEMPLATE)
        merged |= keys
        if template and isinstance(keys.get(TEMPLATE), dict):
            merged[TEMPLATE] = {**template, **keys[TEMPLATE]}
    return merged


def is_json(headers: Headers) -> bool:
    """Return whether a response is no stream but a whole reply, as servers send that know no streams."""
    return "application/json" in (find_header(headers, "content-type") or "")


def encode_body(value: Any) -> bytes:
    """Encode as JSON; lone surrogates, which UTF-8 has no bytes for, become U+FFFD."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return _encoder.encode(without_surrogates(msgspec.to_builtins(value)))


def without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {without_surrogates(key): without_surrogates(item) for key, item in value.items()}
    return value


def require_model(config: ServerConfig, name: str | None = None) -> str:
    """Return the model's name. Raises ConfigError where there is none."""
    if chosen := config.model or name:
        return chosen
    raise ConfigError("No model is given.", hint="Add --model=NAME (or ++server.model=NAME).")


def require_key(config: ServerConfig, environ: Mapping[str, str], *variables: str) -> tuple[str, str]:
    """Return (key, its source). Raises AuthError that names the variable, before any request."""
    key, source = key_of(config, environ, *variables)
    if key:
        return key, source
    if config.api_key is not None:
        raise AuthError(
            "The key given by ++server.api_key is not known to this process: keys are never written to files.",
            hint="Put it into an environment variable and name the variable: ++server.api_key_env_var=NAME.",
        )
    raise AuthError(
        f"{config.server_type} needs a key, but {source} is not set.",
        hint=f"Run: export {source.split(' ')[0]}=…",
    )


def base_url_of(config: ServerConfig, default: str = "", *, v1: bool = True) -> str:
    """Return `base_url`, else host and port where one was set or there is no `default`, else `default`.

    An address without a path gets `/v1`, unless `v1` or `use_v1_endpoint` is false; a path is used as given.
    Raises ConfigError for one with a password in it.
    """
    own = (config.host, config.port) != (DEFAULT_HOST, DEFAULT_PORT)
    url = config.base_url
    if not url and not own:
        url = default
    if not url:
        host = f"[{config.host}]" if ":" in config.host else config.host
        url = f"http://{host}:{config.port}"
    if "://" not in url:
        url = f"http://{url}"
    url = url.rstrip("/")
    if "@" in url.split("://", 1)[1].split("/", 1)[0]:
        raise ConfigError(
            "The base URL holds a user name or password.", hint="Pass the key by ++server.api_key_env_var instead."
        )
    for suffix in ("/chat/completions", "/completions", "/responses"):
        url = url.removesuffix(suffix)
    if v1 and config.use_v1_endpoint and "/" not in url.split("://", 1)[1]:
        url += "/v1"
    return url
