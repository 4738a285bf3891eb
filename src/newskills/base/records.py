# SPDX-License-Identifier: Apache-2.0
"""The nouns of a run: what goes to a model, what comes back, and what it was worth.

Everything here is a plain struct that msgspec reads and writes as JSON. Rows, records and message parts stay
dictionaries, since their keys belong to users.
"""

from __future__ import annotations

from functools import cache
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

if TYPE_CHECKING:
    from hashlib import blake2b

Row = dict[str, Any]
"""One JSON object: an input row, or a record (input fields + output fields + grader fields)."""

Outcome = Literal["correct", "wrong", "no_answer", "unscored"]
Cause = Literal[
    "model",
    "truncation",
    "provider",
    "context",
    "content_filter",
    "sandbox",
    "environment",
    "tool",
    "judge",
    "timeout",
    "grader",
    "harness",
    "data",
]
"""Who is to blame for an outcome. All but `model` and `truncation` are the instrument."""

INSTRUMENT: frozenset[str] = frozenset(
    {
        *("provider", "context", "content_filter", "sandbox", "environment", "tool", "judge", "timeout", "grader"),
        *("harness", "data"),
    }
)

CONTENT_FILTER: Literal["content_filter"] = "content_filter"
"""The finish reason, and the cause, of an answer that a filter of the endpoint withholds."""


class Message(Struct, omit_defaults=True):
    """One chat message in the OpenAI shape; `content` is a text or a list of content parts."""

    role: str
    content: str | list[Row] | None = None
    name: str | None = None
    tool_calls: list[Row] | None = None
    tool_call_id: str | None = None
    reasoning_content: str | None = None


