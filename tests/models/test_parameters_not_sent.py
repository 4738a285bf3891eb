# SPDX-License-Identifier: Apache-2.0
"""Parameters that are null are in no request, whatever the endpoint."""

from __future__ import annotations

from typing import Any

import pytest
from tests.conftest import FakeServerFactory
from tests.models.dialects import DIALECTS
from tests.run.support import make_unit, run, write_input
from tests.server import Script

from newskills.base.records import Inference, Message, Request
from newskills.models.anthropic import constant_keys as anthropic_body
from newskills.models.gemini import generation_config
from newskills.models.parameters import check_inference, constant_keys

NAMES = ("temperature", "top_p", "top_k", "min_p", "random_seed", "repetition_penalty")
SENT = ("temperature", "top_p", "topP", "top_k", "topK", "min_p", "seed", "repetition_penalty", "repeat_penalty")
NOTHING = Inference(tokens_to_generate=9, **dict.fromkeys(NAMES))
REQUEST = Request(messages=[Message(role="user", content="?")], inference=NOTHING)


@pytest.mark.parametrize("kind", DIALECTS)
@pytest.mark.parametrize("endpoint", ["chat", "text", "responses"])
def test_nulls_are_left_out_by_every_kind_of_server(kind: str, endpoint: Any) -> None:
    inference = Inference(endpoint_type=endpoint, tokens_to_generate=9, **dict.fromkeys(NAMES))
    check_inference(kind, "gpt-5" if kind == "openai" else "m", inference)
    body = constant_keys(kind, "m", inference)
    assert not set(SENT) & set(body)
    assert None not in body.values()
    assert body["max_output_tokens" if endpoint == "responses" else "max_tokens"] == 9


def test_nulls_are_left_out_by_other_protocols() -> None:
    assert not set(SENT) & set(generation_config("gemini-3", REQUEST))
    assert not set(SENT) & set(anthropic_body("claude-sonnet-4-5", NOTHING))


def test_a_run_sends_what_is_set_and_nothing_else(tmp_path: Any, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script())
    write_input(tmp_path, 2)
    assert run(make_unit(tmp_path, server.base_url, inference={"temperature": None, "top_p": 0.5})).exit_code == 0
    body = server.records[0].body
    assert "temperature" not in body
    assert (body["top_p"], body["seed"]) == (0.5, 0)
