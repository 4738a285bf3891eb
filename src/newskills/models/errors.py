# SPDX-License-Identifier: Apache-2.0
"""HTTP status and body of a refusal → one of the `ModelError` family, with numbers where the server tells them."""

from __future__ import annotations

import re
import time
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec
from msgspec import Struct

from newskills.base.chat_template import refuses_system_role
from newskills.base.errors import (
    AuthError,
    BadRequestError,
    ContentFilterError,
    ContextLimitError,
    ModelError,
    RateLimitError,
    RedirectError,
    ServerError,
)
from newskills.base.http.connection import HttpResponse
from newskills.models.decode import PAGE, is_page

DETAIL = 2000
"""Signs of a server's message that are kept; patterns see no more than these."""


class ModelNotFoundError(ModelError):
    """The endpoint does not serve that model, or not at that path."""


class EndpointIdentity:
    """Who was asked: for the sentences of errors. Has no `repr` of its own, so that no key is ever printed."""

    def __init__(self, address: str, model: str, key: str | None, key_source: str) -> None:
        self.address, self.model, self.key, self.key_source = address, model, key, key_source

    def scrub(self, text: str) -> str:
        """Return `text` without the key, should a server repeat it."""
        if self.key and len(self.key) > 3:
            return text.replace(self.key, "***")
        return text


class Refusal(Struct, frozen=True):
    """What a body says about an error, whatever its shape."""

    message: str
    code: str = ""
    details: Any = None


class ContextNumbers(Struct, frozen=True):
    """Token counts found in a message about the context limit; `overflow` = prompt minus limit."""

    limit: int | None = None
    prompt: int | None = None
    requested: int | None = None
    overflow: int | None = None


_CONTEXT_WORDS = re.compile(
    r"maximum context length|context_length_exceeded|exceed_context_size|context window|context length"
    r"|available context size|context limit|max_tokens must be at least 1, got -|max_seq_len|max_input_len"
    r"|longer than the maximum model length|prompt is too long|too long to fit into the model"
    r"|maximum number of tokens allowed|cannot be greater than [`']?max_(?:model_len|total_tokens)"
    r"|`?inputs`? must have less than \d|`max_new_tokens` must be <="
    r"|\(\d+ > \d+ - \d+\)|in the messages, \d+ in the completion",
    re.IGNORECASE,
)
_CONTEXT_NUMBERS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\((?P<requested>\d+) > (?P<limit>\d+) - (?P<prompt>\d+)\)",
        r"limit: (?P<prompt>\d+) \+ (?P<requested>\d+) > (?P<limit>\d+)",
        r"input \((?P<prompt>\d+) tokens\) is longer than [^()]{0,80}\((?P<limit>\d+) tokens\)",
        r"maximum context length (?:is|of) (?P<limit>\d+)",
        r"maximum context length: (?P<limit>\d+)",
        r"(?P<prompt>\d+) input tokens",
        r"max_(?:completion_)?tokens=(?P<requested>\d+) cannot be greater than [^\d]{0,60}(?P<limit>\d+)",
        r"requested (?P<requested>\d+) output tokens",
        r"`max_new_tokens` must be <= (?P<limit>\d+)\. Given: (?P<prompt>\d+) `inputs` tokens and (?P<requested>\d+)",
        r"must have less than (?P<limit>\d+) tokens\. Given: (?P<prompt>\d+)",
        r"requested (?:a total of )?(?P<total>\d+) tokens",
        r"(?P<prompt>\d+) (?:tokens? )?(?:in the messages|in your prompt|from the input)",
        r"(?P<requested>\d+) (?:tokens? )?(?:in the completion|for the completion)",
        r"messages resulted in (?P<prompt>\d+) tokens",
        r"too long: (?P<prompt>\d+) tokens > (?P<limit>\d+)",
        r"prompt is too long: (?P<prompt>\d+)",
        r"token count \((?P<prompt>\d+)\) exceeds [^()]{0,80}\((?P<limit>\d+)\)",
        r"prompt \((?:total )?length (?P<prompt>\d+)\)",
        r"(?:context length|maximum model length of) (?P<limit>\d+)",
        r"prompt length \((?P<prompt>\d+)\)",
        r"max_(?:seq|input)_len[^()\d]{0,20}\(?(?P<limit>\d+)",
        r"at least 1, got -(?P<overflow>\d+)",
        r"\"?n_prompt_tokens\"?: ?(?P<prompt>\d+)",
        r"\"?n_ctx\"?: ?(?P<limit>\d+)",
    )
)
_HARMONY = re.compile(
    r"expected 2 output messages|reasoning and final|unexpected tokens remaining in message header", re.IGNORECASE
)
_SECONDS = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")
_TOO_LARGE = re.compile(
    r"request too large|limit:? (?P<limit>\d{1,12})(?:, used:? \d{1,12})?, requested:? (?P<requested>\d{1,12})",
    re.IGNORECASE,
)
"""A request that no waiting will let through: it alone exceeds what the account may use in a minute."""
_PARAMETER = r"(temperature|top_p|top_k|min_p|seed|repetition_penalty|max_tokens|max_completion_tokens)"
_REFUSED_PARAMETER = re.compile(
    rf"\b{_PARAMETER}\b[^.\n]{{0,60}}?\b(?:not supported|not support|unsupported|deprecated|not allowed|not permitted)"
    rf"|(?:unsupported|unknown|unrecognized|unexpected|extra)\b[^.\n]{{0,60}}?\b{_PARAMETER}\b",
    re.IGNORECASE,
)
_ENDS = (".", "!", "?", "]", "}")
_REFUSED_IDS = re.compile(
    r"\bprompt\b[^\n]{0,80}(?:untagged enum|of type string|must be (?:a|of type) string|valid string|be a string)"
    r"|untagged enum Prompt|cannot unmarshal (?:array|number) into [^\n]{0,60}prompt",
    re.IGNORECASE,
)
"""What endpoints say that take only texts (Text Generation Inference, Ollama, FastAPI's)."""
_FILTER_CODES = frozenset({"content_filter", "content_policy_violation", "responsibleaipolicyviolation"})
_FILTER_WORDS = re.compile(r"content management policy|ContentPolicyViolationError|ResponsibleAIPolicyViolation")
"""Azure's sentence, and what routers make of it."""
_NO_MODEL_CODES = frozenset({"model_not_found", "deploymentnotfound", "not_found_error"})


