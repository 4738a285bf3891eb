# SPDX-License-Identifier: Apache-2.0
"""What a fake server is told to do, and what it remembers. All of it travels as JSON."""

from __future__ import annotations

import hashlib
import random
from typing import Any, Literal

from msgspec import Struct, field

Kind = Literal[
    "status",  # reply with `status`, and `retry_after`, `body`, `code`, `message` where given
    "reset",  # reset the connection instead of replying
    "reset_mid_body",  # send the head and half of the body, then reset
    "truncate",  # send the head and half of the body, then close in the regular way
    "malformed",  # 200 with a body that is no JSON
    "empty_choices",  # 200 with `choices: []` (`output: []` for responses)
    "no_content",  # 200 with `content: null` (chat), `text: null` (completions)
    "drip",  # the right reply, byte by byte with `seconds` between bytes
    "delay",  # the right reply, `seconds` later
    "hang",  # never reply (for `seconds`, then reset; 0 = until the client leaves)
    "context_limit",  # 400 in the shape `context_shape`, whatever the length is
    "down",  # reset, and refuse connections for `seconds`
]
CONTEXT_SHAPES = ("vllm", "vllm_difference", "vllm_negative", "openai", "sglang_input", "sglang_total", "llamacpp")


class Latency(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Seconds before a reply: `fixed`, plus uniform in 0..`jitter`, plus `tail` for a share `tail_share`."""

    fixed: float = 0.0
    jitter: float = 0.0
    tail: float = 0.0
    tail_share: float = 0.0

    def draw(self, seed: int, index: int) -> float:
        """The delay of the request with this number; the same for the same seed."""
        generator = random.Random(seed * 1_000_003 + index)
        extra = generator.random() * self.jitter
        return self.fixed + extra + (self.tail if generator.random() < self.tail_share else 0.0)


class Answer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    r"""How the text of a reply is found.

    text      always `text`
    echo      the prompt's text (last user message)
    table     `\boxed{v}` (or `template`) for the first key of `table` contained in the prompt, else `text`
    random    `\boxed{n}`, 0 <= n < `modulus`, a pure function of seed, request's own seed and prompt
    sequence  the n-th time a prompt is seen, the n-th of `texts` (then the last one again and again)
    """

    kind: Literal["text", "echo", "table", "random", "sequence"] = "text"
    text: str = r"The answer is \boxed{42}."
    table: dict[str, str] = {}
    template: str = r"The answer is \boxed{%s}."
    texts: tuple[str, ...] = ()
    modulus: int = 10
    seed: int = 0


class Fault(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way to misbehave, and when. All conditions that are given must hold; none given = always.

    every             each n-th model request since the script was set (1-based)
    first             the first n requests since then
    after             requests past the n-th
    first_per_prompt  the first n requests with the same prompt
    marker            the prompt contains this text
    above             more than n requests are in flight
    share             this share of requests, drawn from the script's seed
    retry_after       value of that header: seconds; with `http_date` it is sent as a date that far away
    """

    kind: Kind
    every: int = 0
    first: int = 0
    after: int = 0
    first_per_prompt: int = 0
    marker: str = ""
    above: int = 0
    share: float = 1.0
    status: int = 500
    message: str = ""
    code: str = ""
    body: str | None = None
    content_type: str = "application/json"
    retry_after: float | None = None
    http_date: bool = False
    seconds: float = 0.0
    context_shape: str = "vllm"

    def holds(self, *, index: int, sighting: int, prompt: str, in_flight: int, seed: int) -> bool:
        """Whether request `index` (1-based), the `sighting`-th with its prompt, meets this fault."""
        return (
            (not self.every or index % self.every == 0)
            and (not self.first or index <= self.first)
            and index > self.after
            and (not self.first_per_prompt or sighting <= self.first_per_prompt)
            and self.marker in prompt
            and in_flight > self.above
            and (self.share >= 1.0 or fraction(seed, index, prompt) < self.share)
        )


class Script(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole behaviour. `drip` and `delay` faults add up; the first other fault that holds ends the request.

    usage           "right", "none" (key absent), "wrong" (off by 1000), "zero"
    finish_reason   forced reason; "" = "stop", or "length" where `max_tokens` cut the text
    reasoning       sent apart as `reasoning_key`; counted as reasoning tokens
    context_tokens  the model's context; longer requests are refused in the shape `context_shape`
    api_key         when set, other or absent keys get 401
    stop_key        name under which a matched stop string is reported (vLLM `stop_reason`, SGLang `matched_stop`)
    tool_calls      OpenAI tool calls, sent with finish_reason `tool_calls`
    echo            what becomes of `echo` on the completions endpoint: "right", "ignored", "refused" (as llama.cpp
                    does), "mangled" (tokens that do not spell the text, as where characters are split)
    prompt_logprobs  whether the completions endpoint gives them where they are asked for, as vLLM does
    likely          token → log-probability of echoed tokens; others have a made-up one; the runner-up has −0.7
    rewards         text in the prompt → score that /classify, /score and /pooling give; 0 without one
    pieces      events that the text of a stream comes in; 0: one for each token
    drafts          steps, drafted and accepted tokens of each reply, as vLLM reports speculative decoding per request
    tool_turns      the calls of the first, second, … turn of a conversation; after the last one the answer
    """

    models: tuple[str, ...] = ("fake",)
    strict_model: bool = False
    answer: Answer = Answer()
    latency: Latency = Latency()
    faults: tuple[Fault, ...] = ()
    usage: Literal["right", "none", "wrong", "zero"] = "right"
    finish_reason: str = ""
    reasoning: str = ""
    reasoning_key: str = "reasoning_content"
    context_tokens: int = 0
    context_shape: str = "vllm"
    api_key: str = ""
    stop_key: str = "stop_reason"
    tool_calls: tuple[dict[str, Any], ...] = ()
    echo: Literal["right", "ignored", "refused", "mangled"] = "right"
    prompt_logprobs: bool = False
    pieces: int = 0
    drafts: tuple[int, int, int] | None = None
    likely: dict[str, float] = {}
    tool_turns: tuple[tuple[dict[str, Any], ...], ...] = ()
    rewards: dict[str, float] = {}
    healthy: bool = True
    seed: int = 0


class Record(Struct, kw_only=True):
    """One request as it came in and how it ended.

    `index` counts model requests since the start of the server (0 for others); `started`, `ended` are
    `time.monotonic()` seconds; `in_flight` counts model requests at work when it arrived, itself included;
    `outcome` is the status sent, or the fault's name.
    """

    index: int
    method: str
    path: str
    headers: dict[str, str]
    body: Any
    prompt: str
    started: float
    connection: int
    in_flight: int = 0
    ended: float | None = None
    outcome: str = ""


class Log(Struct, kw_only=True):
    """Everything a server remembers."""

    records: list[Record] = field(default_factory=list)
    max_in_flight: int = 0
    connections: int = 0


def fraction(*key: object) -> float:
    """A number in 0..1 that depends on `key` alone."""
    digest = hashlib.blake2b(repr(key).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64
