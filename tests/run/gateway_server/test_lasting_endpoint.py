# SPDX-License-Identifier: Apache-2.0
"""The model behind a gateway: retries as in a run, and no error that ends it for good."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from tests.conftest import FakeServerFactory
from tests.server import Answer, Fault, Script

from newskills.base.errors import AuthError, ConfigError, HttpError
from newskills.base.records import Inference, Message, Request
from newskills.models.config import ServerConfig
from newskills.run.gateway_server.model import LastingEndpoint

ASK = Request(messages=[Message(role="user", content="hi")])


def endpoint(url: str, lines: list[str], patience: float | None = None, **more: object) -> LastingEndpoint:
    server = ServerConfig(server_type="vllm", model="fake", base_url=url)
    server = msgspec.structs.replace(server, **more)
    return LastingEndpoint(server, 4, {}, say=lines.append, patience=patience)


def test_a_key_that_is_refused_ends_only_what_was_asked(fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(api_key="right"))

    async def main() -> None:
        lines: list[str] = []
        model = endpoint(server.base_url, lines)
        for _ in range(2):
            with pytest.raises(AuthError):
                await model.complete(ASK)
        assert len(lines) == 2
        server.script = Script(answer=Answer(text="here"))
        assert (await model.complete(ASK)).text == "here"
        await model.close()

    asyncio.run(main())


def test_a_server_that_is_gone_and_comes_back(fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=Answer(text="here")))

    async def main() -> None:
        model = endpoint(server.base_url, [], patience=0.5)
        assert (await model.complete(ASK)).text == "here"
        server.down(1.5)
        with pytest.raises(HttpError):
            await asyncio.gather(model.complete(ASK), model.complete(ASK))
        await asyncio.sleep(1.5)
        assert (await model.complete(ASK)).text == "here"
        await model.close()

    asyncio.run(asyncio.wait_for(main(), 120))


def test_single_failures_are_tried_again(fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=Answer(text="here"), faults=(Fault(kind="status", status=500, first=2),)))

    async def main() -> None:
        model = endpoint(server.base_url, [])
        assert (await model.complete(ASK)).text == "here"
        await model.close()

    asyncio.run(main())
    assert len(server.records) > 2
    assert server.records[-1].prompt == "hi"


def test_a_program_that_asks_for_too_many_tokens_gets_fewer(fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=Answer(text="here"), context_tokens=500))

    async def main() -> None:
        model = endpoint(server.base_url, [])
        asked = msgspec.structs.replace(ASK, inference=Inference(tokens_to_generate=32_000))
        assert (await model.complete(asked)).text == "here"
        await model.close()

    asyncio.run(main())
    assert [record.body["max_tokens"] for record in server.records] == [32_000, 399]


def test_a_setting_that_the_backend_cannot_honour_is_refused_alone() -> None:
    async def main() -> None:
        model = endpoint("http://127.0.0.1:9/v1", [], server_type="megatron")
        asked = msgspec.structs.replace(ASK, tools=[{"type": "function", "function": {"name": "a"}}])
        with pytest.raises(ConfigError, match="does not accept tools"):
            await model.complete(asked)
        await model.close()

    asyncio.run(main())
