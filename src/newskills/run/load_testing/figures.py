# SPDX-License-Identifier: Apache-2.0
"""What the records of a level say, as `vllm bench serve` defines it (vLLM 0.33.0, `vllm/benchmarks/serve.py`).

ttft   time to first token: from sending a request to its first event with tokens
e2el   end-to-end latency: from sending a request to its last event with tokens
tpot   time per output token: (e2el - ttft) / (output tokens - 1), one value for each request
itl    inter-token latency: between two events with tokens, one value for each pair of neighbours

Differences: where the server reports no usage, output tokens are counted by events, and a reply whose tokens came in
one event has no tpot (there it is 0).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from newskills.base.errors import ConfigError
from newskills.base.stats import quantile_of
from newskills.run.load_testing.records import LoadKind, MeasuredLevel, MeasuredRequest

LIMITED = ("ttft", "tpot", "e2el")
"""Figures of a request that may have a limit."""
UNFINISHED = "unfinished"
"""Kind of the failure of a request that was cut because the level's time was long over."""
RECOUNT_MARGIN = 0.1
"""Share by which a tokenizer may differ from usage: marks at the end of a reply are not in its text."""
BUSY_CLIENT, LATE_MS, KEEPS_UP, MANY_PER_EVENT = 0.7, 20.0, 0.9, 1.5
"""Share of a core, milliseconds, share of the rate, tokens of an event, from which figures come with a note."""


class LatencySpread(Struct, frozen=True, kw_only=True):
    """Of many durations, in milliseconds; `std` with ddof 0."""

    mean: float
    std: float
    p50: float
    p90: float
    p99: float
    max: float


class LevelFigures(Struct, frozen=True, kw_only=True):
    """The figures of one level; throughputs are per second, of answered requests.

    complete           whether the level was measured to its end
    failed             requests without an answer; `errors`: how many, by kind
    goodput            answered requests within all limits, per second; None: there are no limits
    good_share         the same as a share of all requests
    peak_output        events with tokens in the second that had most
    tokens_per_event   output tokens that an event brought in the mean
    send_delay_ms      how much later than due requests were sent
    without_usage      answered requests whose tokens are counted by events, since the server did not
    recounted          tokens of some replies by a tokenizer, as a share of what usage says; None: they were not counted
    client_cpu         share of a core that this client used
    """

    name: str
    kind: LoadKind
    value: float
    complete: bool
    seconds: float
    requests: int
    completed: int
    failed: int
    errors: dict[str, int]
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    request_throughput: float
    output_throughput: float
    total_throughput: float
    peak_output: float
    goodput: float | None
    good_share: float | None
    max_in_flight: int
    ttft_ms: LatencySpread | None
    tpot_ms: LatencySpread | None
    itl_ms: LatencySpread | None
    e2el_ms: LatencySpread | None
    send_delay_ms: LatencySpread | None
    tokens_per_event: float | None
    without_usage: int
    recounted: float | None
    client_cpu: float | None
    notes: list[str]


def parse_limits(text: str) -> dict[str, float]:
    """Parse `ttft:500,tpot:50` (milliseconds) as limits by figure, as `vllm bench serve --goodput` does.

    Raises ConfigError.
    """
    limits: dict[str, float] = {}
    for word in text.replace(",", " ").split():
        name, _, value = word.partition(":")
        name = "e2el" if name == "e2e" else name
        try:
            limits[name] = float(value)
        except ValueError:
            limits[name] = -1.0
        if name not in LIMITED or not limits[name] >= 0:
            raise ConfigError(
                f"--limits {word}: expected NAME:MILLISECONDS with a name of {', '.join(LIMITED)}.",
                hint="For example: --limits=ttft:500,tpot:50",
            )
    return limits


def figures_of(level: MeasuredLevel, limits: dict[str, float]) -> LevelFigures:
    """Compute the figures of a level from its records."""
    load, requests = level.start.load, level.requests
    answered = [request for request in requests if not request.error]
    if level.end:
        seconds = level.end.seconds
    else:
        seconds = max((each.sent + each.ended for each in requests), default=0.0)
    per_second = 1 / seconds if seconds else 0.0
    inputs = sum(each.input_tokens or 0 for each in answered)
    outputs = sum(output_tokens(each) for each in answered)
    events = sum(len(each.tokens) for each in answered)
    good = sum(is_good(each, limits) for each in answered)
    figures = LevelFigures(
        name=load.name,
        kind=load.kind,
        value=load.value,
        complete=level.end is not None,
        seconds=seconds,
        requests=len(requests),
        completed=len(answered),
        failed=len(requests) - len(answered),
        errors=dict(Counter(each.error for each in requests if each.error).most_common()),
        input_tokens=inputs,
        cached_tokens=sum(each.cached_tokens or 0 for each in answered),
        output_tokens=outputs,
        request_throughput=len(answered) * per_second,
        output_throughput=outputs * per_second,
        total_throughput=(inputs + outputs) * per_second,
        peak_output=_peak_token_rate(answered),
        goodput=good * per_second if limits else None,
        good_share=good / len(requests) if limits and requests else None,
        max_in_flight=level.end.max_in_flight if level.end else 0,
        ttft_ms=latency_spread([each.tokens[0] for each in answered if each.tokens]),
        tpot_ms=latency_spread([tpot for each in answered if (tpot := tpot_of(each)) is not None]),
        itl_ms=latency_spread([later - sooner for each in answered for sooner, later in pairwise(each.tokens)]),
        e2el_ms=latency_spread([e2el_of(each) for each in answered]),
        send_delay_ms=latency_spread([each.sent - each.due for each in requests]),
        tokens_per_event=outputs / events if events else None,
        without_usage=sum(not each.output_tokens for each in answered if each.tokens),
        recounted=_recounted_tokens_per_reply(level),
        client_cpu=level.end.cpu_seconds * per_second if level.end else None,
        notes=[],
    )
    figures.notes.extend(_figure_notes(figures, answered))
    return figures


