# SPDX-License-Identifier: Apache-2.0
"""Providers without a wire of their own, through the optional LiteLLM library (`newskills[litellm]`).

The model's name is LiteLLM's (`provider/model`), keys are read by LiteLLM from the environment.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from newskills.base.errors import ConfigError, ModelError, RequestTimeoutError, TransportError
from newskills.base.records import Inference, Reply, Request, Row
from newskills.models.config import ServerConfig, key_of
from newskills.models.decode import earliest_stop
from newskills.models.errors import EndpointIdentity, Refusal, error_for
from newskills.models.openai_chat import Completion, reply_of
from newskills.models.parameters import thinking_keys
from newskills.models.wire import require_key, require_model


class LiteLLMModel:
    """Chat only. Settings that differ from the defaults are passed on; LiteLLM refuses what a provider lacks."""

    def __init__(self, library: Any, endpoint: EndpointIdentity, base_url: str | None) -> None:
        self.name = endpoint.model
        self._library, self._endpoint, self._base_url = library, endpoint, base_url

    def check(self, inference: Inference, *, tools: bool = False) -> None:
        """Raise ConfigError for a setting that cannot be honoured."""
        if inference.endpoint_type != "chat":
            raise ConfigError("litellm supports only chat here.", hint="Set ++inference.endpoint_type=chat.")
        if inference.stream:
            raise ConfigError("litellm does not support streaming here.", hint="Set ++inference.stream=false.")
        if inference.thinking_budget is not None:
            thinking_keys("litellm", self.name, inference)

    async def complete(self, request: Request) -> Reply:
        """Return the reply to a request. Raises RequestTimeoutError, TransportError, and ModelError of the kind that
        the status means."""
        openai: Any = importlib.import_module("openai")
        self.check(request.inference)
        started = time.time()
        try:
            answer = await self._library.acompletion(**self._call_arguments(request))
        except openai.APITimeoutError as error:
            raise RequestTimeoutError(f"{self.name} gave no reply: {error}") from error
        except openai.APIStatusError as error:
            raise self._model_error(error.status_code, str(error)) from error
        except openai.APIConnectionError as error:
            raise TransportError(f"{self.name} cannot be reached: {error}") from error
        reply = reply_of(msgspec.convert(answer.model_dump(), Completion), self._endpoint)
        reply.text = earliest_stop(reply.text, request.stop)
        reply.started, reply.ended = started, time.time()
        return reply

    async def close(self) -> None:
        """Do nothing: nothing is held."""

    def _model_error(self, status: int, message: str) -> ModelError:
        return error_for(status, Refusal(message), self._endpoint)

    def _call_arguments(self, request: Request) -> Row:
        inference, neutral = request.inference, Inference()
        arguments: Row = {
            "model": self.name,
            "messages": [msgspec.to_builtins(message) for message in request.messages or []],
            "timeout": inference.timeout,
            "num_retries": 0,
            "max_retries": 0,
        }
        optional: Row = {
            "temperature": inference.temperature,
            "top_p": inference.top_p if inference.top_p != neutral.top_p else None,
            "top_k": inference.top_k if (inference.top_k or 0) > 0 else None,
            "min_p": inference.min_p or None,
            "repetition_penalty": inference.repetition_penalty if inference.repetition_penalty != 1.0 else None,
            "max_tokens": inference.tokens_to_generate,
            "reasoning_effort": inference.reasoning_effort,
            "logprobs": True if inference.top_logprobs is not None else None,
            "top_logprobs": inference.top_logprobs,
            "stop": request.stop or None,
            "tools": request.tools,
            "response_format": request.response_format,
            "api_key": self._endpoint.key,
            "base_url": self._base_url,
        }
        arguments |= {name: value for name, value in optional.items() if value is not None}
        return {**arguments, **inference.extra_body, **request.extra_body}


def make(config: ServerConfig, *, concurrency: int, environ: Mapping[str, str]) -> LiteLLMModel:
    """Return the model that LiteLLM asks. Raises ConfigError where the library is not installed."""
    # Without this, importing the library fetches a list of prices from the network.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    try:
        import litellm
    except ImportError as error:
        raise ConfigError(
            "server_type=litellm needs the library litellm.", hint="Run: pip install 'newskills[litellm]'"
        ) from error
    key, source = key_of(config, environ)
    if config.api_key is not None or config.api_key_env_var:
        key, source = require_key(config, environ)
    litellm.drop_params = False
    litellm.telemetry = False
    model = require_model(config)
    return LiteLLMModel(litellm, EndpointIdentity(config.base_url or model, model, key, source), config.base_url)