def error_from(response: HttpResponse, endpoint: EndpointIdentity) -> ModelError:
    """Return the error that `response` (any status but 2xx, or a 200 that holds an error) stands for."""
    refusal = read_refusal(response.body)
    return error_for(response.status, refusal, endpoint, retry_after(response, refusal))


def error_for(status: int, refusal: Refusal, endpoint: EndpointIdentity, wait: float | None = None) -> ModelError:
    """Return the error as `error_from` does, where status and refusal came by another way (inside a stream, from a
    library)."""
    detail = endpoint.scrub(refusal.message)[:DETAIL]
    sentence = f"{endpoint.address} says ({status}): {detail}{'' if detail.rstrip().endswith(_ENDS) else '.'}"
    code = refusal.code.lower()
    if status in (401, 402, 403) or code == "insufficient_quota" or "API_KEY_INVALID" in str(refusal.details):
        return _auth_error(status, code, sentence, endpoint)
    if status == 429 and _exceeds_limit_alone(detail):
        return BadRequestError(sentence, status=status)
    if status == 429:
        return RateLimitError(sentence, status=status, retry_after=wait)
    if status in (400, 422, 500) and (code in _FILTER_CODES or _FILTER_WORDS.search(detail)):
        return ContentFilterError(sentence, status=status)
    if status in (400, 413, 422, 500) and (code == "context_length_exceeded" or is_context_limit(detail)):
        return _context_error(status, sentence, detail)
    if status in (404, 405) or code in _NO_MODEL_CODES:
        return ModelNotFoundError(
            f"{endpoint.address} has no model '{endpoint.model}' ({status}): {detail}",
            status=status,
            server_text=sentence,
        )
    if status == 400 and _HARMONY.search(detail):
        return ServerError(sentence, status=status, retry_after=wait)
    if status in (400, 422, 500) and refuses_system_role(detail):
        return BadRequestError(
            sentence,
            status=status,
            hint="Where the model has no system role, set ++server.merge_system=true: the system text then goes in "
            "front of the user's.",
        )
    if status in (408, 409, 425) or (status >= 500 and status != 501):
        return ServerError(sentence, status=status, retry_after=wait)
    return BadRequestError(sentence, status=status, hint=_way_out(detail))


def _way_out(detail: str) -> str:
    """Return what to set where an endpoint refuses a parameter by name, or a prompt of token ids."""
    if _REFUSED_IDS.search(detail):
        return "This endpoint seems to take no token ids: set ++inference.endpoint_type=chat."
    match = _REFUSED_PARAMETER.search(detail)
    if match is None:
        return ""
    name = next(group for group in match.groups() if group)
    if name in ("max_tokens", "max_completion_tokens"):
        other = "max_completion_tokens" if name == "max_tokens" else "max_tokens"
        return f"Set ++server.max_tokens_name={other}."
    if name == "seed":
        name = "random_seed"
    return f"Set ++inference.{name}=null: it is then not sent."


def redirect_error(error: RedirectError, endpoint: EndpointIdentity) -> ModelNotFoundError:
    """Return the error for a redirect of a model's endpoint: the API is elsewhere."""
    return ModelNotFoundError(
        f"{endpoint.address} does not serve the API: it redirects ({error.status}) to {error.target}, and redirects "
        "are not followed, since the key would travel along.",
        hint="Set ++server.base_url to the final address.",
        status=error.status,
    )


