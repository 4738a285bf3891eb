# SPDX-License-Identifier: Apache-2.0
"""What servers say, and what it means. The sentences are those that the servers of the day send."""

from __future__ import annotations

import time
from email.utils import formatdate
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.base.errors import (
    AuthError,
    BadRequestError,
    ContextLimitError,
    RateLimitError,
    ServerError,
)
from newskills.base.http.connection import HttpResponse
from newskills.models.errors import (
    EndpointIdentity,
    ModelNotFoundError,
    context_numbers,
    error_from,
    is_context_limit,
)

ENDPOINT = EndpointIdentity("http://h/v1", "m", "sk-secret-key", "MY_KEY")


def answer(status: int, body: Any, **headers: str) -> HttpResponse:
    raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
    return HttpResponse(status, [(k.replace("_", "-").encode(), v.encode()) for k, v in headers.items()], raw)


@pytest.mark.parametrize(
    ("text", "limit", "prompt", "requested"),
    [
        (
            "This model's maximum context length is 40960 tokens. However, your request has 3000009 input tokens.",
            40960,
            3000009,
            None,
        ),
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 1000000. This model's maximum context length "
            "is 40960 tokens and your request has 142 input tokens (1000000 > 40960 - 142). None",
            40960,
            142,
            1000000,
        ),
        (
            "The input (187537 tokens) is longer than the model's context length (131072 tokens).",
            131072,
            187537,
            None,
        ),
        (
            "This model's maximum context length is 4096 tokens. However, you requested 47056 tokens (45008 in "
            "the messages, 2048 in the completion). Please reduce the length.",
            4096,
            45008,
            2048,
        ),
        (
            "Requested token count exceeds the model's maximum context length of 131072 tokens. You requested a "
            "total of 1000159 tokens: 159 tokens from the input messages and 1000000 tokens for the completion.",
            131072,
            159,
            1000000,
        ),
        (
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
            8192,
            9000,
            None,
        ),
        ("prompt is too long: 210000 tokens > 200000 maximum", 200000, 210000, None),
        (
            "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length",
            200000,
            190000,
            20000,
        ),
        (
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048575).",
            1048575,
            1200000,
            None,
        ),
        ("The decoder prompt (length 5000) is longer than the maximum model length of 4096.", 4096, 5000, None),
        ("Your input exceeds the context window of this model.", None, None, None),
        ("max_tokens=9000 cannot be greater than max_model_len=max_total_tokens=8192. Please", 8192, None, 9000),
        ("max_tokens=100000 cannot be greater than max_model_len=8192.", 8192, None, 100000),
        (
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 3000 `inputs` tokens "
            "and 2000 `max_new_tokens`",
            4096,
            3000,
            2000,
        ),
        ("Input validation error: `inputs` must have less than 1024 tokens. Given: 2000", 1024, 2000, None),
        (
            "This model's maximum context length is 8192 tokens. However, you requested 100 output tokens and your "
            "prompt contains at least 8093 input tokens, for a total of at least 8193 tokens.",
            8192,
            8093,
            100,
        ),
    ],
)
def test_context_limits_are_recognised_with_their_numbers(
    text: str, limit: int | None, prompt: int | None, requested: int | None
) -> None:
    error = error_from(answer(400, {"error": {"message": text, "code": 400}}), ENDPOINT)
    assert isinstance(error, ContextLimitError)
    assert (error.limit, error.prompt_tokens, error.requested) == (limit, prompt, requested)
    assert error.cause == "context"


def test_a_negative_budget_tells_the_overflow() -> None:
    error = error_from(answer(400, {"message": "max_tokens must be at least 1, got -37673."}), ENDPOINT)
    assert isinstance(error, ContextLimitError)
    assert context_numbers(error.message).overflow == 37673


def test_llamacpp_tells_its_numbers_beside_the_message() -> None:
    body = {
        "error": {
            "code": 400,
            "message": "the request exceeds the available context size, try increasing it",
            "type": "exceed_context_size_error",
            "n_prompt_tokens": 5000,
            "n_ctx": 4096,
        }
    }
    error = error_from(answer(400, body), ENDPOINT)
    assert isinstance(error, ContextLimitError)
    assert (error.limit, error.prompt_tokens) == (4096, 5000)


def test_a_context_limit_by_code_alone() -> None:
    body = {"error": {"message": "too much", "code": "context_length_exceeded"}}
    assert isinstance(error_from(answer(400, body), ENDPOINT), ContextLimitError)


@pytest.mark.parametrize(
    "text", ["'temperature' must be positive", "Invalid schema for tool", "length must be even"]
)
def test_other_bad_requests_are_none(text: str) -> None:
    error = error_from(answer(400, {"error": {"message": text}}), ENDPOINT)
    assert type(error) is BadRequestError
    assert text in str(error)
    assert not error.retryable


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, {"error": {"message": "bad key"}}, AuthError),
        (403, {"detail": "Forbidden"}, AuthError),
        (402, {"error": {"message": "pay"}}, AuthError),
        (429, {"error": {"message": "quota", "code": "insufficient_quota"}}, AuthError),
        (
            400,
            {"error": {"code": 400, "message": "API key not valid", "details": [{"reason": "API_KEY_INVALID"}]}},
            AuthError,
        ),
        (404, {"error": {"message": "no such model"}}, ModelNotFoundError),
        (400, {"error": {"message": "invalid model ID", "code": "model_not_found"}}, ModelNotFoundError),
        (422, {"detail": [{"loc": ["body"], "msg": "field required"}]}, BadRequestError),
        (501, {"error": "This server does not support tools"}, BadRequestError),
        (429, {"error": {"message": "slow down"}}, RateLimitError),
        (408, b"", ServerError),
        (409, b"", ServerError),
        (500, b"Internal Server Error", ServerError),
        (502, b"<html>Bad gateway</html>", ServerError),
        (529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, ServerError),
        (400, {"error": {"message": "Expected 2 output messages (reasoning and final), but got 1."}}, ServerError),
    ],
)
def test_statuses(status: int, body: Any, kind: type) -> None:
    error = error_from(answer(status, body), ENDPOINT)
    assert type(error) is kind
    assert error.status == status


