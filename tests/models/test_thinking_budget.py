# SPDX-License-Identifier: Apache-2.0
"""`++inference.thinking_budget` on every wire: the bodies that arrive, judged by the providers' own types too."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError
from tests.base.http._loopback import Heard, Play, loopback, replies, run
from tests.models._openai_wire import CHAT
from tests.models.test_hosted import CLAUDE, GEMINI, KEYS

from newskills.base.errors import ConfigError
from newskills.base.records import Inference, Message, Request, Row
from newskills.models import make_model
from newskills.models.config import ServerConfig

HAIKU, FLASH = "claude-haiku-4-5-20251001", "gemini-2.5-flash"


async def ask(server_type: str, model: str, play: Play, own: Row | None = None, **fields: Any) -> Heard:
    """Ask a server for one reply; return what it was sent."""
    inference = Inference(**{"tokens_to_generate": 9000, **fields})
    request = Request(messages=[Message(role="user", content="hi")], inference=inference, extra_body=own or {})
    async with loopback(play) as place:
        config = ServerConfig(server_type=server_type, model=model, base_url=place.url)
        made = make_model(config, concurrency=1, environ=KEYS)
        try:
            await made.complete(request)
            return place.heard[-1]
        finally:
            await made.close()


def refusal(server_type: str, model: str, **fields: Any) -> str:
    """Return the sentence with which the settings are refused before anything is sent, and its hint."""
    config = ServerConfig(server_type=server_type, model=model, base_url="http://127.0.0.1:9")
    made: Any = make_model(config, concurrency=1, environ=KEYS)
    with pytest.raises(ConfigError) as error:
        made.check(Inference(**{"tokens_to_generate": 9000, **fields}))
    return f"{error.value.message} {error.value.hint}"


@pytest.mark.parametrize(
    ("server_type", "budget", "sent"),
    [
        ("vllm", 512, {"thinking_token_budget": 512}),
        ("vllm_dp_ray", 512, {"thinking_token_budget": 512}),
        ("sglang", 512, {"custom_params": {"thinking_budget": 512}}),
        ("llamacpp", 512, {"thinking_budget_tokens": 512}),
        *((server_type, "none", {}) for server_type in ("vllm", "sglang", "llamacpp", "trtllm")),
    ],
)
def test_own_servers(server_type: str, budget: Any, sent: Row) -> None:
    plain = run(ask(server_type, "Qwen/Qwen3-8B", replies(CHAT))).json
    limited = run(ask(server_type, "Qwen/Qwen3-8B", replies(CHAT), thinking_budget=budget)).json
    thinks = budget != "none"
    switch = {"chat_template_kwargs": {"enable_thinking": thinks, "thinking": thinks}}
    assert limited == {**plain, **switch, **sent}


def test_nim_has_a_limit_and_no_switch() -> None:
    plain = run(ask("nim", "m", replies(CHAT))).json
    assert run(ask("nim", "m", replies(CHAT), thinking_budget=99)).json == {
        **plain,
        "nvext": {"max_thinking_tokens": 99},
    }
    assert "reasoning_effort" in refusal("nim", "m", thinking_budget="none")


@pytest.mark.parametrize("place", ["inference", "request"])
def test_other_arguments_of_the_template_stay(place: str) -> None:
    own = {"chat_template_kwargs": {"style": "dry", "thinking": True}}
    bodies = {"inference": {}, "request": {}, place: own}
    play = replies(CHAT)
    heard = run(ask("vllm", "m", play, bodies["request"], thinking_budget="none", extra_body=bodies["inference"]))
    template = {"enable_thinking": False, "thinking": True, "style": "dry"}
    assert heard.json["chat_template_kwargs"] == template
    assert own == {"chat_template_kwargs": {"style": "dry", "thinking": True}}


@pytest.mark.parametrize("model", [HAIKU, "claude-3-7-sonnet-20250219", "claude-opus-4-6"])
def test_anthropic(model: str) -> None:
    types = pytest.importorskip("anthropic.types")
    thinking = TypeAdapter(types.ThinkingConfigParam)
    plain = run(ask("anthropic", model, replies(CLAUDE))).json
    limited = run(ask("anthropic", model, replies(CLAUDE), thinking_budget=2048)).json
    del plain["temperature"]  # Claude takes none while it thinks
    assert limited == {**plain, "thinking": {"type": "enabled", "budget_tokens": 2048}}
    off = run(ask("anthropic", model, replies(CLAUDE), thinking_budget="none", temperature=0.5)).json
    assert off == {**plain, "temperature": 0.5, "thinking": {"type": "disabled"}}
    for body in (limited, off):
        assert thinking.validate_python(body["thinking"]) == body["thinking"]
    with pytest.raises(ValidationError):
        thinking.validate_python({"type": "enabled", "thinking_budget": 2048})


@pytest.mark.parametrize(("model", "budget"), [(FLASH, 1), (FLASH, 24576), ("gemini-2.5-pro", 128)])
def test_gemini(model: str, budget: int) -> None:
    types = pytest.importorskip("google.genai.types")
    plain = run(ask("gemini", model, replies(GEMINI))).json
    limited = run(ask("gemini", model, replies(GEMINI), thinking_budget=budget)).json
    config = {"thinkingBudget": budget, "includeThoughts": True}
    assert limited == {**plain, "generationConfig": {**plain["generationConfig"], "thinkingConfig": config}}
    read = types.GenerateContentConfig.model_validate(limited["generationConfig"])
    assert read.thinking_config.thinking_budget == budget
    if model == FLASH:
        off = run(ask("gemini", model, replies(GEMINI), thinking_budget="none")).json
        assert off["generationConfig"]["thinkingConfig"] == {"thinkingBudget": 0}


@pytest.mark.parametrize(
    ("server_type", "model", "fields", "words"),
    [
        ("openai", "gpt-5", {"thinking_budget": 99}, "openai has no limit .*reasoning_effort=LEVEL"),
        ("openai", "gpt-5", {"thinking_budget": "none"}, "openai has no switch .*reasoning_effort=LEVEL"),
        ("azureopenai", "o3", {"thinking_budget": 99}, "reasoning_effort=LEVEL"),
        ("generic", "m", {"thinking_budget": 99}, "reasoning_effort=LEVEL"),
        ("megatron", "m", {"thinking_budget": 99}, "reasoning_effort=LEVEL.*endpoint_type=text"),
        ("trtllm", "m", {"thinking_budget": 99}, "trtllm has no limit .*reasoning_effort=LEVEL"),
        ("anthropic", "claude-opus-4-7", {"thinking_budget": 2048}, "reasoning_effort=LEVEL"),
        ("anthropic", "claude-sonnet-5", {"thinking_budget": "none"}, "reasoning_effort=LEVEL"),
        ("anthropic", HAIKU, {"thinking_budget": 1023}, "from 1,024 to below .*9,000.*not 1,023"),
        ("anthropic", HAIKU, {"thinking_budget": 9000}, "from 1,024 to below .*9,000.*not 9,000"),
        ("anthropic", HAIKU, {"thinking_budget": 2048, "temperature": 0.5}, "temperature with thinking"),
        ("gemini", "gemini-3-flash", {"thinking_budget": 99}, "only Gemini 2.5 .*reasoning_effort=LEVEL"),
        ("gemini", "gemini-2.0-flash", {"thinking_budget": 99}, "only Gemini 2.5"),
        ("gemini", "gemini-2.5-pro", {"thinking_budget": "none"}, "thinking_budget=128"),
        ("gemini", "gemini-2.5-flash-lite", {"thinking_budget": 511}, "from 512 to 24,576, not 511"),
        ("vllm", "m", {"thinking_budget": 99, "endpoint_type": "text"}, "endpoint_type=chat"),
        ("vllm", "m", {"thinking_budget": 99, "endpoint_type": "responses"}, "endpoint_type=chat"),
        *(
            (server, model, {"thinking_budget": 2048, "reasoning_effort": "low"}, "only one of the two")
            for server, model in (("vllm", "m"), ("anthropic", HAIKU), ("gemini", FLASH))
        ),
    ],
)
def test_refused_before_anything_is_sent(server_type: str, model: str, fields: Row, words: str) -> None:
    sentence = refusal(server_type, model, **fields)
    assert re.search(words, sentence), sentence


def test_keys_of_older_records_stay() -> None:
    def key(**fields: Any) -> str:
        inference = Inference(temperature=0.7, tokens_to_generate=64, **fields)
        return Request(messages=[Message(role="user", content="2+2?")], inference=inference).key("id")

    assert key() == "43ff864ce4943ba6"
    assert len({key(), key(thinking_budget=99), key(thinking_budget=98), key(thinking_budget="none")}) == 4
