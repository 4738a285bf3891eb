# SPDX-License-Identifier: Apache-2.0
"""The OpenAI wire: what is sent, what is read, and what is no answer."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.base.http._loopback import always, loopback, replies, response, run
from tests.models._openai_wire import CHAT, QUESTION, ask, chat, choice, model_for
from tests.models.dialects import DIALECTS

from newskills.base.errors import (
    AuthError,
    BadRequestError,
    ConfigError,
    ContextLimitError,
    HttpError,
    RateLimitError,
    ServerError,
)
from newskills.base.protocols import Model
from newskills.base.records import Inference, Message, Request, Row, Usage
from newskills.models.errors import ModelNotFoundError
from newskills.models.parameters import check_inference, constant_keys, is_reasoning_model


def test_a_chat_request_and_its_reply() -> None:
    request = Request(
        messages=QUESTION,
        inference=Inference(tokens_to_generate=64, temperature=0.6, top_k=20, random_seed=3),
        stop=["END"],
    )
    reply, heard = run(ask(replies(CHAT), request))
    assert heard.path == "/v1/chat/completions"
    assert "authorization" not in heard.headers
    assert heard.json == {
        "model": "m",
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "2+2?"}],
        "temperature": 0.6,
        "top_p": 0.95,
        "max_tokens": 64,
        "seed": 3,
        "min_p": 0.0,
        "repetition_penalty": 1.0,
        "spaces_between_special_tokens": False,
        "top_k": 20,
        "stop": ["END"],
    }
    assert (reply.text, reply.finish_reason, reply.model) == ("hello", "stop", "m-1")
    assert reply.usage == Usage(input_tokens=5, output_tokens=2)
    assert reply.raw_message == {"role": "assistant", "content": "hello"}
    assert 0 < reply.started <= reply.ended


def test_a_text_request_and_its_reply() -> None:
    request = Request(
        prompt="2+2=", inference=Inference(endpoint_type="text", tokens_to_generate=8, top_logprobs=2)
    )
    logprobs = {
        "tokens": ["4", "."],
        "token_logprobs": [-0.1, -0.2],
        "top_logprobs": [{"4": -0.1, "5": -3.0}, {".": -0.2}],
    }
    answer = choice(text="4.", finish_reason="stop", stop_reason="\n", logprobs=logprobs)
    reply, heard = run(ask(replies(answer), request))
    assert heard.path == "/v1/completions"
    assert heard.json["prompt"] == "2+2="
    assert heard.json["logprobs"] == 2
    assert heard.json["skip_special_tokens"] is False
    assert reply.text == "4."
    assert reply.logprobs is not None
    assert reply.logprobs.tokens == ["4", "."]
    assert reply.logprobs.top_logprobs == [{"4": -0.1, "5": -3.0}, {".": -0.2}]
    assert reply.raw_message is not None
    assert reply.raw_message["stop_reason"] == "\n"


def test_token_ids_may_be_the_prompt() -> None:
    request = Request(prompt=[1, 2, 3], inference=Inference(endpoint_type="text", tokens_to_generate=8))
    _, heard = run(ask(replies(choice(text="x", finish_reason="stop")), request))
    assert heard.json["prompt"] == [1, 2, 3]


def test_llamacpp_sends_what_switches_its_own_defaults_off() -> None:
    request = Request(prompt="a", inference=Inference(endpoint_type="text", tokens_to_generate=8, top_logprobs=1))
    content = [{"token": "b", "logprob": -1.5, "top_logprobs": [{"token": "b", "logprob": -1.5}]}]
    answer = choice(text="b", finish_reason="length", logprobs={"content": content})
    reply, heard = run(ask(replies(answer), request, "llamacpp"))
    sent = {name: heard.json[name] for name in ("top_k", "min_p", "repeat_penalty")}
    assert sent == {"top_k": 0, "min_p": 0.0, "repeat_penalty": 1.0}
    assert constant_keys("llamacpp", "m", Inference(repetition_penalty=1.1))["repeat_last_n"] == 65536
    assert reply.logprobs is not None
    assert (reply.logprobs.tokens, reply.logprobs.logprobs) == (["b"], [-1.5])
    assert reply.finish_reason == "length"


def test_generic_endpoints_get_only_what_was_set() -> None:
    plain = constant_keys("generic", "m", Inference())
    assert plain == {"model": "m", "temperature": 0.0, "top_p": 0.95, "seed": 0}
    assert constant_keys("generic", "m", Inference(top_k=5, min_p=0.1, repetition_penalty=1.1)) == plain | {
        "top_k": 5,
        "min_p": 0.1,
        "repetition_penalty": 1.1,
    }


def test_sglang_chooses_tools_itself() -> None:
    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}}
    answer = choice(
        message={"role": "assistant", "content": None, "tool_calls": [call]}, finish_reason="tool_calls"
    )
    request = Request(messages=QUESTION, tools=tools, response_format={"type": "json_object"})
    reply, heard = run(ask(replies(answer), request, "sglang"))
    assert heard.json["tool_choice"] == "auto"
    assert heard.json["tools"] == tools
    assert heard.json["response_format"] == {"type": "json_object"}
    assert (reply.text, reply.tool_calls, reply.finish_reason) == ("", [call], "tool_calls")
    _, heard = run(ask(replies(answer), request, "vllm"))
    assert "tool_choice" not in heard.json


def test_extra_keys_win_and_the_requests_win_over_the_settings() -> None:
    inference = Inference(extra_body={"top_p": 0.5, "guided": "a", "stop": ["x"]})
    _, heard = run(ask(replies(CHAT), Request(messages=QUESTION, inference=inference, extra_body={"guided": "b"})))
    assert (heard.json["top_p"], heard.json["guided"], heard.json["stop"]) == (0.5, "b", ["x"])


def test_settings_that_differ_are_not_mixed_up() -> None:
    async def work() -> list[int]:
        async with loopback(replies(CHAT)) as place:
            model = model_for(place.url)
            for seed in [*range(200), 0]:
                await model.complete(chat(random_seed=seed))
            await model.close()
            return [heard.json["seed"] for heard in place.heard]

    assert run(work()) == [*range(200), 0]


def test_reasoning_is_read_and_sent_back_under_both_names() -> None:
    history = [*QUESTION, Message(role="assistant", content="4", reasoning_content="easy"), QUESTION[1]]
    for name in ("reasoning_content", "reasoning"):
        usage = {"completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 7}}
        answer = {**choice(message={"content": "4", name: "hm"}, finish_reason="stop"), "usage": usage}
        reply, heard = run(ask(replies(answer), Request(messages=history)))
        assert (reply.text, reply.reasoning, reply.usage.reasoning_tokens) == ("4", "hm", 7)
        assert heard.json["messages"][2] == {
            "role": "assistant",
            "content": "4",
            "reasoning_content": "easy",
            "reasoning": "easy",
        }
    _, heard = run(ask(replies(CHAT), Request(messages=history), "openai"))
    assert heard.json["messages"][2] == {"role": "assistant", "content": "4"}


def test_openai_reasoning_models() -> None:
    request = chat(tokens_to_generate=50, reasoning_effort="low")
    _, heard = run(ask(replies(CHAT), request, "openai", model="o3-mini", api_key="sk-abc"))
    assert heard.headers["authorization"] == "Bearer sk-abc"
    assert heard.json["messages"][0] == {"role": "developer", "content": "be brief"}
    assert heard.json["max_completion_tokens"] == 50
    assert heard.json["reasoning_effort"] == "low"
    assert not {"temperature", "top_p", "max_tokens"} & heard.json.keys()


@pytest.mark.parametrize(
    ("name", "reasons"),
    [
        ("o1", True),
        ("o4-mini", True),
        ("gpt-5", True),
        ("openai/gpt-5-mini", True),
        ("gpt-4o", False),
        ("olmo", False),
    ],
)
def test_which_models_reason(name: str, reasons: bool) -> None:
    assert is_reasoning_model(name) is reasons


@pytest.mark.parametrize(
    ("server_type", "model", "fields", "field"),
    [
        ("openai", "gpt-4o", {"top_k": 5}, "top_k"),
        ("openai", "gpt-4o", {"min_p": 0.1}, "min_p"),
        ("openai", "gpt-4o", {"repetition_penalty": 1.1}, "repetition_penalty"),
        ("openai", "gpt-4o", {"extra_body": {"x": 1}}, "extra_body"),
        ("openai", "gpt-4o", {"reasoning_effort": "low"}, "reasoning_effort"),
        ("openai", "gpt-4o", {"stream": True, "top_logprobs": 1}, "top_logprobs"),
        ("openai", "o3", {"temperature": 0.7}, "temperature"),
        ("openai", "o3", {"top_p": 0.9}, "top_p"),
        ("azureopenai", "gpt-5", {"top_logprobs": 1}, "top_logprobs"),
        ("megatron", "m", {"stream": True}, "stream"),
        ("megatron", "m", {"min_p": 0.1}, "min_p"),
        ("megatron", "m", {"top_logprobs": 1}, "top_logprobs"),
        ("vllm", "m", {"endpoint_type": "text"}, "tokens_to_generate"),
        (
            "vllm",
            "m",
            {"endpoint_type": "text", "tokens_to_generate": 5, "reasoning_effort": "low"},
            "reasoning_effort",
        ),
    ],
)
def test_what_a_backend_cannot_honour_is_refused(
    server_type: str, model: str, fields: dict[str, Any], field: str
) -> None:
    with pytest.raises(ConfigError, match=field):
        check_inference(server_type, model, Inference(**fields))


def test_refused_settings_send_nothing() -> None:
    async def work() -> None:
        async with loopback(replies(CHAT)) as place:
            model = model_for(place.url, "openai")
            with pytest.raises(ConfigError):
                await model.complete(chat(top_k=5))
            megatron = model_for(place.url, "megatron")
            with pytest.raises(ConfigError, match="tools"):
                await megatron.complete(Request(messages=QUESTION, tools=[{"type": "function"}]))
            assert not place.heard

    run(work())


def test_every_dialect_takes_the_defaults() -> None:
    for server_type in DIALECTS:
        check_inference(server_type, "m", Inference())
        assert constant_keys(server_type, "m", Inference())["model"] == "m"


@pytest.mark.parametrize(
    "answer",
    [
        {"choices": []},
        {},
        {"choices": [{"finish_reason": "stop"}]},
        {"choices": [{"message": {"role": "assistant"}, "finish_reason": "stop"}]},
        {"choices": [{"message": {"content": None}, "finish_reason": "stop"}]},
        {"choices": [{"message": {"content": 5}, "finish_reason": "stop"}]},
        {"choices": [{"message": {"content": "half"}, "finish_reason": "abort"}]},
        {"choices": [{"message": {"content": ""}, "finish_reason": "error"}]},
        {"choices": "no"},
        [],
        {"error": {"message": "worker died", "code": 502}, "choices": []},
    ],
)
def test_what_is_no_answer_is_an_error_to_try_again(answer: Any) -> None:
    with pytest.raises(ServerError) as caught:
        run(ask(replies(answer), chat()))
    assert caught.value.retryable


@pytest.mark.parametrize("body", [b"", b"{", b"null", b'{"choices": [{"message"', b"<html>", b"[" * 100_000])
def test_malformed_json_is_an_error_to_try_again(body: bytes) -> None:
    with pytest.raises(ServerError):
        run(ask(always(response(body)), chat()))


@pytest.mark.parametrize(
    ("message", "finish", "text"),
    [
        ({"content": ""}, "stop", ""),
        ({"content": None}, "length", ""),
        ({}, "length", ""),
        ({"content": None, "reasoning_content": "so"}, "stop", ""),
        ({"content": None, "refusal": "I will not"}, "stop", "I will not"),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "stop", "ab"),
        ({"content": None}, "content_filter", ""),
    ],
)
def test_what_the_model_said_is_kept_as_it_is(message: Row, finish: str, text: str) -> None:
    reply, _ = run(ask(replies(choice(message=message, finish_reason=finish)), chat()))
    assert (reply.text, reply.finish_reason) == (text, finish)


@pytest.mark.parametrize(
    "usage", [None, "lots", {}, {"prompt_tokens": -1, "completion_tokens": "2"}, {"prompt_tokens": True}]
)
def test_counts_that_are_none_stay_unknown(usage: Any) -> None:
    reply, _ = run(ask(replies({**CHAT, "usage": usage}), chat()))
    assert reply.usage == Usage()


def test_json_that_only_python_takes_is_borne() -> None:
    lone = b'{"choices":[{"message":{"content":"a\\ud800b"},"finish_reason":"stop",'
    lone += b'"logprobs":{"content":[{"token":"a","logprob":-Infinity}]}}]}'
    reply, _ = run(ask(always(response(lone)), chat()))
    assert reply.text == "a\ufffdb"
    assert reply.logprobs is not None
    broken = b'{"choices":[{"message":{"content":"a\xff"},"finish_reason":"stop"}]}'
    reply, _ = run(ask(always(response(broken)), chat()))
    assert reply.text == "a\ufffd"


def test_prompts_with_lone_surrogates_are_sent() -> None:
    _, heard = run(ask(replies(CHAT), Request(messages=[Message(role="user", content="a\ud800b")])))
    assert heard.json["messages"][0]["content"] == "a?b"


@settings(max_examples=30)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda s: (
            st.lists(s)
            | st.dictionaries(
                st.sampled_from(["choices", "message", "content", "text", "usage", "logprobs", "tokens", "error"]),
                s,
            )
        ),
        max_leaves=12,
    )
)
def test_any_json_gives_a_reply_or_an_error_of_the_family(value: Any) -> None:
    async def work() -> None:
        try:
            await ask(replies(value), chat())
        except HttpError:
            return

    run(work())


def test_the_earliest_stop_phrase_ends_the_text() -> None:
    answer = choice(message={"content": "one STOP two END three"}, finish_reason="stop")
    reply, _ = run(ask(replies(answer), Request(messages=QUESTION, stop=["END", "STOP"])))
    assert reply.text == "one "
    keep = Request(messages=QUESTION, stop=["END"], extra_body={"include_stop_str_in_output": True})
    reply, _ = run(ask(replies(answer), keep))
    assert reply.text.endswith("three")


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        ("401 X", {"error": {"message": "bad key"}}, AuthError),
        ("400 X", {"error": {"message": "nope"}}, BadRequestError),
        ("400 X", {"error": {"message": "maximum context length is 5 tokens"}}, ContextLimitError),
        ("429 X", {"error": {"message": "slow"}}, RateLimitError),
        ("500 X", {"error": {"message": "oops"}}, ServerError),
        ("204 No Content", {}, BadRequestError),
    ],
)
def test_refusals(status: str, body: Any, kind: type[HttpError]) -> None:
    for stream in (False, True):
        with pytest.raises(kind):
            run(ask(always(response(msgspec.json.encode(body), status)), chat(stream=stream)))


def test_a_model_that_is_not_served_is_told_what_is() -> None:
    missing = response(b'{"error":{"message":"The model `m` does not exist."}}', "404 Not Found")
    listing = response(b'{"data":[{"id":"a"},{"id":"b"}]}')
    with pytest.raises(ModelNotFoundError, match=r"does not serve 'm'\. It serves: a, b"):
        run(ask(always(missing, listing), chat()))
    with pytest.raises(ModelNotFoundError, match="not at this path"):
        run(ask(always(missing, response(b'{"data":[{"id":"m"}]}')), chat()))
    with pytest.raises(ModelNotFoundError, match="end in /v1"):
        run(ask(always(missing), chat()))


@pytest.mark.parametrize("stream", [False, True])
def test_a_redirect_is_told_with_the_option_that_mends_it(stream: bool) -> None:
    moved = response(b"", "301 Moved", "Location: https://elsewhere/v1\r\n")
    with pytest.raises(ModelNotFoundError, match=r"does not serve the API.*elsewhere/v1.*\+\+server\.base_url"):
        run(ask(always(moved), chat(stream=stream)))


def test_many_requests_at_once_share_the_pool() -> None:
    async def work() -> None:
        async with loopback(replies(CHAT)) as place:
            model: Model = model_for(place.url)
            answers = await asyncio.gather(*(model.complete(chat()) for _ in range(200)))
            assert {answer.text for answer in answers} == {"hello"}
            assert place.connections <= 10
            await model.close()

    run(work())
