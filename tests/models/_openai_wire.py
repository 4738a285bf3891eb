# SPDX-License-Identifier: Apache-2.0
"""What the tests of the OpenAI wire share: a reply, a question, a model on a loopback server."""

from __future__ import annotations

from typing import Any

from tests.base.http._loopback import Heard, Play, loopback

from newskills.base.records import Inference, Message, Reply, Request, Row
from newskills.models import make_model
from newskills.models.config import ServerConfig
from newskills.models.openai import OpenAIModel

CHAT = {
    "model": "m-1",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 5, "completion_tokens": 2},
}
QUESTION = [Message(role="system", content="be brief"), Message(role="user", content="2+2?")]


def model_for(url: str, server_type: str = "vllm", **config: Any) -> OpenAIModel:
    model = make_model(
        ServerConfig(**{"server_type": server_type, "model": "m", "base_url": url, **config}),
        concurrency=8,
        environ={},
    )
    assert isinstance(model, OpenAIModel)
    return model


async def ask(play: Play, request: Request, server_type: str = "vllm", **config: Any) -> tuple[Reply, Heard]:
    async with loopback(play) as place:
        model = model_for(place.url, server_type, **config)
        try:
            return await model.complete(request), place.heard[-1]
        finally:
            await model.close()


def chat(*, endpoint: str = "chat", **fields: Any) -> Request:
    inference = Inference(**{"endpoint_type": endpoint, **fields})
    return Request(messages=QUESTION, inference=inference)


def choice(**fields: Any) -> Row:
    return {"choices": [fields]}
