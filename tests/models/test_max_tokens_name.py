# SPDX-License-Identifier: Apache-2.0
"""`++server.max_tokens_name`: the limit of new tokens under the name that a gateway takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.conftest import FakeServerFactory
from tests.models.dialects import DIALECTS
from tests.run.support import make_unit, run, run_and_listen, write_input
from tests.server import Fault, Script

from newskills.base.errors import ConfigError
from newskills.base.records import Inference
from newskills.models import make_model
from newskills.models.config import ServerConfig
from newskills.models.parameters import constant_keys

NAMES = ("max_tokens", "max_completion_tokens")


@pytest.mark.parametrize("kind", DIALECTS)
@pytest.mark.parametrize("name", NAMES)
def test_a_chat_endpoint_gets_the_limit_by_that_name_only(
    kind: str, name: Any, tmp_path: Path, fake_server: FakeServerFactory
) -> None:
    server = fake_server(Script())
    write_input(tmp_path, 1)
    settings = {"server_type": kind, "api_key": "k", "max_tokens_name": name}
    unit = make_unit(tmp_path, server.base_url, server=settings, inference={"tokens_to_generate": 77})
    result, said = run_and_listen(unit)
    assert result.exit_code == 0, said
    (body,) = [record.body for record in server.records if "messages" in (record.body or {})]
    assert {key: body[key] for key in NAMES if key in body} == {name: 77}


@pytest.mark.parametrize("name", NAMES)
def test_a_reasoning_model_behind_a_gateway(name: str) -> None:
    body = constant_keys("openai", "o3", Inference(tokens_to_generate=5), name)
    assert {key: body[key] for key in NAMES if key in body} == {name: 5}


def test_other_endpoints_have_one_name_each() -> None:
    text = constant_keys(
        "vllm", "m", Inference(endpoint_type="text", tokens_to_generate=5), "max_completion_tokens"
    )
    assert (text["max_tokens"], "max_completion_tokens" in text) == (5, False)
    responses = constant_keys(
        "openai", "m", Inference(endpoint_type="responses", tokens_to_generate=5), "max_tokens"
    )
    assert (responses["max_output_tokens"], "max_tokens" in responses) == (5, False)


def test_no_limit_is_sent_where_none_is_set(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script())
    write_input(tmp_path, 1)
    unit = make_unit(tmp_path, server.base_url, server={"max_tokens_name": "max_completion_tokens"})
    assert run(unit).exit_code == 0
    assert not set(NAMES) & server.records[-1].body.keys()


def test_protocols_without_the_choice_refuse_it() -> None:
    config = ServerConfig(server_type="anthropic", model="m", api_key="k", max_tokens_name="max_tokens")
    with pytest.raises(ConfigError, match=r"does not accept server\.max_tokens_name"):
        make_model(config, concurrency=1, environ={})


def test_a_gateway_that_refuses_the_usual_name_says_what_to_set(
    tmp_path: Path, fake_server: FakeServerFactory
) -> None:
    message = "Unsupported parameter: 'max_tokens' is not supported with this model."
    server = fake_server(Script(faults=(Fault(kind="status", status=400, message=message),)))
    write_input(tmp_path, 1)
    result = run(make_unit(tmp_path, server.base_url, inference={"tokens_to_generate": 9}))
    assert result.exit_code != 0
    assert "++server.max_tokens_name=max_completion_tokens" in result.message