def test_an_auth_error_names_the_variable_and_hides_the_key() -> None:
    error = error_from(answer(401, {"error": {"message": "Incorrect key: sk-secret-key"}}), ENDPOINT)
    assert "MY_KEY" in str(error)
    assert "sk-secret-key" not in str(error)
    keyless = error_from(answer(401, b""), EndpointIdentity("http://h", "m", None, "OPENAI_API_KEY"))
    assert "export OPENAI_API_KEY" in str(keyless)


def test_retry_after_in_its_forms() -> None:
    def wait(status: int = 429, body: Any = b"", **headers: str) -> float | None:
        error = error_from(answer(status, body, **headers), ENDPOINT)
        assert isinstance(error, RateLimitError | ServerError)
        return error.retry_after

    assert wait(retry_after="7") == 7
    assert wait(Retry_After="0.5") == 0.5
    assert wait(retry_after_ms="1500", retry_after="2") == 1.5
    assert wait(503, retry_after="3") == 3
    date = formatdate(time.time() + 60, usegmt=True)
    assert 50 < (wait(retry_after=date) or 0) <= 61
    assert wait(retry_after=formatdate(time.time() - 60, usegmt=True)) == 0
    for invalid in ("-5", "soon", "nan", "inf", "1e9", "0x10", "1_0", "9" * 30):
        assert wait(retry_after=invalid) is None
    assert wait() is None
    google = {"error": {"code": 429, "message": "quota", "details": [{"@type": "RetryInfo", "retryDelay": "30s"}]}}
    assert wait(body=google) == 30


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (
            "Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, "
            "Requested 45032. The input or output tokens must be reduced in order to run successfully.",
            BadRequestError,
        ),
        ("Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Requested 45032.", BadRequestError),
        (
            "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, Requested 4503.",
            RateLimitError,
        ),
        ("Rate limit reached for gpt-4o on requests per min (RPM): Limit 3, Used 3, Requested 1.", RateLimitError),
        ("Too many requests", RateLimitError),
    ],
)
def test_a_request_that_exceeds_a_limit_alone_is_not_asked_again(text: str, kind: type) -> None:
    assert type(error_from(answer(429, {"error": {"message": text}}), ENDPOINT)) is kind


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("Unsupported value: 'temperature' does not support 0 with this model.", "++inference.temperature=null"),
        ("`top_p` is deprecated for this model.", "++inference.top_p=null"),
        ("Unrecognized request argument supplied: seed", "++inference.random_seed=null"),
        (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'.",
            "++server.max_tokens_name=max_completion_tokens",
        ),
        ("Unknown parameter: max_completion_tokens", "++server.max_tokens_name=max_tokens"),
        (
            "prompt: data did not match any variant of untagged enum Prompt",
            "++inference.endpoint_type=chat",
        ),
        ("The temperature of the discussion rises.", ""),
    ],
)
def test_a_refused_parameter_names_the_way_out(text: str, hint: str) -> None:
    error = error_from(answer(400, {"error": {"message": text}}), ENDPOINT)
    assert type(error) is BadRequestError
    assert hint in error.hint
    assert bool(error.hint) == bool(hint)


@pytest.mark.parametrize("status", [400, 422, 500])
@pytest.mark.parametrize(
    "text",
    [
        "System role not supported",
        "Jinja Exception: System role not supported",
        "Template error: undefined value: system role not supported (in <string>:1)",
        "Developer instruction is not enabled for models/gemma-3-27b-it",
        "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
        "role 'system' is not supported on this model",
        "Conversation roles must alternate user/assistant/user/assistant/...",
        "Only user and assistant roles are supported!",
        "messages.0.role: Input should be 'user' or 'assistant'",
        "system messages are not supported by this model",
    ],
)
def test_a_refused_system_role_names_the_way_out(status: int, text: str) -> None:
    error = error_from(answer(status, {"error": {"message": text}}), ENDPOINT)
    assert type(error) is BadRequestError
    assert "++server.merge_system=true" in error.hint


@pytest.mark.parametrize(
    "text", ["The system is overloaded", "CUDA error: system not yet initialized", "The file system is full"]
)
def test_other_words_about_a_system_are_none_about_the_role(text: str) -> None:
    error = error_from(answer(500, {"error": {"message": text}}), ENDPOINT)
    assert type(error) is ServerError
    assert "merge_system" not in error.hint


@given(st.integers(400, 599), st.binary(max_size=200))
def test_any_body_gives_an_error_of_the_family(status: int, body: bytes) -> None:
    assert error_from(HttpResponse(status, [], body), ENDPOINT).status == status


@given(st.recursive(st.none() | st.integers() | st.text(), lambda s: st.lists(s) | st.dictionaries(st.text(), s)))
def test_any_json_gives_an_error_of_the_family(value: Any) -> None:
    for body in (value, {"error": value}, {"message": value}):
        assert str(error_from(answer(400, body), ENDPOINT))


@pytest.mark.parametrize(
    "text", ["1" * 500_000, "(" * 500_000, "maximum context length is " * 20_000, "input (" * 70_000]
)
def test_of_a_long_hostile_message_only_the_beginning_is_read(text: str) -> None:
    assert context_numbers(text).limit is None
    assert not is_context_limit("x" * 2000 + "maximum context length is 5")