def is_context_limit(text: str) -> bool:
    """Return whether a server's message is about the context length."""
    return _CONTEXT_WORDS.search(text[:DETAIL]) is not None


def context_numbers(text: str) -> ContextNumbers:
    """Return the first value of each number that `text` contains; see the tests for the servers' sentences."""
    numbers_by_name: dict[str, int] = {}
    for pattern in _CONTEXT_NUMBERS:
        if match := pattern.search(text[:DETAIL]):
            for name, value in match.groupdict().items():
                numbers_by_name.setdefault(name, int(value))
    total, prompt = numbers_by_name.pop("total", None), numbers_by_name.get("prompt")
    if "requested" not in numbers_by_name and total is not None and prompt is not None:
        numbers_by_name["requested"] = total - prompt
    return ContextNumbers(**numbers_by_name)


def read_refusal(body: bytes) -> Refusal:
    """Read the message of an error body in the shape of OpenAI, FastAPI, Anthropic, Google or llama.cpp, or as text."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        text = body[:DETAIL].decode("utf-8", "replace").strip()
        if "sent to HTTPS port" in text:  # nginx
            return Refusal("this port speaks TLS: use https:// in the address")
        if is_page(body):
            return Refusal(PAGE)
        return Refusal(text or "nothing")
    if isinstance(value, list) and value:
        value = value[0]
    return refusal_of(value)


def refusal_of(value: Any) -> Refusal:
    """Read the refusal as `read_refusal` does, from the decoded JSON."""
    if not isinstance(value, dict):
        return Refusal(str(value)[:DETAIL])
    inner = value.get("error")
    error = inner if isinstance(inner, dict) else value
    if isinstance(inner, str):
        return Refusal(inner[:DETAIL])
    message = error.get("message") or error.get("detail") or error.get("msg")
    if isinstance(message, str):
        text = message
    else:
        text = msgspec.json.encode(message or value).decode()
    numbers = {key: error[key] for key in ("n_prompt_tokens", "n_ctx") if key in error}
    if numbers:
        text += f" {msgspec.json.encode(numbers).decode()}"
    codes = [code for code in (error.get("code"), error.get("type")) if isinstance(code, str)]
    return Refusal(text[:DETAIL], codes[0] if codes else "", error.get("details"))


def retry_after(response: HttpResponse, refusal: Refusal) -> float | None:
    """Return the seconds to wait: `retry-after-ms`, `Retry-After` (digits or a date, RFC 9110), or Google's
    RetryInfo."""
    if (value := response.header("retry-after-ms")) and (seconds := _seconds_of(value)) is not None:
        return seconds / 1000
    if value := response.header("retry-after"):
        if _SECONDS.fullmatch(value):
            return float(value)
        return _seconds_until(value)
    if not isinstance(refusal.details, list):
        return None
    delays = (detail.get("retryDelay") for detail in refusal.details if isinstance(detail, dict))
    for delay in delays:
        if isinstance(delay, str) and delay.endswith("s"):
            return _seconds_of(delay[:-1])
    return None


def _auth_error(status: int, code: str, sentence: str, endpoint: EndpointIdentity) -> AuthError:
    detail = sentence.partition(": ")[2]
    if status == 402 or code == "insufficient_quota":
        return AuthError(
            f"{endpoint.address} requires payment ({status}): {detail}",
            hint=f"Check the account of the key from {endpoint.key_source}." if endpoint.key else "",
            status=status,
            server_text=sentence,
        )
    if endpoint.key is None:
        needs = f"{endpoint.address} needs an API key ({status})"
        if endpoint.key_source:
            needs += f", and none is set in {endpoint.key_source}"
            hint = f"Set it: export {endpoint.key_source.split(' ')[0] or 'MY_KEY'}=…"
        else:
            hint = "Set it: export MY_KEY=…, and name the variable: ++server.api_key_env_var=MY_KEY"
        return AuthError(
            f"{needs}. It says: {detail}",
            hint=hint,
            status=status,
            server_text=sentence,
        )
    return AuthError(
        f"{endpoint.address} refuses the key from {endpoint.key_source} ({status}): {detail}",
        hint=f"Check {endpoint.key_source}.",
        status=status,
        server_text=sentence,
    )


def _context_error(status: int, sentence: str, detail: str) -> ContextLimitError:
    numbers = context_numbers(detail)
    return ContextLimitError(
        sentence, status=status, limit=numbers.limit, prompt_tokens=numbers.prompt, requested=numbers.requested
    )


def _exceeds_limit_alone(detail: str) -> bool:
    match = _TOO_LARGE.search(detail)
    if match is None:
        return False
    return match["limit"] is None or int(match["requested"]) > int(match["limit"])


def _seconds_of(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    if seconds < float("inf"):
        return max(0.0, seconds)
    return None


def _seconds_until(date: str) -> float | None:
    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - time.time())
    except ValueError:
        return None
