# SPDX-License-Identifier: Apache-2.0
"""Figures of load tests: those of vLLM's own code on the same requests, and what lying servers make of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from newskills.base.errors import ConfigError
from newskills.run.load_testing.figures import figures_of, is_good, parse_limits, tpot_of
from newskills.run.load_testing.records import LevelEnd, LevelStart, LoadLevel, MeasuredLevel, MeasuredRequest

GOLDEN = json.loads(Path(__file__).with_name("vllm_0_33_0.json").read_text())


def level(requests: list[MeasuredRequest], seconds: float = 20.0, cpu: float = 0.1, **load: Any) -> MeasuredLevel:
    described = LoadLevel(**{"kind": "concurrency", "value": 4.0, **load})
    start = LevelStart(level=described.name, load=described, workload={}, unix_time=0.0)
    end = LevelEnd(level=described.name, seconds=seconds, cpu_seconds=cpu, max_in_flight=4)
    return MeasuredLevel(start=start, requests=requests, end=end)


def answered(tokens: list[float], **fields: Any) -> MeasuredRequest:
    usual = {"number": 0, "due": 0.0, "sent": 0.0, "ended": tokens[-1] if tokens else 1.0, "input_tokens": 10}
    return MeasuredRequest(**{**usual, "tokens": tokens, "output_tokens": len(tokens), **fields})


def test_figures_are_those_of_vllm_on_the_same_requests() -> None:
    requests = msgspec.convert(GOLDEN["requests"], list[MeasuredRequest], strict=False)
    limits = parse_limits("ttft:400,tpot:35,e2el:1200")
    figures, theirs = figures_of(level(requests), limits), GOLDEN["metrics"]
    assert (figures.completed, figures.failed) == (theirs["completed"], theirs["failed"])
    assert figures.errors == {"server error": 5}
    assert figures.input_tokens == theirs["total_input"]
    assert figures.output_tokens == theirs["total_output"]
    assert figures.request_throughput == pytest.approx(theirs["request_throughput"])
    assert figures.output_throughput == pytest.approx(theirs["output_throughput"])
    assert figures.total_throughput == pytest.approx(theirs["total_token_throughput"])
    assert figures.goodput == pytest.approx(theirs["request_goodput"])
    assert figures.good_share == pytest.approx(theirs["request_goodput"] * 20 / 60)
    assert figures.peak_output == theirs["max_output_tokens_per_s"]
    for name in ("ttft", "tpot", "itl", "e2el"):
        spread = getattr(figures, f"{name}_ms")
        assert spread.mean == pytest.approx(theirs[f"mean_{name}_ms"])
        assert spread.std == pytest.approx(theirs[f"std_{name}_ms"])
        for share in ("50", "90", "99"):
            assert getattr(spread, f"p{share}") == pytest.approx(theirs[f"percentiles_{name}_ms"][share])


def test_tokens_without_usage_are_counted_by_events() -> None:
    figures = figures_of(level([answered([0.1, 0.2, 0.3], output_tokens=None, input_tokens=None)]), {})
    assert (figures.output_tokens, figures.input_tokens) == (3, 0)
    assert any("no usage in 1 replies" in note for note in figures.notes)
    zero = figures_of(level([answered([0.1, 0.2, 0.3], output_tokens=0)]), {})
    assert zero.output_tokens == 3


def test_a_reply_in_one_event_has_no_time_per_token() -> None:
    whole = answered([0.5], output_tokens=30)
    assert tpot_of(whole) is None
    figures = figures_of(level([whole]), {})
    assert figures.tpot_ms is None
    assert figures.itl_ms is None
    assert any("all tokens in one event in 1 replies" in note for note in figures.notes)
    assert not any("an event brings" in note for note in figures.notes)


def test_events_of_several_tokens_and_usage_that_cannot_be_are_told() -> None:
    several = figures_of(level([answered([0.1, 0.2], output_tokens=8)]), {})
    assert several.tokens_per_event == 4
    assert any("an event brings 4.0 tokens" in note for note in several.notes)
    assert several.tpot_ms is not None
    assert several.tpot_ms.mean == pytest.approx(100 / 7)
    lying = figures_of(level([answered([0.1, 0.2, 0.3, 0.4], output_tokens=1)]), {})
    assert any("usage counts fewer tokens" in note for note in lying.notes)


def test_a_reply_that_was_not_streamed_has_an_end_to_end_latency_alone() -> None:
    figures = figures_of(level([answered([], ended=2.0, output_tokens=9)]), {})
    assert figures.ttft_ms is None
    assert figures.e2el_ms is not None
    assert figures.e2el_ms.p99 == pytest.approx(2000)
    assert any("not streamed" in note for note in figures.notes)
    assert not is_good(answered([], ended=2.0), {"ttft": 1500.0})


def test_no_request_at_all_and_a_level_that_was_cut_short() -> None:
    unfinished = level([answered([0.1, 0.2])])
    unfinished.end = None
    figures = figures_of(unfinished, {"ttft": 50.0})
    assert (figures.complete, figures.seconds, figures.good_share) == (False, 0.2, 0.0)
    assert any("cut short" in note for note in figures.notes)
    empty = figures_of(level([]), {"ttft": 50.0})
    assert (empty.requests, empty.request_throughput, empty.e2el_ms, empty.good_share) == (0, 0.0, None, None)


def test_failures_count_against_the_limits() -> None:
    lost = MeasuredRequest(number=1, due=0.0, sent=0.0, ended=0.1, error="rate limit", status=429)
    figures = figures_of(level([answered([0.1]), lost]), {"ttft": 200.0})
    assert (figures.good_share, figures.completed, figures.errors) == (0.5, 1, {"rate limit": 1})


def test_a_server_that_does_not_keep_up_and_a_busy_client_are_told() -> None:
    slow = figures_of(level([answered([0.1])], seconds=10.0, kind="rate", value=2.0), {})
    assert any("answered 0.1 requests per second of 2 that were sent" in note for note in slow.notes)
    busy = figures_of(level([answered([0.1])], seconds=10.0, cpu=9.0), {})
    assert any("90% of a core" in note for note in busy.notes)
    late = figures_of(level([answered([0.1], due=1.0, sent=1.5)], seconds=1.0, kind="rate", value=1.0), {})
    assert any("sent 500 ms late" in note for note in late.notes)


def test_tokens_that_a_tokenizer_counts_otherwise_are_told() -> None:
    measured = level([answered([0.1, 0.2, 0.3])])
    assert measured.end is not None
    assert figures_of(measured, {}).recounted is None
    for counted, words in ((100, []), (50, ["the tokenizer counts 50% of the tokens that usage says"])):
        end = msgspec.structs.replace(
            measured.end, recounted_replies=2, recounted_usage=100, recounted_tokens=counted
        )
        figures = figures_of(MeasuredLevel(start=measured.start, requests=measured.requests, end=end), {})
        assert figures.recounted == counted / 100
        assert [note.partition(":")[0] for note in figures.notes] == words


@pytest.mark.parametrize("text", ["ttft", "ttft:x", "ttft:-1", "speed:3", "ttft:nan"])
def test_limits_that_are_none(text: str) -> None:
    with pytest.raises(ConfigError, match="expected NAME:MILLISECONDS"):
        parse_limits(text)


def test_limits_of_either_spelling() -> None:
    assert parse_limits("ttft:500 tpot:50,e2e:9000") == {"ttft": 500.0, "tpot": 50.0, "e2el": 9000.0}
    assert parse_limits("") == {}
