# SPDX-License-Identifier: Apache-2.0
"""Model, client and errors together, against the scriptable server."""

from __future__ import annotations

from typing import Any

import pytest
from tests.base.http._loopback import run
from tests.server import CONTEXT_SHAPES, Answer, FakeServer, Fault, Script

from newskills.base.errors import (
    AuthError,
    ContextLimitError,
    HttpError,
    RateLimitError,
    RequestTimeoutError,
    ServerError,
    TransportError,
)
from newskills.base.records import Inference, Message, Reply, Request
from newskills.models import make_model
from newskills.models.config import ServerConfig
from newskills.models.context import shorten_request


async def ask(server: FakeServer, request: Request, **config: Any) -> Reply:
    settings = {"server_type": "vllm", "model": "fake", "base_url": server.url, **config}
    model = make_model(ServerConfig(**settings), concurrency=4, environ={"THE_KEY": "k"})
    try:
        return await model.complete(request)
    finally:
        await model.close()


def question(text: str = "2+2?", **fields: Any) -> Request:
    return Request(messages=[Message(role="user", content=text)], inference=Inference(**fields))


@pytest.mark.parametrize("endpoint", ["chat", "text", "responses"])
@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_by_every_way(fake_server: Any, endpoint: Any, stream: bool) -> None:
    server = fake_server(Script(answer=Answer(text="four")))
    inference = Inference(endpoint_type=endpoint, stream=stream, tokens_to_generate=50)
    request = Request(messages=[Message(role="user", content="2+2?")], prompt="2+2?", inference=inference)
    reply = run(ask(server, request))
    assert (reply.text, reply.finish_reason) == ("four", "stop")
    assert reply.usage.output_tokens is not None


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("reset", TransportError),
        ("reset_mid_body", TransportError),
        ("truncate", TransportError),
        ("malformed", ServerError),
        ("empty_choices", ServerError),
        ("hang", RequestTimeoutError),
    ],
)
def test_no_fault_passes_for_an_answer(fake_server: Any, kind: Any, error: type[HttpError]) -> None:
    server = fake_server(Script(faults=(Fault(kind=kind),)))
    with pytest.raises(error):
        run(ask(server, question(timeout=0.5)))


def test_a_drip_and_a_delay_are_borne(fake_server: Any) -> None:
    faults = (Fault(kind="drip", seconds=0.0005), Fault(kind="delay", seconds=0.05))
    server = fake_server(Script(answer=Answer(text="slow"), faults=faults))
    assert run(ask(server, question())).text == "slow"


@pytest.mark.parametrize("date", [False, True])
def test_the_wait_that_a_server_wishes_is_told(fake_server: Any, date: bool) -> None:
    server = fake_server(Script(faults=(Fault(kind="status", status=429, retry_after=30, http_date=date),)))
    with pytest.raises(RateLimitError) as caught:
        run(ask(server, question()))
    assert caught.value.retry_after is not None
    assert 20 < caught.value.retry_after <= 31


def test_keys(fake_server: Any) -> None:
    server = fake_server(Script(api_key="k"))
    with pytest.raises(AuthError, match="401"):
        run(ask(server, question()))
    assert run(ask(server, question(), api_key_env_var="THE_KEY")).text
    with pytest.raises(AuthError, match=r"\+\+server\.api_key"):
        run(ask(server, question(), api_key="wrong"))


@pytest.mark.parametrize("shape", CONTEXT_SHAPES)
def test_every_shape_of_the_context_limit_is_recognised(fake_server: Any, shape: str) -> None:
    server = fake_server(Script(context_tokens=200, context_shape=shape))
    alone_too_long = shape == "vllm_negative"
    request = question("word " * (500 if alone_too_long else 50), tokens_to_generate=100_000)
    with pytest.raises(ContextLimitError) as caught:
        run(ask(server, request))
    again = shorten_request("reduce_generation", request, caught.value, None, 10)
    if alone_too_long:
        assert again is None
    else:
        assert again is not None
        assert run(ask(server, again)).text