class Inference(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Sampling parameters (`++inference.*`); null = not sent, for endpoints that refuse a parameter."""

    endpoint_type: Annotated[
        Literal["chat", "text", "responses"],
        Meta(description="API to call: chat, text (completions) or responses"),
    ] = "chat"
    temperature: Annotated[
        Annotated[float, Meta(ge=0)] | None, Meta(description="sampling temperature; 0 = greedy; null = not sent")
    ] = 0.0
    top_k: Annotated[
        Annotated[int, Meta(ge=-1)] | None,
        Meta(description="sample from the k likeliest tokens; -1 = all; null = not sent"),
    ] = -1
    top_p: Annotated[
        Annotated[float, Meta(gt=0, le=1)] | None, Meta(description="nucleus sampling mass; null = not sent")
    ] = 0.95
    min_p: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        Meta(description="minimum probability relative to the likeliest token; null = not sent"),
    ] = 0.0
    random_seed: Annotated[int | None, Meta(description="seed sent with each request; null = not sent")] = 0
    tokens_to_generate: Annotated[
        int | None, Meta(description="maximum new tokens; required for endpoint_type=text")
    ] = None
    repetition_penalty: Annotated[
        Annotated[float, Meta(gt=0)] | None, Meta(description="1 = none; null = not sent")
    ] = 1.0
    top_logprobs: Annotated[int | None, Meta(description="log-probabilities of the n likeliest tokens")] = None
    timeout: Annotated[float, Meta(gt=0, description="timeout of one request in seconds")] = 14400.0
    reasoning_effort: Annotated[
        str | None, Meta(description="low, medium, high or another level of the model")
    ] = None
    thinking_budget: Annotated[
        Annotated[int, Meta(ge=1)] | Literal["none"] | None,
        Meta(
            description="tokens that the model may think at most, forced by budget_forcing on the text endpoint; "
            "none: it does not think; null = not sent"
        ),
    ] = None
    cache_prompt: Annotated[
        Literal["auto", "none"] | None,
        Meta(
            description="auto: mark the shared beginning of prompts for the provider's cache, and count what came "
            "from it; null = auto for agents, else none"
        ),
    ] = None
    stream: Annotated[bool, Meta(description="ask the server to stream (keeps idle proxies open)")] = False
    extra_body: Annotated[Row, Meta(description="more keys for the request body, sent unchanged")] = {}


class CacheMark(Struct, frozen=True, kw_only=True):
    """Where a program wants the beginning of a prompt to be kept in the provider's cache.

    message  number of the message; None: the tools
    end      characters of its text (parts of its content, tools) that belong to the beginning; None: all
    control  what the program says of the mark, in Anthropic's words
    """

    message: int | None
    end: int | None = None
    control: Row


class Request(Struct, kw_only=True):
    """What is asked of a model: `messages` for chat and responses, `prompt` for text.

    `solver` is never sent: what decides, beside the request, how a solver goes on from the reply (limits, tags). It
    is part of the key, so that work done with other settings is not taken for the same. `cache_marks` are for backends
    that take marks.
    """

    messages: list[Message] | None = None
    prompt: str | list[int] | None = None
    inference: Inference = Inference()
    stop: list[str] = []
    tools: list[Row] | None = None
    response_format: Row | None = None
    extra_body: Row = {}
    solver: Row = {}
    cache_marks: list[CacheMark] | UnsetType = UNSET

    def key(self, salt: str = "") -> str:
        """Return 16 hex digits that change when anything the model would see changes (resume and cache key).

        The timeout is left out: waiting longer does not ask for something else. So is a thinking budget that is not
        set, which keeps the keys of records from before there was one, and the marks for a cache.
        """
        inference = _without_times(self.inference)
        body = msgspec.json.encode([salt, msgspec.structs.replace(self, inference=inference, cache_marks=UNSET)])
        return _blake2b()(body, digest_size=8).hexdigest()


@cache
def _blake2b() -> type[blake2b]:
    """Import blake2b late: `hashlib` loads OpenSSL, 3 ms that `--help` can do without."""
    from hashlib import blake2b

    return blake2b


class Usage(Struct, kw_only=True):
    """Token counts as the server reports them; None = not reported.

    input_tokens          of the whole prompt, with those of the next two
    cached_tokens         read from the provider's cache
    cache_written_tokens  written to it
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    cache_written_tokens: int | None = None


class TokenPrices(Struct, frozen=True, kw_only=True):
    """Prices of a million tokens; None: not known, and for the cache: as those of other prompt tokens."""

    read: float | None = None
    written: float | None = None
    cached: float | None = None
    cache_written: float | None = None

    @property
    def known(self) -> bool:
        """Whether a cost can be told."""
        return self.read is not None and self.written is not None

    def at(self, share: float, cached_share: float) -> TokenPrices:
        """Return the prices of which only a share is paid: of a prompt and a reply, and of what a cache holds."""
        cached, written = self.cached, self.cache_written
        if share != cached_share:  # what has no price of its own is paid as the rest, but in another share
            if cached is None:
                cached = self.read
            if written is None:
                written = self.read
        return TokenPrices(
            read=None if self.read is None else self.read * share,
            written=None if self.written is None else self.written * share,
            cached=None if cached is None else cached * cached_share,
            cache_written=None if written is None else written * cached_share,
        )

    def cost(self, used: Usage) -> float:
        """Return the cost, as far as prices and counts are known."""
        read, hits, stores = self.read or 0.0, used.cached_tokens or 0, used.cache_written_tokens or 0
        prompt = read * (used.input_tokens or 0)
        hit_price = read if self.cached is None else self.cached
        prompt += hits * (hit_price - read)
        store_price = read if self.cache_written is None else self.cache_written
        prompt += stores * (store_price - read)
        return (prompt + (self.written or 0.0) * (used.output_tokens or 0)) / 1e6


class Drafts(Struct, frozen=True, kw_only=True):
    """Speculative decoding of one reply: steps of the model, tokens that were drafted, and those that it accepted."""

    steps: int
    drafted: int
    accepted: int


class Logprobs(Struct, kw_only=True):
    """Log-probabilities of the generated tokens, one shape for all servers (natural log)."""

    tokens: list[str]
    logprobs: list[float]
    top_logprobs: list[dict[str, float]] | None = None


class ReplyTokens(Struct, frozen=True, kw_only=True):
    """Ids of the tokens of a reply and of its prompt, where the server tells them; an empty list where it does not."""

    generated: list[int]
    prompt: list[int] = []


class Reply(Struct, kw_only=True):
    """What a model said. `text` is without the reasoning that a server reports apart."""

    text: str
    reasoning: str | None = None
    finish_reason: str | None = None
    usage: Usage = msgspec.field(default_factory=Usage)
    tool_calls: list[Row] | None = None
    logprobs: Logprobs | None = None
    drafts: Drafts | None = None
    model: str | None = None
    raw_message: Row | None = None
    started: float = 0.0
    ended: float = 0.0
    tokens: ReplyTokens | None = None


class ReplyPiece(Struct, frozen=True, kw_only=True, eq=False):
    """A part of a reply that a model is still writing.

    call    number of the tool call that `call_id`, `name` and `arguments` (a part of its JSON) belong to
    native  the part in the words of the backend's own protocol, where that says more (signatures)
    usage   token counts, as far as they are known before the end
    """

    text: str = ""
    reasoning: str = ""
    call: int | None = None
    call_id: str = ""
    name: str = ""
    arguments: str = ""
    native: Row | None = None
    usage: Usage | None = None


class Failure(Struct, kw_only=True):
    """Why there is no usable reply or verdict; data, not an exception."""

    kind: str
    cause: Cause
    message: str
    status: int | None = None


class Sample(Struct, kw_only=True):
    """One input row with its stable identity, its 0-based place in the input and, if it has one, its line there (or
    words for it, where the file has no lines)."""

    id: str
    row: Row
    position: int = 0
    line: int | str = 0


class Attempt(Struct, kw_only=True):
    """One sample solved once: the output fields of the record, or the failure that prevented them.

    `fields` holds exactly what is merged into the record (`generation`, `num_generated_tokens`, …).
    """

    sample_id: str
    key: str
    fields: Row
    failure: Failure | None = None


class Score(Struct, kw_only=True):
    """A verdict. `fields` are the grader's record fields (`predicted_answer`, `symbolic_correct`, …).

    `value` is a finite number: JSON would turn another one into null, which reads as no number at all.
    """

    outcome: Outcome
    fields: Row
    grader: str
    why: str = ""
    cause: Cause | None = None
    value: float | None = None

    def __post_init__(self) -> None:
        if self.value is not None and not isfinite(self.value):
            raise ValueError(f"{self.grader} gave the value {self.value}, which is not a finite number")


class Number(Struct, frozen=True, kw_only=True):
    """A measured value with its uncertainty; headline values are never bare floats.

    `value`, `low`, `high` in the metric's own unit (percent for scores), interval at 95 %; `n` independent
    units (problems); `unscored` samples left out; `method` names the interval (wilson, cluster, bootstrap).
    """

    value: float
    low: float
    high: float
    n: int
    unscored: int = 0
    method: str = "wilson"


class Ledger(Struct, kw_only=True):
    """How every attempt ended: counts by outcome, by cause for those that are not correct, and by finish reason."""

    correct: int = 0
    wrong: int = 0
    no_answer: int = 0
    unscored: int = 0
    causes: dict[str, int] = {}
    finish_reasons: dict[str, int] = {}

    @property
    def total(self) -> int:
        return self.correct + self.wrong + self.no_answer + self.unscored

    @property
    def lost(self) -> int:
        """Attempts that could not be scored."""
        return self.unscored


class Report(Struct, kw_only=True):
    """What one benchmark's records say: metrics by mode as written to metrics.json, Numbers, and the ledger.

    columns   metrics of the printed table, in order; empty = all numbers
    shown     modes of the printed table, in order; empty = all
    plain     metrics that are no percentages
    """

    benchmark: str
    modes: dict[str, Row]
    numbers: dict[str, dict[str, Number]] = {}
    ledger: Ledger = msgspec.field(default_factory=Ledger)
    versions: dict[str, str] = {}
    columns: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()


def _without_times(inference: Inference) -> Inference:
    budget = inference.thinking_budget
    thinking_budget = UNSET if budget is None else budget
    return msgspec.structs.replace(inference, timeout=1.0, thinking_budget=thinking_budget, cache_prompt=UNSET)
