# SPDX-License-Identifier: Apache-2.0
"""The OpenAI wire (chat, completions, responses), which most servers speak; departures are in `parameters.py`.

API reference: https://platform.openai.com/docs/api-reference (chat, completions, responses).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from urllib.parse import quote, urlsplit

from newskills.base.callbacks import HearPiece
from newskills.base.errors import ConfigError, ModelError, NewskillsError, RedirectError
from newskills.base.http.client import HeaderList
from newskills.base.http.connection import HttpResponse
from newskills.base.records import Inference, Reply, Request, Row
from newskills.models import openai_chat, openai_responses, parameters
from newskills.models.config import ServerConfig, key_of
from newskills.models.decode import StopGuard, earliest_stop
from newskills.models.errors import EndpointIdentity, ModelNotFoundError, error_from, read_refusal, redirect_error
from newskills.models.kinds import MODELS, dialect_of, key_for_host
from newskills.models.wire import (
    PROBE_TIMEOUT,
    BodyCache,
    HttpModel,
    base_url_of,
    is_json,
    require_key,
    require_model,
)

AZURE_VERSION = "2024-12-01-preview"
OPENAI_URL = "https://api.openai.com/v1"
PATHS = {"chat": "/chat/completions", "text": "/completions", "responses": "/responses"}
DYNAMIC = frozenset(
    {"messages", "prompt", "input", "tools", "tool_choice", "response_format", "text", "stop", "stream"}
)


class OpenAIModel(HttpModel):
    """Any OpenAI-compatible endpoint. `dialect` departs from the common ground as `server_type` says.

    `complete` raises the HttpError family, and ConfigError for a setting that the backend cannot honour.
    """

    def __init__(
        self,
        server_type: str,
        endpoint: EndpointIdentity,
        *,
        concurrency: int,
        environ: Mapping[str, str],
        headers: HeaderList = (),
        query: str = "",
        max_tokens_name: str | None = None,
    ) -> None:
        auth = (("Authorization", f"Bearer {endpoint.key}"),) if endpoint.key and not headers else headers
        super().__init__(endpoint, concurrency=concurrency, environ=environ, headers=auth)
        self.server_type = server_type
        self.dialect = dialect_of(server_type)
        self.query = query
        self._max_tokens_name = max_tokens_name
        self._bodies = BodyCache(DYNAMIC)
        self._developer = self.dialect.strict and parameters.is_reasoning_model(endpoint.model)

    def check(self, inference: Inference, *, tools: bool = False) -> None:
        """Raise ConfigError for a setting that this backend cannot honour."""
        parameters.check_inference(self.server_type, self.name, inference, tools=tools)

    async def complete(self, request: Request) -> Reply:
        started = time.time()
        request, hear = self._as_heard(request)
        inference = request.inference
        path, encoded = self.encoded(request)
        path += self.query
        if inference.stream:
            if hear is not None and _is_cut(request):
                hear = StopGuard(hear, request.stop)
            reply = self._finish_reply(request, await self._stream(path, encoded, inference, hear))
        else:
            reply = self.decoded(request, await self._post(path, encoded, inference.timeout))
        reply.started, reply.ended = started, time.time()
        return reply

    def encoded(self, request: Request) -> tuple[str, bytes]:
        """Return the path and the body of `request`. Raises ConfigError."""
        inference = request.inference
        if not self._bodies.knows(inference):
            self.check(inference)
            body = parameters.constant_keys(self.server_type, self.name, inference, self._max_tokens_name)
            self._bodies.put(inference, body)
        return PATHS[inference.endpoint_type], self._bodies.body(request, self._dynamic(request))

    def decoded(self, request: Request, body: bytes) -> Reply:
        """Return the reply to `request` that `body` holds. Raises ModelError."""
        return self._finish_reply(request, self._read(body, request.inference.endpoint_type))

    def _finish_reply(self, request: Request, reply: Reply) -> Reply:
        if request.inference.endpoint_type == "responses":
            openai_responses.mark_cut(reply, request.inference.tokens_to_generate)
        if _is_cut(request):
            reply.text = earliest_stop(reply.text, request.stop)
        return reply

    async def served_models(self) -> list[str]:
        """Return the model names that the endpoint lists. Raises the HttpError family."""
        try:
            response = await self.http.get("/models" + self.query, PROBE_TIMEOUT)
        except RedirectError as error:
            raise redirect_error(error, self.endpoint) from error
        if response.status != 200:
            raise error_from(response, self.endpoint)
        return openai_chat.model_names(response.body, self.endpoint.address)

    def _dynamic(self, request: Request) -> Row:
        if request.tools:
            self.check(request.inference, tools=True)
        kind = request.inference.endpoint_type
        if kind == "responses":
            return openai_responses.request_keys(request, developer=self._developer, echoes=self.dialect.echoes)
        return openai_chat.request_keys(request, self.dialect, developer=self._developer)

    def _read(self, body: bytes, kind: str) -> Reply:
        if kind == "responses":
            return openai_responses.decode_reply(body, self.endpoint)
        return openai_chat.decode_reply(body, self.endpoint)

    async def _stream(self, path: str, body: bytes, inference: Inference, hear: HearPiece | None) -> Reply:
        async with self._open_stream(path, body, inference.timeout) as response:
            if is_json(response.headers):
                return self._read(await response.read(), inference.endpoint_type)
            if inference.endpoint_type == "responses":
                return await openai_responses.read_stream(response.events(), self.endpoint, hear)
            return await openai_chat.read_stream(response.events(), self.endpoint, hear)

    async def _refusal_error(self, response: HttpResponse) -> ModelError:
        error = error_from(response, self.endpoint)
        if not isinstance(error, ModelNotFoundError):
            return error
        try:
            names = await self.served_models()
        except NewskillsError:
            return ModelNotFoundError(
                error.message, hint="Check ++server.base_url: does it end in /v1?", status=response.status
            )
        if self.name in names:
            refusal = read_refusal(response.body).message
            return ModelNotFoundError(
                f"{self.endpoint.address} serves '{self.name}', but not at this path ({response.status}): {refusal}",
                hint="Try another ++inference.endpoint_type.",
                status=response.status,
            )
        return ModelNotFoundError(
            f"{self.endpoint.address} does not serve '{self.name}'.",
            hint=f"It serves: {', '.join(names[:12]) or 'nothing'}{', …' if len(names) > 12 else ''}.",
            status=response.status,
        )


def _is_cut(request: Request) -> bool:
    """Return whether a text ends before a stop phrase, also where the server sends it."""
    return bool(request.stop) and not request.extra_body.get("include_stop_str_in_output")


def make(config: ServerConfig, *, concurrency: int, environ: Mapping[str, str]) -> OpenAIModel:
    """Return the model of a self-hosted endpoint: a key is sent where one is given, and never required beforehand."""
    dialect = dialect_of(config.server_type)
    key, source = key_of(config, environ)
    if config.api_key is not None or config.api_key_env_var:
        key, source = require_key(config, environ)
    endpoint = EndpointIdentity(base_url_of(config, v1=dialect.v1), require_model(config), key, source)
    return OpenAIModel(
        config.server_type,
        endpoint,
        concurrency=concurrency,
        environ=environ,
        max_tokens_name=config.max_tokens_name,
    )


def make_hosted(config: ServerConfig, *, concurrency: int, environ: Mapping[str, str]) -> OpenAIModel:
    """Make a model for OpenAI, NVIDIA's API, or any URL of that shape; the first two need a key.

    `NEMO_SKILLS_OPENAI_MODEL` and `NEMO_SKILLS_OPENAI_BASE_URL` stand in for what is not given.
    """
    url = base_url_of(config, environ.get("NEMO_SKILLS_OPENAI_BASE_URL") or OPENAI_URL)
    host = urlsplit(url).hostname or ""
    variable, required = key_for_host("openai", host)
    needed = required or config.api_key is not None or config.api_key_env_var
    key, source = require_key(config, environ, variable) if needed else key_of(config, environ, variable)
    endpoint = EndpointIdentity(url, require_model(config, environ.get("NEMO_SKILLS_OPENAI_MODEL")), key, source)
    return OpenAIModel(
        "openai",
        endpoint,
        concurrency=concurrency,
        environ=environ,
        max_tokens_name=config.max_tokens_name,
    )


def make_azure(config: ServerConfig, *, concurrency: int, environ: Mapping[str, str]) -> OpenAIModel:
    """Return the model of Azure OpenAI: the same wire, a key in `api-key`, an API version in the query.

    https://learn.microsoft.com/azure/ai-services/openai/reference. A base URL that ends in `/openai/v1` is the newer
    API without versions. `model` is the deployment's name. Raises ConfigError without an address, AuthError without a
    key.
    """
    url = (config.base_url or environ.get("AZURE_OPENAI_ENDPOINT", "")).rstrip("/")
    if not url:
        raise ConfigError(
            "azureopenai needs the address of your resource.",
            hint="Set ++server.base_url=https://NAME.openai.azure.com, or AZURE_OPENAI_ENDPOINT.",
        )
    model = require_model(config)
    key, source = require_key(config, environ, *MODELS.properties(config.server_type).keys)
    query = ""
    if not url.endswith("/openai/v1"):
        url = f"{url.removesuffix('/openai')}/openai/deployments/{quote(model, safe='')}"
        query = f"?api-version={AZURE_VERSION}"
    return OpenAIModel(
        "azureopenai",
        EndpointIdentity(url, model, key, source),
        concurrency=concurrency,
        environ=environ,
        headers=(("api-key", key),),
        query=query,
        max_tokens_name=config.max_tokens_name,
    )