def _recounted_tokens_per_reply(level: MeasuredLevel) -> float | None:
    if level.end is None or not level.end.recounted_usage:
        return None
    return level.end.recounted_tokens / level.end.recounted_usage


def output_tokens(request: MeasuredRequest) -> int:
    """Return the generated tokens of a request: as the server counts them, else its events with tokens."""
    return request.output_tokens or len(request.tokens)


def e2el_of(request: MeasuredRequest) -> float:
    """Return the end-to-end latency in seconds; of a reply that was not streamed, until it was there."""
    if request.tokens:
        return request.tokens[-1]
    return request.ended


def tpot_of(request: MeasuredRequest) -> float | None:
    """Return the seconds per output token after the first; None where there is one, or all came together."""
    produced = output_tokens(request)
    if produced < 2 or len(request.tokens) < 2:
        return None
    return (request.tokens[-1] - request.tokens[0]) / (produced - 1)


def is_good(request: MeasuredRequest, limits: dict[str, float]) -> bool:
    """Return whether an answered request is within all limits; a figure that it does not have is."""
    seconds = {
        "ttft": request.tokens[0] if request.tokens else request.ended,
        "tpot": tpot_of(request) or 0.0,
        "e2el": e2el_of(request),
    }
    return all(1000 * seconds[name] <= limit for name, limit in limits.items())


def latency_spread(seconds: Sequence[float]) -> LatencySpread | None:
    """Summarize durations in seconds as milliseconds; None where there are none."""
    if not seconds:
        return None
    ordered = sorted(1000 * value for value in seconds)
    mean = math.fsum(ordered) / len(ordered)
    variance = math.fsum((value - mean) ** 2 for value in ordered) / len(ordered)
    p50, p90, p99 = (quantile_of(ordered, share) for share in (0.5, 0.9, 0.99))
    return LatencySpread(mean=mean, std=math.sqrt(variance), p50=p50, p90=p90, p99=p99, max=ordered[-1])


def _peak_token_rate(answered: Sequence[MeasuredRequest]) -> float:
    begin = min((each.sent for each in answered), default=0.0)
    seconds = Counter(int(each.sent + at - begin) for each in answered for at in each.tokens)
    return float(max(seconds.values(), default=0))


def _figure_notes(figures: LevelFigures, answered: Sequence[MeasuredRequest]) -> Iterator[str]:
    """Yield what must be known to read the figures."""
    if not figures.complete:
        yield "cut short: the same command measures this level again"
    if cut := figures.errors.get(UNFINISHED):
        yield f"{cut:,} requests had no end long after --seconds were over and were cut: rates include that time"
    if figures.without_usage:
        yield (
            f"no usage in {figures.without_usage:,} replies: their output tokens are counted by events, input tokens "
            "not at all"
        )
    whole = sum(len(each.tokens) == 1 and output_tokens(each) > 1 for each in answered)
    if whole:
        yield f"all tokens in one event in {whole:,} replies: time to first token is that of the whole reply"
    unstreamed = sum(not each.tokens for each in answered)
    if unstreamed:
        yield f"{unstreamed:,} replies were not streamed: they have an end-to-end latency only"
    per_event = figures.tokens_per_event
    if per_event is not None and per_event > MANY_PER_EVENT and whole < len(answered):
        yield f"an event brings {per_event:.1f} tokens: inter-token latencies are between events"
    if figures.recounted is not None and abs(figures.recounted - 1) > RECOUNT_MARGIN:
        yield f"the tokenizer counts {figures.recounted:.0%} of the tokens that usage says: one of them is wrong"
    fewer = sum(0 < (each.output_tokens or 0) < len(each.tokens) - 1 for each in answered)
    if fewer:
        yield f"usage counts fewer tokens than events came in {fewer:,} replies: it may be wrong"
    if figures.kind == "rate" and not figures.failed and figures.request_throughput < KEEPS_UP * figures.value:
        answered_rate = f"{figures.request_throughput:.3g} requests per second"
        yield f"the server answered {answered_rate} of {figures.value:g} that were sent"
    if figures.client_cpu is not None and figures.client_cpu > BUSY_CLIENT:
        yield f"this client used {figures.client_cpu:.0%} of a core: latencies include its own delays"
    elif figures.kind == "rate" and figures.send_delay_ms and figures.send_delay_ms.p99 > LATE_MS:
        yield f"1 % of requests were sent {figures.send_delay_ms.p99:.0f} ms late or more"
