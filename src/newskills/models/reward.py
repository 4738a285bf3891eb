# SPDX-License-Identifier: Apache-2.0
"""Reward models and classifiers that vLLM serves: a conversation goes in, its score comes back as text.

https://docs.vllm.ai/en/latest/models/pooling_models/: `/classify` and `/pooling` take messages, `/score` two texts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from newskills.base.errors import BadRequestError, ServerError
from newskills.base.records import Reply, Request, Row
from newskills.models.config import ServerConfig, key_of
from newskills.models.decode import decode_body, member_of, usage_of
from newskills.models.errors import EndpointIdentity
from newskills.models.wire import HttpModel, base_url_of, encode_body, require_key, require_model


class RewardWire(Struct, frozen=True):
    """One of vLLM's ways to ask for scores: path, field of the reply, whether two texts are compared."""

    path: str
    field: str
    compares: bool = False


_decoder = msgspec.json.Decoder(dict[str, Any])


class RewardModel(HttpModel):
    """`Request.messages` (the problem, the solution) → `Reply.text`, a finite number.

    Where the server sends several numbers the last one counts: the last class of a classifier, the last token of a
    token-wise reward model, the last step of a process reward model.
    """

    def __init__(
        self, wire: RewardWire, endpoint: EndpointIdentity, *, concurrency: int, environ: Mapping[str, str]
    ) -> None:
        headers = (("Authorization", f"Bearer {endpoint.key}"),) if endpoint.key else ()
        super().__init__(endpoint, concurrency=concurrency, environ=environ, headers=headers)
        self._wire = wire

    async def complete(self, request: Request) -> Reply:
        """Return a reply whose text is the score. Raises the HttpError family."""
        started = time.time()
        body = {"model": self.name, **self._request_body(request), **request.extra_body}
        got = await self._post(self._wire.path, encode_body(body), request.inference.timeout)
        reply = decode_body(got, _decoder, dict[str, Any], self.endpoint.address)
        return Reply(
            text=repr(self._read_score(reply)),
            finish_reason="stop",
            usage=usage_of(reply.get("usage")),
            started=started,
            ended=time.time(),
        )

    def _request_body(self, request: Request) -> Row:
        messages = request.messages or []
        if not self._wire.compares:
            return {"messages": messages}
        if len(messages) < 2:
            raise BadRequestError("vllm_score compares two texts: the problem and the solution.")
        return {"text_1": messages[-2].content, "text_2": messages[-1].content}

    def _read_score(self, reply: Row) -> float:
        data = reply.get("data")
        value = None
        if isinstance(data, list) and data:
            value = member_of(data[0], self._wire.field)
        while isinstance(value, list) and value:
            value = value[-1]
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ServerError(f"The reply of {self.endpoint.address} has no score: {str(reply)[:200]}", status=200)
        return float(value)


def make(wire: RewardWire, config: ServerConfig, *, concurrency: int, environ: Mapping[str, str]) -> RewardModel:
    """Return the reward model that is asked by `wire`; sends nothing. Raises ConfigError without a model's name."""
    key, source = key_of(config, environ)
    if config.api_key is not None or config.api_key_env_var:
        key, source = require_key(config, environ)
    address = base_url_of(config, v1=False)
    if urlsplit(address).path == "/v1":
        address = address.removesuffix("/v1")  # these paths lie beside /v1
    endpoint = EndpointIdentity(address, require_model(config), key, source)
    return RewardModel(wire, endpoint, concurrency=concurrency, environ=environ)


make_classify = partial(make, RewardWire("/classify", "probs"))
make_score = partial(make, RewardWire("/score", "score", compares=True))
make_pooling = partial(make, RewardWire("/pooling", "data"))
